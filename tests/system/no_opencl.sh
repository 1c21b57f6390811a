#!/usr/bin/env bash
# no_opencl.sh ROOT PROGRAM: the program, run inside ROOT where there is no OpenCL loader, says so and attends natively.
#
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

root=${1%/} program=$2
fail() { echo "$*" >&2; exit 1; }
inside() { chroot "$root/" "$@"; }

# npy FILE: ones, float32, (2, 4)
npy() {
    local header="{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }" i
    {
        printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header"
        for ((i = 0; i < 8; i++)); do printf '\x00\x00\x80\x3f'; done
    } >"$1"
}

[[ -z $(find "$root/" -xdev -name 'libOpenCL.so*' -print -quit) ]] || fail "$root has an OpenCL loader"
unset CLATTN_DEVICE OCL_ICD_VENDORS

devices=$(inside "$program" devices)
printf '%s\n' "$devices"
grep -q -e 'libOpenCL' -e 'this build has no OpenCL' <<<"$devices" || fail 'devices does not say why there is no OpenCL'

work=$(mktemp -d -p "$root/")
trap 'rm -rf "$work"' EXIT
there=${work#"$root"}
npy "$work/ones.npy"
attend=("$program" attend --q "$there/ones.npy" --k "$there/ones.npy" --v "$there/ones.npy")
inside "${attend[@]}" --out "$there/out.npy" --explain 2>&1 | tee "$work/explanation"
grep -q native "$work/explanation" || fail 'auto did not take the native CPU'
cmp <(tail -c 32 "$work/ones.npy") <(tail -c 32 "$work/out.npy") || fail 'wrong result'

for device in gpu opencl opencl:0:0; do
    status=0
    inside "${attend[@]}" --device $device --out "$there/$device.npy" 2>"$work/error" || status=$?
    cat "$work/error"
    ((status == 1)) || fail "--device $device ended with $status, not 1"
    grep -q native "$work/error" || fail "the error for $device does not list what is there"
    [[ ! -e $work/$device.npy ]] || fail "a file was written for $device"
done

echo 'kernel void softmax(global const float *scores, global float *weights, int rows, int cols) {}' >"$work/empty.cl"
status=0
inside "$program" lab softmax --kernel "$there/empty.cl" >"$work/output" 2>"$work/error" || status=$?
cat "$work/error"
((status == 1)) || fail "the lab ended with $status, not 1"
grep -q -e 'libOpenCL' -e 'this build has no lab' "$work/error" || fail 'the lab does not say why there is none'
[[ ! -s $work/output ]] || fail 'the lab printed more than why there is none'
