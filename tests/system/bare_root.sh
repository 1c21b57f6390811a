#!/usr/bin/env bash
# bare_root.sh SOURCE [SUITE]: the commands of the README in Debian roots that have nothing, as root and as nobody.
#
# SPDX-License-Identifier: Apache-2.0
#
# SUITE is a release that this machine's package source has; its own by default. The roots lie in $TMPDIR or /var/tmp, take
# 3 GB, and go away at the end. What is tested is the last commit, not the work tree.
set -euo pipefail

source=$1
# shellcheck source=/dev/null
. /etc/os-release
suite=${2:-$VERSION_CODENAME}

skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }
((EUID == 0)) || skip 'needs root'
for command in debootstrap unshare git; do
    command -v "$command" >/dev/null || skip "no $command"
done

# Mounts in a namespace of our own go away with it, however this ends.
if [[ -z ${CLATTN_BARE_ROOT-} ]]; then
    CLATTN_BARE_ROOT=1 unshare --mount --propagation private bash "$0" "$@" || exit
    exit 0
fi

work=$(mktemp -d -p "${TMPDIR:-/var/tmp}" clattn-bare.XXXXXX)
clean_up() {
    local mounted
    for mounted in "$work"/*/proc "$work"/*/sys "$work"/*/dev; do
        ! mountpoint -q "$mounted" || umount -l "$mounted"
    done
    rm -rf --one-file-system "$work"
}
trap clean_up EXIT

# Run a command and say how long it took.
timed() {
    local start=$EPOCHREALTIME what=$1 status=0
    "${@:2}" || status=$?
    awk -v what="$what" -v from="$start" -v to="$EPOCHREALTIME" -v status="$status" \
        'BEGIN { printf "==== %s: %s in %.1f s\n", what, status ? "failed" : "passed", to - from }'
    return $status
}

# The package source of this machine, whatever it is.
mirror() {
    # shellcheck disable=SC2016 # the fields are apt's
    apt-get indextargets --format '$(SITE) $(COMPONENT)' "Codename: $VERSION_CODENAME" 'Created-By: Packages' |
        awk '$2 == "main" && !found { print $1; found = 1 }'
}

make_base() {
    local url components=main folder
    url=$(mirror)
    [[ -n $url ]] || skip 'no package source to bootstrap from'
    [[ $ID != ubuntu ]] || components=main,universe
    timed "debootstrap $suite" debootstrap --variant=minbase --components="$components" "$suite" "$work/base" "$url" \
        >"$work/debootstrap.log" || { tail "$work/debootstrap.log"; fail 'no root'; }
    tail -n 1 "$work/debootstrap.log"
    for folder in apt.conf.d auth.conf.d; do
        cp -a "/etc/apt/$folder/." "$work/base/etc/apt/$folder/"
    done
    cp -L /etc/resolv.conf /etc/hosts "$work/base/etc/"
    git clone -q "$source" "$work/base/src/clattn"
}

# root_of NAME: a fresh copy of the base, ready to be entered
root_of() {
    local root=$work/$1
    cp -a "$work/base" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount --bind /dev "$root/dev"
}
inside=(/usr/bin/env LC_ALL=C TMPDIR=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin)
enter() { chroot "$work/$1" "${inside[@]}" HOME=/root "${@:2}"; }
enter_as_nobody() { chroot --userspec=65534:65534 "$work/$1" "${inside[@]}" HOME=/tmp "${@:2}"; }

both_commands() {
    root_of full
    ! enter full sh -c 'command -v cc cmake' || fail 'the root is not bare'
    timed './run test, nothing there before' enter full /src/clattn/run test
    timed './run devices, everything built' enter full /src/clattn/run devices
    timed './run bench --quick' enter full /src/clattn/run bench --quick
    rm -rf "$work/full/src/clattn/build"
    timed './run --version from a clean clone' enter full /src/clattn/run --version
}

# Only a compiler and CMake, no loader, and no right to install: without OpenCL's headers, then with them.
compiler_only() {
    local headers
    root_of compiler
    enter compiler apt-get -qq update
    chown -R 65534:65534 "$work/compiler/src/clattn"
    for headers in '' opencl-headers; do
        # shellcheck disable=SC2086 # none or one
        enter compiler apt-get -qq -y --no-install-recommends install gcc libc6-dev cmake make $headers >"$work/apt.log" 2>&1 ||
            fail 'apt-get'
        timed "./run devices as nobody, ${headers:-no headers}" enter_as_nobody compiler /src/clattn/run devices 2>&1 |
            tee "$work/nobody.log"
        grep -q 'without .*pocl-opencl-icd' "$work/nobody.log" || fail 'the missing packages are not named'
        enter compiler bash /src/clattn/tests/system/no_opencl.sh / /src/clattn/build/clattn
    done
    grep -q 'libOpenCL' "$work/nobody.log" || fail 'the missing loader is not named'
}

make_base
both_commands
compiler_only
