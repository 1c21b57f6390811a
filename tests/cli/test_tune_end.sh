#!/usr/bin/env bash
# A tuner that is asked to end, by SIGINT and by SIGTERM, after its first kind of problem: that one is kept, in a file that counts; a
# sentence and the exit code say what happened.
#
#     test_tune_end.sh PROGRAM WORK_DIRECTORY
#
# SPDX-License-Identifier: Apache-2.0
set -u

program=$1 work=$2 device=opencl:0:0:gpu # rows of the GPU family: on most CPUs those of the CPU family are too few to choose from
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1
export CLATTN_CONFIG_DIR=$work/config
failures=0

failed() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

if ! "$program" tune --show --device $device >/dev/null 2>stderr; then
    echo "skipped: $(head -n 1 stderr)"
    exit 77
fi

# end_by SIGNAL CODE: send it once there is a file
end_by() {
    rm -rf config
    env --default-signal="$1" "$program" tune --op project --device $device --json all.json >stdout 2>stderr &
    local process=$! code
    while kill -0 $process 2>/dev/null && ! ls config/tune/*.json >/dev/null 2>&1; do sleep 0.02; done
    kill -s "$1" $process || failed "$1: it had ended: $(cat stderr)"
    wait $process
    code=$?
    [ $code -eq "$2" ] || failed "$1: exit code $code instead of $2: $(cat stderr)"
    grep -Eq "^clattn tune: ended by SIG$1 after [12] of 3 kinds of problems; they are kept in $work/config/tune/.*\.json$" stderr ||
        failed "$1: $(cat stderr)"
    [ "$(wc -l <stderr)" -eq 1 ] || failed "$1: more than a sentence: $(cat stderr)"
    grep -q "kinds of problems, " stdout || failed "$1: prints $(cat stdout)"
    cmp -s all.json config/tune/*.json || failed "$1: --json and the file differ"
    "$program" tune --show --device $device | grep -q "^project .*\(the default\|times as fast as\)" || failed "$1: the file does not count"
    local left=(config/tune/*)
    [ ${#left[@]} -eq 1 ] || failed "$1: ${left[*]} are left"
}

end_by INT 130
end_by TERM 143
[ $failures -eq 0 ]
