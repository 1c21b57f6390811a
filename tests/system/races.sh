#!/usr/bin/env bash
# races.sh WATCH PROGRAM FOLDER [ROW|long]: test_races under what watches accesses: oclgrind (races, uninitialized) or
# valgrind (memcheck).
#
# SPDX-License-Identifier: Apache-2.0
#
# oclgrind's ICD takes from the environment what the command of that name would set; the command itself preloads a library, which a
# program that loads OpenCL when it runs does not see. Its interpreter lacks an intrinsic that clang's optimizer inserts: programs
# stay as they were written.
set -euo pipefail

watch=$1 program=$2 folder=$3 row=("${@:4}")

# Make FOLDER a list of one OpenCL driver, oclgrind's.
use_oclgrind() {
    local prefix icd
    prefix=$(dirname -- "$(dirname -- "$(command -v oclgrind)")") || return 1
    icd=$(find "$prefix"/lib* -name liboclgrind-rt-icd.so 2>/dev/null | head -n 1)
    [[ -n $icd ]] || return 1
    rm -rf "$folder"
    mkdir -p "$folder"
    echo "$icd" >"$folder/oclgrind.icd"
    export OCL_ICD_VENDORS=$folder/ OCLGRIND_LOG=$folder/log OCLGRIND_CHECK_API=1 OCLGRIND_NUM_THREADS=1
    export OCLGRIND_MAX_ERRORS=1000000 # after so many it is silent, of other kernels as well
    export OCLGRIND_LOCAL_MEM_SIZE=65536 OCLGRIND_BUILD_OPTIONS=-disable-llvm-passes
}

export CK_FORK=no CLATTN_KERNEL_CACHE=0 CLATTN_SELF_CHECK=0 # its cases are tests of their own
case $watch in
    races)
        use_oclgrind || { echo 'skipped: no oclgrind'; exit 77; }
        OCLGRIND_BUILD_OPTIONS+=' -D MMA_WATCHED=1' OCLGRIND_DATA_RACES=1 "$program" "$watch" "${row[@]}"
        ;;
    uninitialized)
        use_oclgrind || { echo 'skipped: no oclgrind'; exit 77; }
        OCLGRIND_UNINITIALIZED=1 "$program" "$watch" "${row[@]}"
        ;;
    memcheck)
        command -v valgrind >/dev/null || { echo 'skipped: no valgrind'; exit 77; }
        OMP_NUM_THREADS=1 valgrind -q --error-exitcode=1 "$program" "$watch" "${row[@]}"
        ;;
    *) echo "what is to be watched: races, uninitialized or memcheck, not $watch" && exit 2 ;;
esac
