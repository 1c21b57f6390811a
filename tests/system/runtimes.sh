#!/usr/bin/env bash
# runtimes.sh RUNTIME PROGRAM TESTS FOLDER DEVICES SECONDS SUITE...: suites on another OpenCL implementation, fetched into FOLDER.
#
# SPDX-License-Identifier: Apache-2.0
#
# RUNTIME is intel (Intel's runtime for CPUs, of its packages for Python) or rusticl (Mesa's, on its CPU renderer, of the
# distribution's packages). Nothing is installed: a driver in the system's list would change what every other program sees, and
# Mesa's package would take away the libclc of a newer clang. DEVICES are patterns of the suites' names for devices; a suite that has
# not ended after SECONDS is one that was not finished, and said so: it has not passed.
set -euo pipefail

runtime=$1 program=$2 tests=$3 folder=$4 devices=$5 seconds=$6 suites=("${@:7}")

fail() { echo "$*" >&2; exit 1; }
skip() { echo "skipped: $*"; exit 77; }

# use_driver LIBRARY: OpenCL is this driver and no other.
use_driver() {
    mkdir -p "$folder/vendors"
    echo "$1" >"$folder/vendors/$runtime.icd"
    export OCL_ICD_VENDORS=$folder/vendors/ CLATTN_CACHE_DIR=$folder/cache
}

use_intel() {
    local python=$folder/python
    if [[ ! -e $folder/fetched ]]; then
        python3 -m venv "$python" && "$python/bin/pip" -q install --retries 1 --timeout 15 intel-opencl-rt intel-cmplr-lib-rt ||
            skip "cannot fetch Intel's packages for Python"
        touch "$folder/fetched"
    fi
    [[ -e $python/lib/libintelocl.so ]] || skip "Intel's packages hold no driver for this processor"
    use_driver "$python/lib/libintelocl.so"
}

# What Mesa's driver needs and is not here, unpacked.
fetch_rusticl() {
    local packages
    [[ ! -e $folder/fetched ]] || return 0
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip 'rusticl is fetched with apt-get'
    # What is only another version of something installed stays as it is.
    packages=$(apt-get -s install --no-install-recommends mesa-opencl-icd | awk '$1 == "Inst" && $3 !~ /^\[/ { print $2 }')
    [[ -n $packages ]] || skip 'there is no package mesa-opencl-icd'
    # shellcheck disable=SC2086 # a list of words
    (cd "$folder" && apt-get -q download $packages) || skip 'cannot fetch mesa-opencl-icd'
    for package in "$folder"/*.deb; do dpkg-deb -x "$package" "$folder"; done
    rm -f "$folder"/*.deb
    touch "$folder/fetched"
}

# Mesa looks for libclc in the system's folder: in a namespace of mounts of its own, that folder is the unpacked one.
use_rusticl() {
    fetch_rusticl
    local library
    library=$(find "$folder/usr/lib" -name 'libRusticlOpenCL.so.1' | head -n 1)
    [[ -n $library ]] || skip 'this mesa-opencl-icd has no rusticl'
    mkdir -p "$folder/clc"
    if [[ -z ${CLATTN_RUNTIMES_INSIDE-} && -d $folder/usr/lib/clc ]]; then
        [[ -d /usr/lib/clc ]] || skip 'there is no /usr/lib/clc to put another libclc over'
        unshare --map-root-user --mount true || skip 'no namespace of mounts can be had'
        CLATTN_RUNTIMES_INSIDE=1 exec unshare --map-root-user --mount bash "$0" "$runtime" "$program" "$tests" "$folder" "$devices" \
            "$seconds" "${suites[@]}"
    fi
    [[ -z ${CLATTN_RUNTIMES_INSIDE-} ]] || mount --bind "$folder/usr/lib/clc" /usr/lib/clc
    use_driver "$library"
    export LD_LIBRARY_PATH=${library%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    asleep_is_passed_over
    export RUSTICL_ENABLE=llvmpipe
}

# Unless it is told to, rusticl has no device: it is named, and what computes here is another.
asleep_is_passed_over() {
    local list
    list=$(env -u RUSTICL_ENABLE "$program" devices)
    grep -q 'cannot be used: the platform has no device' <<<"$list" || fail "rusticl without a device is not named:"$'\n'"$list"
    grep -q '^\* auto picks native' <<<"$list" || fail "rusticl without a device changes what auto picks:"$'\n'"$list"
}

mkdir -p "$folder"
"use_$runtime"
"$program" devices | grep -A 3 '^. *opencl:0:0 ' || skip "$runtime finds no device here"
export CK_FORK=no OMP_WAIT_POLICY=passive CLATTN_TEST_DEVICES=$devices CLATTN_TEST_BUILD_SECONDS=$((seconds / 2)) CLATTN_PROPERTY_SECONDS=$((seconds / 2))
status=0
for suite in "${suites[@]}"; do
    result=0
    timeout "$seconds" "$tests/test_$suite" >"$folder/$suite.txt" 2>&1 || result=$?
    case $result in
        0) echo "$suite: passed" ;;
        124) echo "$suite: not finished after $seconds s" && status=77 ;;
        *) echo "$suite: failed" && cat "$folder/$suite.txt" && exit 1 ;;
    esac
done
exit "$status"
