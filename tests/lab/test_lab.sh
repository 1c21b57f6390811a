#!/usr/bin/env bash
# The lab from outside: each planted kernel gets its own verdict, each solution passes.
#
#     test_lab.sh PROGRAM WITHOUT_LANDLOCK WORK_DIRECTORY
#
# SPDX-License-Identifier: Apache-2.0
set -u

program=$1 without_landlock=$2 work=$3 here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1
failures=0
unset CLATTN_DEVICE
export TMPDIR=$work LC_ALL=C
has_oclgrind=false

failed() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

# lab CODE ARGUMENT ...: the exit code is CODE; what was printed is kept, in `out`. A machine with other work gets time.
lab() {
    local expected=$1 code limit=(--limit 60)
    shift
    [[ $* != *--limit* ]] || limit=()
    "${prefix[@]}" "$program" lab "$@" "${limit[@]}" >out 2>err </dev/null
    code=$?
    [ $code -eq "$expected" ] || failed "clattn lab $*: exit code $code instead of $expected: $(cat err out)"
}
prefix=()

says() { grep -qF -- "$1" out || failed "\"$1\" is not in: $(cat out err)"; }
says_not() { ! grep -qF -- "$1" out || failed "\"$1\" is in: $(cat out)"; }

# planted FILE VERDICT [ARGUMENT ...]: a softmax that is not accepted, by the device
planted() {
    local file=$1 verdict=$2
    shift 2
    lab 1 softmax --kernel "$here/planted/$file.cl" --no-timing --no-oclgrind "$@"
    says "verdict: $verdict ("
}
# simulated FILE VERDICT: by the simulator
simulated() {
    local file=$1 verdict=$2
    lab 1 softmax --kernel "$here/planted/$file.cl" --no-timing
    says "verdict: $verdict ("
}

# ---- a device, or nothing can be tested -----------------------------------------------------------------------------

if ! "$program" lab softmax --kernel "$here/ladder/softmax_1_naive.cl" --no-timing --limit 60 >out 2>err &&
    grep -qE 'no lab|libOpenCL|no such device|PLATFORM' err; then
    echo "skipped: $(cat err)"
    exit 77
fi
says 'verdict: correct'
says 'isolation: '
isolated=false
grep -q 'isolation: full' out && isolated=true
grep -q 'oclgrind: ok' out && has_oclgrind=true
$has_oclgrind || echo 'oclgrind is not installed: without its verdicts'
$isolated || echo 'isolation is partial here: what full isolation forbids is not tested'

# ---- planted kernels ------------------------------------------------------------------------------------------------

planted build 'build error'
says 'build.cl:4:'
says 'line 4: weights[i] = scores[i] +;'
planted name 'wrong contract'
says 'there is no kernel called softmax'
planted contract 'wrong contract'
says 'argument 2, weights, is a global int* instead of a global float*'
says 'line 2: kernel void softmax'

planted hang 'hang' --limit 5
says 'one work-group: rows'
says 'is still running after 5 s'
planted half 'hang' --limit 5
planted print 'wrong'
says 'the kernel printed:'
says 'row of 37 columns: 1.500000'
planted tail 'wrong'
says 'likely cause: a tail: all is right up to column'
says 'first wrong element: row 0, column'
says 'never written'
says '?'
planted maximum 'wrong'
says 'large scores'
says 'likely cause: a missing maximum'
lab 1 softmax --kernel "$here/planted/zeros.cl" --no-timing --no-oclgrind --lang zh
says '结论：结果错误 ('
says '可能的原因：所有元素都是零'
planted zeros 'wrong'
says 'likely cause: every element is zero'
planted replay 'wrong'
says 'likely cause: these are the results of an earlier launch'
planted crash 'crash'
says 'one work-group: rows 5, cols 37'
says 'the process that ran it was ended by signal'
planted far 'out of bounds'
says 'writes element 4194489 of weights, which has 185'
planted near 'out of bounds'
says 'of weights, which has'
planted input 'out of bounds'
says 'writes into its input scores'
if $has_oclgrind; then
    simulated barrier 'race'
    says 'likely cause: a missing barrier'
    says 'row_sum += sums[k]'
    simulated far 'out of bounds'
    says 'weights[rows * cols + (1 << 22)] = row_sum;'
    simulated divergent 'hang'
    says 'wait at different barriers'
fi
lab 1 softmax --kernel "$here/planted/barrier.cl" --no-timing --no-oclgrind
grep -qE 'verdict: (wrong|unstable) \(' out || failed "a missing barrier passes where there is no simulator: $(cat out)"

# ---- a time that cannot be ---------------------------------------------------------------------------------------------

# Data are fresh for every launch and all of the output is checked, so a kernel that computes within its launch cannot be faster
# than arithmetic and bytes allow. One that plays the worker can: it computes before the launch is asked for, and answers at once.
if [ "$(uname -m)" = x86_64 ]; then
    lab 1 weighted-values --kernel "$here/planted/early.cl" --no-oclgrind --json early.json
    says 'shapes: 7 of 7'
    says 'verdict: correct'
    says 'not believed: one launch took'
    says 'this device takes at least'
    says_not '% of peak'
    [ ! -e early.json ] || grep -q '"believed":[[:space:]]*false' early.json || failed "early.json: $(cat early.json)"
    lab 1 weighted-values --kernel "$here/planted/early.cl" --no-oclgrind --lang zh
    says '不可信：'
else
    echo 'the kernel that answers before it is asked is for x86-64: not tested here'
fi

# ---- files: kept away, or at least warned of ------------------------------------------------------------------------

secret=$HOME/.clattn-lab-secret.$$ made=$HOME/.clattn-lab-made.$$
trap 'rm -f "$secret" "$made"' EXIT
echo '#error SECRET-4711' >"$secret"
sed "s|@FILE@|$secret|" "$here/planted/include.cl" >include.cl
sed "s|@FILE@|$made|" "$here/planted/asm.cl" >asm.cl
if $isolated; then
    lab 1 softmax --kernel include.cl
    says 'verdict: build error ('
    says_not SECRET-4711
    says_not 'warning: line'
    lab 0 softmax --kernel asm.cl --no-timing --no-oclgrind
    [ ! -e "$made" ] || failed 'assembly made a file in spite of full isolation'
fi
prefix=("$without_landlock")
lab 1 softmax --kernel include.cl
says 'isolation: partial: '
says 'warning: line 2 includes a file'
lab 0 softmax --kernel asm.cl --no-timing --no-oclgrind
says 'isolation: partial: '
says 'is assembly: isolation is partial'
[ "$(uname -m)" != x86_64 ] || [ -e "$made" ] || failed 'the planted kernel does not make its file even where it could: it tests nothing'
prefix=()

# ---- solutions ------------------------------------------------------------------------------------------------------

for solution in "$here"/ladder/*.cl; do
    step=$(basename "$solution")
    step=${step%%_*}
    lab 0 "$step" --kernel "$solution" --no-timing
    says 'verdict: correct'
done
lab 0 softmax --kernel "$here/ladder/softmax_2_group.cl" --json result.json
says '% of peak, ours'
if grep -q 'no JSON' err; then
    echo 'no cJSON in this build: no JSON is tested'
else
    grep -q '"verdict":[[:space:]]*"correct"' result.json || failed "result.json: $(cat result.json)"
    grep -q '"yours_percent_of_peak"' result.json || failed "result.json: $(cat result.json)"
fi

# Starters compile and obey the contract, but are not right yet.
for starter in "$here"/../../lessons/lab/*.cl; do
    step=$(basename "$starter")
    step=${step%%_*}
    [ -e "$here/ladder/$(basename "$starter")" ] || failed "$starter has no solution"
    lab 1 "$step" --kernel "$starter" --no-timing --no-oclgrind
    says 'verdict: wrong (one work-group: '
done
for solution in "$here"/ladder/*.cl; do
    [ -e "$here/../../lessons/lab/$(basename "$solution")" ] || failed "$solution has no starter"
done

# ---- watching -------------------------------------------------------------------------------------------------------

# watched_runs N: as many runs are over within a minute
watched_runs() {
    local tries
    for ((tries = 0; tries < 600; tries++)); do
        [ "$(grep -c '^watching' watch.out)" -ge "$1" ] && return
        sleep 0.1
    done
    failed "no run $1 after the file was saved: $(cat watch.out)"
}
cp "$here/ladder/softmax_1_naive.cl" watched.cl
"$program" lab softmax --kernel watched.cl --no-timing --no-oclgrind --limit 60 --watch >watch.out 2>&1 </dev/null &
watcher=$!
watched_runs 1
grep -q 'verdict: correct' watch.out || failed "watching: $(cat watch.out)"
cp "$here/planted/zeros.cl" watched.new && mv watched.new watched.cl # as editors do
watched_runs 2
kill "$watcher"
code=0
wait "$watcher" || code=$?
[ $code -eq 1 ] || failed "watching ended with $code instead of the last verdict's 1"
cp watch.out out
says 'likely cause: every element is zero'

# ---- mistakes of the command line -----------------------------------------------------------------------------------

# bad CODE WORDS ARGUMENT ...: one sentence
bad() {
    local code=$1 words=$2
    shift 2
    lab "$code" "$@"
    if [ "$(wc -l <err)" -ne 1 ] || ! grep -qF -- "$words" err; then failed "clattn lab $*: $(cat err)"; fi
}
bad 2 'did you mean softmax?' sofmax --kernel x.cl
bad 2 'No such file' softmax --kernel x.cl
bad 2 '--kernel is missing' softmax
bad 2 'wants STEP' --kernel x.cl
bad 2 'needs an OpenCL device' softmax --kernel "$here/ladder/softmax_1_naive.cl" --device native
bad 1 'no such device' softmax --kernel "$here/ladder/softmax_1_naive.cl" --device opencl:77:0
sed 's/^/\/\/ lab: local 0 tile 5\n/;q' "$here/ladder/softmax_1_naive.cl" >grid.cl
lab 1 softmax --kernel grid.cl
says 'verdict: wrong contract ('
says 'line 1: // lab: local 0 tile 5'

[ -z "$(find "$work" -name 'clattn-lab-*')" ] || failed "scratch folders are left: $(find "$work" -name 'clattn-lab-*')"
[ $failures -eq 0 ] && echo 'the lab: all as it should be'
exit $((failures > 0))
