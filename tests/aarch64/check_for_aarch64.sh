#!/usr/bin/env bash
# check_for_aarch64.sh FOLDER: Check as Debian builds it for aarch64, unpacked there. The system does not change: apt gets lists
# and a cache of its own. Fails with a sentence where there is no such package.
#
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

folder=$(readlink -m -- "$1")
[[ ! -e $folder/usr/include/check.h ]] || exit 0
work=$folder.part
rm -rf "$work"
mkdir -p "$work/lists" "$work/cache" "$work/packages" "$work/root"
apt() {
    apt-get -q -o APT::Architectures::=arm64 -o APT::Sandbox::User=root -o Dir::State::lists="$work/lists" \
        -o Dir::Cache="$work/cache" "$@" >"$work/log" 2>&1 || { tail -n 3 "$work/log" >&2 && echo 'no Check for aarch64' >&2 && exit 1; }
}
apt update
(cd -- "$work/packages" && apt download check:arm64 libsubunit-dev:arm64) # static, so that nothing else is needed to run
for package in "$work"/packages/*.deb; do dpkg -x "$package" "$work/root"; done
rm -rf "$folder"
mv "$work/root" "$folder"
rm -rf "$work"
