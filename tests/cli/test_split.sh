#!/usr/bin/env bash
# --split-devices: on two devices the files are those of one, byte for byte; --explain shows the cut; who has no use for it says so.
#
#     test_split.sh PROGRAM NPY_TOOL WORK_DIRECTORY
#
# SPDX-License-Identifier: Apache-2.0
set -u

program=$1 npy=$2 work=$3
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1
export POCL_DEVICES='pthread pthread'
failures=0

failed() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

if ! "$program" tune --show --device opencl:0:1 >/dev/null 2>stderr; then
    echo "skipped: $(head -n 1 stderr)"
    exit 77
fi

make() { "$npy" make "$@" || failed "npy_tool make $*"; }
make q.npy f4 C 1 3 4 19 16
make k.npy f4 C 2 3 2 23 16
make v.npy f4 C 3 3 2 23 16
make x.npy f4 C 4 3 11 16
make w.npy f4 C 5 16 16
make h.npy f4 C 6 16 16

# same WORDS COMMAND ARGUMENT ...: both ways; the cut is told in these words
same() {
    local words=$1
    shift
    "$program" "$@" --out one.npy --device opencl:0:0 >stdout 2>stderr || failed "$1: $(cat stderr)"
    "$program" "$@" --out two.npy --device opencl:0:all --split-devices --explain --json run.json >stdout 2>stderr ||
        failed "$1 --split-devices: $(cat stderr)"
    cmp one.npy two.npy || failed "$1: two devices compute something else"
    grep -q "beside it, for plans with split_devices: opencl:0:1" stdout || failed "$1: $(cat stdout)"
    for n in 0 1; do
        grep -q "^  device $n, opencl:0:$n, .*$words" stdout || failed "$1: device $n is not in $(cat stdout)"
    done
}

same "key heads 0 to [01] of 2" attend --q q.npy --k k.npy --v v.npy --lse l.npy --causal top-left
same "batch [0-2] to [0-2] of 3: " mha --x x.npy --wq w.npy --wk w.npy --wv w.npy --wo w.npy --heads 2
same "batch [0-2] to [0-2] of 3: " rnn --x x.npy --w-in w.npy --w-h h.npy

# refused SENTENCE DEVICE
refused() {
    "$program" attend --q q.npy --k k.npy --v v.npy --out no.npy --split-devices --device "$2" >stdout 2>stderr
    [ $? -eq 2 ] || failed "$2: exit code $?"
    [ "$(cat stderr)" = "clattn attend: options: split_devices is 1, and $1" ] || failed "$2: $(cat stderr)"
    [ ! -e no.npy ] || failed "$2: an output is there"
}

refused "native has no use for it" native
refused "reference has no use for it" reference
"$program" attend --q q.npy --k k.npy --v v.npy --out one.npy --split-devices --explain --device opencl:0:0 >stdout 2>stderr ||
    failed "one device: $(cat stderr)"
grep -q "^not split over devices: the context has one device" stdout || failed "one device: $(cat stdout)"
[ $failures -eq 0 ]
