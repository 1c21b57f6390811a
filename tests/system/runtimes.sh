#!/usr/bin/env bash
# runtimes.sh RUNTIME PROGRAM TESTS FOLDER SECONDS: suites on another OpenCL implementation, fetched into FOLDER.
#
# SPDX-License-Identifier: Apache-2.0
#
# RUNTIME is intel (Intel's runtime for CPUs, of its packages for Python) or rusticl (Mesa's, on its CPU renderer, of the
# distribution's packages). Nothing is installed: a driver in the system's list would change what every other program sees, and
# Mesa's package would take away the libclc of a newer clang. A suite that has not ended after SECONDS has not passed.
set -euo pipefail

runtime=$1 program=$2 tests=$3 folder=$4 seconds=$5

skip() { echo "skipped: $*"; exit 77; }
fail() { echo "$*" >&2; exit 1; }

# use_driver LIBRARY: OpenCL is this driver and no other.
use_driver() {
    mkdir -p "$folder/vendors"
    echo "$1" >"$folder/vendors/$runtime.icd"
    export OCL_ICD_VENDORS=$folder/vendors/ CLATTN_CACHE_DIR=$folder/cache
}

# ---- Intel ----------------------------------------------------------------------------------------------------------

fetch_intel() {
    python3 -m venv "$folder/python"
    "$folder/python/bin/pip" -q install --retries 1 --timeout 15 intel-opencl-rt intel-cmplr-lib-rt
}

# ---- rusticl --------------------------------------------------------------------------------------------------------

# Packages that are here, perhaps in another version, stay as they are.
fetch_rusticl() {
    local packages archive
    packages=$(apt-get -s install --no-install-recommends mesa-opencl-icd | awk '$1 == "Inst" && $3 !~ /^\[/ { print $2 }')
    [[ -n $packages ]] || return 1
    # shellcheck disable=SC2086 # a list of words
    (cd "$folder" && apt-get -q download $packages) || return 1
    for archive in "$folder"/*.deb; do
        dpkg-deb -x "$archive" "$folder" || return 1
    done
    rm -f "$folder"/*.deb
}

# Mesa looks for libclc where the system has it. In a namespace of our own the unpacked one lies there, for this script alone.
enter_namespace() {
    if [[ -z ${CLATTN_IN_NAMESPACE-} ]]; then
        [[ -d /usr/lib/clc ]] || skip 'Mesa needs a folder /usr/lib/clc'
        unshare --map-root-user --mount true 2>/dev/null || skip 'no namespace of mounts is allowed here'
        CLATTN_IN_NAMESPACE=1 exec unshare --map-root-user --mount bash "$0" "$runtime" "$program" "$tests" "$folder" "$seconds"
    fi
    mount --bind "$folder/usr/lib/clc" /usr/lib/clc
}

# Unless it is told to, rusticl has no device. It is named then, and auto takes what it would take without it.
check_asleep() {
    local list
    list=$(env -u RUSTICL_ENABLE "$program" devices)
    grep -q 'cannot be used: the platform has no device' <<<"$list" || fail "rusticl without a device is not named: $list"
    grep -q '^[*] auto picks native' <<<"$list" || fail "rusticl without a device changes what auto picks: $list"
}

# A device whose loops end early is listed with why, and is not used unless its rows are asked for by name.
check_refused() {
    local list text
    list=$("$program" devices)
    if grep -q 'cannot be used: before Mesa 25.0' <<<"$list"; then
        text=$("$program" lesson rnn-step --device opencl:0:0 2>&1) && fail 'rusticl is used for all that is known of it'
        grep -q 'cannot be used: before Mesa 25.0' <<<"$text" || fail "rusticl is refused without a reason: $text"
        grep -q '^passed over opencl:0:0: before Mesa 25.0' <<<"$list" || fail "auto does not say why not rusticl: $list"
    fi
}

# ---- main -----------------------------------------------------------------------------------------------------------

mkdir -p "$folder"
if [[ ! -e $folder/fetched ]]; then
    "fetch_$runtime" >"$folder/fetch.log" 2>&1 || skip "cannot fetch $runtime: $(tail -n 1 "$folder/fetch.log")"
    touch "$folder/fetched"
fi
case $runtime in
    intel)
        use_driver "$folder/python/lib/libintelocl.so"
        devices='opencl:*:?pu' suites=(drivers project mha recurrence attention properties)
        ;;
    rusticl)
        enter_namespace
        library=$(find "$folder/usr/lib" -name libRusticlOpenCL.so.1)
        [[ -n $library ]] || skip 'this mesa-opencl-icd has no rusticl'
        export LD_LIBRARY_PATH=${library%/*}
        use_driver "$library"
        check_asleep
        export RUSTICL_ENABLE=llvmpipe
        check_refused
        # By name its rows are small enough for its loops, but those of a single work-item (recurrence), and some draws of
        # `properties` crash its compiler.
        devices='opencl:*:gpu' suites=(drivers merge project mha attention)
        ;;
    *) fail "no such runtime: $runtime" ;;
esac
"$program" devices | grep -A 3 '^. *opencl:0:0 ' || skip "$runtime has no device here"
export CK_FORK=no OMP_WAIT_POLICY=passive CLATTN_TEST_DEVICES=$devices CLATTN_TEST_BUILD_SECONDS=5 CLATTN_PROPERTY_SECONDS=15
for suite in "${suites[@]}"; do
    timeout "$seconds" "$tests/test_$suite" >"$folder/$suite.txt" 2>&1 || {
        head -n 40 "$folder/$suite.txt"
        fail "$suite: failed, or not finished after $seconds s"
    }
    echo "$suite: $(grep -m 1 'Checks:' "$folder/$suite.txt")"
done
