#!/usr/bin/env bash
# isolated.sh PROGRAM FOLDER: make FOLDER a root of the program and what it links, and no more; see how it does there.
#
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

program=$1 root=$2
tests=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")

if ((EUID != 0)); then
    unshare --map-root-user true || exit 77
    exec unshare --map-root-user bash "$0" "$@"
fi
rm -rf "$root"
mkdir -p "$root/tmp"
cp "$program" "$root/clattn"
ldd "$program" | grep -o '/[^ ]*' | while IFS= read -r library; do
    cp -L --parents "$library" "$root"
done
chroot "$root" /clattn --version || exit 77
"$tests/no_opencl.sh" "$root" /clattn
