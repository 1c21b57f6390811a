#!/usr/bin/env bash
# The program as its users meet it: results, exit codes, sentences, and that nothing half-written stays behind.
#
#     test_cli.sh PROGRAM NPY_TOOL WORK_DIRECTORY
#
# SPDX-License-Identifier: Apache-2.0
set -u

program=$1 npy=$2 work=$3
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1
failures=0
export CLATTN_DEVICE=reference # what is tested here is the program, not the kernels

failed() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

make() { "$npy" make "$@" || failed "npy_tool make $*"; }

# run CODE ARGUMENT ...: the exit code is CODE; stdout and stderr are kept
run() {
    local expected=$1 code
    shift
    "$program" "$@" >stdout 2>stderr
    code=$?
    [ $code -eq "$expected" ] || failed "clattn $*: exit code $code instead of $expected; stderr: $(cat stderr)"
}

# good ARGUMENT ...: it succeeds and says nothing on stderr
good() {
    run 0 "$@"
    [ ! -s stderr ] || failed "clattn $*: said $(cat stderr)"
}

# prints WORDS: the last command did, on stdout
prints() { grep -qF -- "$1" stdout || failed "\"$1\" is not in what was printed: $(head -n 5 stdout)"; }

# bad CODE WORDS ARGUMENT ...: it fails with one sentence that holds the words and leaves no file in out/
bad() {
    local code=$1 words=$2
    shift 2
    mkdir -p out
    run "$code" "$@"
    [ "$(wc -l <stderr)" -eq 1 ] || failed "clattn $*: stderr is not one line: $(cat stderr)"
    grep -q "^clattn $1: " stderr || failed "clattn $*: starts otherwise: $(cat stderr)"
    grep -qF -- "$words" stderr || failed "clattn $*: \"$(cat stderr)\" does not say \"$words\""
    [ ! -s stdout ] || failed "clattn $*: printed on stdout"
    [ -z "$(ls -A out)" ] || failed "clattn $*: left $(ls -A out)"
    rm -rf out
}

# same FILE FILE: equal shapes and numbers, whatever their types
same() { diff <("$npy" show "$1" | cut -d' ' -f3-) <("$npy" show "$2" | cut -d' ' -f3-) >/dev/null || failed "$1 and $2 differ"; }
numbers() { "$npy" show "$1" | tail -n +2; }
# head FILE TEXT: type, order and shape
head_is() { [ "$("$npy" show "$1" | head -n 1)" = "$2" ] || failed "$1 is $("$npy" show "$1" | head -n 1), not $2"; }

# close_numbers A B: as many numbers, one a line, pairwise within 1e-5
close_numbers() {
    paste -d' ' "$1" "$2" | awk '
        NF != 2 || $1 != $2 "" && !($1 - $2 < 1e-5 && $2 - $1 < 1e-5) { bad = 1 }
        END { exit bad }'
}
# near FILE NUMBER ...: it holds these numbers
near() {
    local file=$1
    shift
    close_numbers <(numbers "$file") <(printf '%s\n' "$@") || failed "$file holds $(numbers "$file" | tr '\n' ' '), not $*"
}
# alike FILE FILE: near numbers, in whatever shape
alike() { close_numbers <(numbers "$1") <(numbers "$2") || failed "$1 and $2 differ"; }

# raw FILE DESCR SHAPE BYTES: a file of that header and so many zero bytes
raw() {
    local header
    header=$(printf "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" "$2" "$3")
    {
        printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header"
        head -c "$4" /dev/zero
    } >"$1"
}

# ---- help, version, mistakes in the command itself
good
prints attend
good help
good --help
good --version
grep -qE '^clattn [0-9]+\.[0-9]+\.[0-9]+$' stdout || failed "--version prints $(cat stdout)"
for command in attend mha project rnn lstm devices bench; do
    good help $command
    prints "usage: clattn $command"
    [ "$(awk 'length > 80' stdout | wc -l)" -eq 0 ] || failed "help $command is wider than 80 columns"
    cp stdout help
    good $command --help
    cmp -s stdout help || failed "help $command and $command --help differ"
done
bad 2 "did you mean attend?" atend
bad 2 "clattn help lists them" xyzzy
bad 2 "one command" help attend mha
if [ -e /dev/full ]; then
    "$program" help >/dev/full 2>stderr
    [ $? -eq 1 ] || failed "clattn help >/dev/full succeeds"
fi

# ---- attend: zero scores make every live key weigh the same, so that the results are known
raw q0.npy '<f4' '(2, 3)' 24
raw k0.npy '<f4' '(4, 3)' 48
make v.npy f4 C 1 4 1
mapfile -t v < <(numbers v.npy)
# mean N: of the first N values
mean() { printf '%s\n' "${v[@]:0:$1}" | awk '{ s += $1 } END { printf "%.6f", s / NR }'; }
zero=(--q q0.npy --k k0.npy --v v.npy --out o.npy)
good attend "${zero[@]}" --lse l.npy --weights w.npy --scores s.npy
near o.npy "$(mean 4)" "$(mean 4)"
near l.npy 1.386294 1.386294
near w.npy .25 .25 .25 .25 .25 .25 .25 .25
near s.npy 0 0 0 0 0 0 0 0
head_is o.npy "float32 C (2, 1)"
head_is l.npy "float32 C (2,)"
head_is w.npy "float32 C (2, 4)"
good attend "${zero[@]}" --lse l.npy --causal top-left
near o.npy "$(mean 1)" "$(mean 2)"
near l.npy 0 .693147
good attend "${zero[@]}" --lse l.npy --causal bottom-right
near o.npy "$(mean 3)" "$(mean 4)"
good attend "${zero[@]}" --lse l.npy --causal past --past-len 1
near o.npy "$(mean 2)" "$(mean 3)"
good attend "${zero[@]}" --lse l.npy --causal -1
near o.npy 0 "$(mean 1)"
near l.npy -inf 0

# Ranks, orders and types hold the same numbers and give the same.
make q.npy f4 C 1 2 4 6 5
make k.npy f4 C 2 2 2 7 5
make v.npy f4 C 3 2 2 7 3
good attend --q q.npy --k k.npy --v v.npy --out o.npy --lse l.npy --weights w.npy
head_is o.npy "float32 C (2, 4, 6, 3)"
head_is l.npy "float32 C (2, 4, 6)"
head_is w.npy "float32 C (2, 4, 6, 7)"
for name in q k v; do
    shape=$("$npy" show $name.npy | head -n 1 | tr -d '(),' | cut -d' ' -f3-)
    case $name in q) seed=1 ;; k) seed=2 ;; v) seed=3 ;; esac
    # shellcheck disable=SC2086
    make ${name}f.npy f4 F $seed $shape
    # shellcheck disable=SC2086
    make ${name}8.npy f8 F $seed $shape
    same $name.npy ${name}f.npy
    same $name.npy ${name}8.npy
done
good attend --q qf.npy --k kf.npy --v vf.npy --out of.npy --lse lf.npy --weights wf.npy
same o.npy of.npy
same l.npy lf.npy
same w.npy wf.npy
run 0 attend --q q8.npy --k k.npy --v v8.npy --out o8.npy --lse l8.npy --weights w8.npy
[ "$(grep -c 'note: .*float64.*float32' stderr)" -eq 2 ] || failed "float64 is converted without a word: $(cat stderr)"
head_is o8.npy "float64 C (2, 4, 6, 3)"
head_is l8.npy "float32 C (2, 4, 6)"
same o.npy o8.npy
for shape in "6 5" "1 6 5" "1 1 6 5"; do
    # shellcheck disable=SC2086
    make q2.npy f4 C 1 $shape
    good attend --q q2.npy --k q2.npy --v q2.npy --out o2.npy
    [ "$shape" = "6 5" ] && numbers o2.npy >first
    numbers o2.npy | cmp -s - first || failed "shape ($shape) gives other numbers"
done
make empty.npy f4 C 1 0 5
make three.npy f4 C 1 3 5
good attend --q three.npy --k empty.npy --v empty.npy --out o2.npy --lse l2.npy
near l2.npy -inf -inf -inf
good attend --q empty.npy --k three.npy --v three.npy --out o2.npy
head_is o2.npy "float32 C (0, 5)"
cp three.npy query.npy
good attend --q /dev/stdin --k three.npy --v three.npy --out /dev/null <query.npy

# ---- mha and project agree with attend
make x.npy f4 C 4 6 10
for name in q k v; do make w$name.npy f4 C 5 10 8; done
make bq.npy f4 C 6 8
weights=(--x x.npy --wq wq.npy --wk wk.npy --wv wv.npy --bq bq.npy --heads 2)
good project "${weights[@]}" --q pq.npy --k pk.npy --v pv.npy
head_is pq.npy "float32 C (2, 6, 4)"
good attend --q pq.npy --k pk.npy --v pv.npy --out po.npy --weights pw.npy --causal top-left
good mha "${weights[@]}" --out mo.npy --weights mw.npy --causal top-left
head_is mo.npy "float32 C (6, 8)"
alike pw.npy mw.npy
weights[${#weights[@]}-1]=1
good project "${weights[@]}" --q pq.npy --k pk.npy --v pv.npy
good attend --q pq.npy --k pk.npy --v pv.npy --out po.npy
good mha "${weights[@]}" --out mo.npy
alike po.npy mo.npy
raw wo.npy '<f4' '(8, 10)' 320
good mha "${weights[@]}" --wo wo.npy --residual --out mo.npy
same mo.npy x.npy

# ---- rnn and lstm with zero weights
raw w-in.npy '<f4' '(2, 3)' 24
raw w-h.npy '<f4' '(2, 2)' 16
raw w-in4.npy '<f4' '(8, 3)' 96
raw w-h4.npy '<f4' '(8, 2)' 64
make x.npy f4 C 7 5 3
make c0.npy f4 C 8 2
tanh() { numbers "$1" | awk '{ e = exp(2 * $1); printf "%.6f ", (e - 1) / (e + 1) }'; }
good rnn --x x.npy --w-in w-in.npy --w-h w-h.npy --bias c0.npy --out o.npy --h-n h.npy
head_is o.npy "float32 C (5, 2)"
# shellcheck disable=SC2046
near h.npy $(tanh c0.npy)
good lstm --x x.npy --w-in w-in4.npy --w-h w-h4.npy --c0 c0.npy --forget-bias 100 --out o.npy --c-n c.npy
same c.npy c0.npy

# ---- options
files=(--q three.npy --k three.npy --v three.npy --out out/o.npy)
bad 2 "--q, --k, --v, --out are missing" attend
bad 2 "--out is missing" attend --q three.npy --k three.npy --v three.npy
bad 2 "there is no option --casual; did you mean --causal?" attend "${files[@]}" --casual past
bad 2 "there is no option -x" attend -x
bad 2 "--s is ambiguous: --scores or --scale?" attend "${files[@]}" --s 1
bad 2 "--out is given twice" attend "${files[@]}" --out out/p.npy
bad 2 "--lse wants an argument" attend "${files[@]}" --lse
bad 2 "--explain takes no argument" attend "${files[@]}" --explain=yes
bad 2 "\"stray\" belongs to no option" attend "${files[@]}" stray
bad 2 "--lse is given an empty text" attend "${files[@]}" --lse ""
bad 2 "--scale wants a finite number, not \"nan\"" attend "${files[@]}" --scale nan
bad 2 "--scale 1e+300 is too large" attend "${files[@]}" --scale 1e300
bad 2 "--threads wants an integer from 1 to 65536, not \"0\"" attend "${files[@]}" --threads 0
bad 2 "--algorithm wants auto|staged|fused, not \"quick\"" attend "${files[@]}" --algorithm quick
bad 2 "top-left, bottom-right, past or an integer, not \"left\"" attend "${files[@]}" --causal left
bad 2 "--causal past needs --past-len" attend "${files[@]}" --causal past
bad 2 "--past-len is for --causal past" attend "${files[@]}" --past-len 3
bad 2 "--past-len is for --causal past" attend "${files[@]}" --causal 3 --past-len 3
bad 2 "--algorithm fused never has --weights in memory" attend "${files[@]}" --algorithm fused --weights out/w.npy
bad 2 "--heads wants an integer from 1" mha --heads 0
bad 2 "none of --q, --k and --v" project --x x.npy --heads 2
bad 2 "--q needs --wq" project --x x.npy --heads 2 --q out/q.npy
bad 2 "--wq is given, and --q is not" project --x x.npy --heads 2 --wq wq.npy
bad 2 "there is no option --c0" rnn --c0 c0.npy
good attend --q three.npy --k three.npy --v three.npy --ou o.npy --expl
[ -s stdout ] || failed "--explain prints nothing"

# ---- devices
bad 2 "\"quantum\"" attend "${files[@]}" --device quantum
CLATTN_DEVICE=quantum bad 2 "\"quantum\"" attend "${files[@]}"
mkdir out
run 1 attend "${files[@]}" --device opencl:99:99
grep -q "^clattn attend: .*opencl:99:99" stderr || failed "a device that is not there: $(cat stderr)"
[ -z "$(ls -A out)" ] || failed "a device that is not there leaves $(ls -A out)"
rm -r out
good devices
prints "native"
prints "* auto picks"

# ---- JSON, or the sentence that says why there is none
"$program" devices --json - >stdout 2>stderr
case $? in
0)
    [ "$(head -c 1 stdout)" = "{" ] || failed "devices --json - prints $(head -n 3 stdout)"
    prints '"auto":'
    run 0 attend --q three.npy --k three.npy --v three.npy --out o.npy --explain --json -
    [ "$(head -c 1 stdout)" = "{" ] || failed "attend --json - prints $(head -n 3 stdout)"
    prints '"workspace_bytes":'
    [ -s stderr ] || failed "--explain is lost beside --json -"
    good attend --q three.npy --k three.npy --v three.npy --out o.npy --json o.json
    grep -q '"reference"' o.json || failed "--json o.json holds $(cat o.json)"
    bad 2 "--out and --json name the same file" attend "${files[@]}" --json out/o.npy
    ;;
2) bad 2 "libcjson-dev" attend "${files[@]}" --json - ;;
*) failed "devices --json -: $(cat stderr)" ;;
esac

# ---- input files
bad 2 "--q: missing.npy: it cannot be opened: No such file" attend --q missing.npy --k three.npy --v three.npy --out out/o.npy
bad 2 "it is not a regular file" attend --q . --k three.npy --v three.npy --out out/o.npy
bad 2 "arrays are not read or written through pipes" attend --q - --k three.npy --v three.npy --out out/o.npy
bad 2 "arrays are not read or written through pipes" attend --q three.npy --k three.npy --v three.npy --out -
echo "not numpy" >text.npy
bad 2 "--v: text.npy: it is not a .npy file" attend --q three.npy --k three.npy --v text.npy --out out/o.npy
size=$(wc -c <three.npy)
for cut in 0 5 7 9 40 127 128 $((size - 1)); do
    head -c "$cut" three.npy >cut.npy
    bad 2 "--k: cut.npy: it is" attend --q three.npy --k cut.npy --v three.npy --out out/o.npy
done
{ cat three.npy && printf x; } >long.npy
bad 2 "goes on after its data" attend --q three.npy --k long.npy --v three.npy --out out/o.npy
raw half.npy '<f2' '(3, 5)' 30
bad 2 "elements of type '<f2'" attend --q half.npy --k three.npy --v three.npy --out out/o.npy
raw huge.npy '<f4' '(4611686018427387904, 4)' 0
bad 2 "larger than an index holds" attend --q huge.npy --k three.npy --v three.npy --out out/o.npy

# ---- shapes
make one.npy f4 C 1 5
make other.npy f4 C 1 3 4
make rank3.npy f4 C 1 2 3 5
make heads3.npy f4 C 1 3 3 5
bad 2 "has shape (5,) where (len, dim) or (heads, len, dim) or (batch, heads, len, dim) is wanted" \
    attend --q one.npy --k three.npy --v three.npy --out out/o.npy
bad 2 "--k: rank3.npy has shape (2, 3, 5) where --q makes it (len, dim)" \
    attend --q three.npy --k rank3.npy --v three.npy --out out/o.npy
bad 2 "dim is 4 and must be 5" attend --q three.npy --k other.npy --v other.npy --out out/o.npy
bad 2 "heads" attend --q heads3.npy --k rank3.npy --v rank3.npy --out out/o.npy
bad 2 "--wq: one.npy has shape (5,) where (rows, columns) is wanted" \
    mha --x three.npy --wq one.npy --wk one.npy --wv one.npy --heads 1 --out out/o.npy
bad 2 "w_q" mha --x three.npy --wq wq.npy --wk wk.npy --wv wv.npy --heads 1 --out out/o.npy
bad 2 "w_h" rnn --x x.npy --w-in w-in.npy --w-h w-h4.npy --out out/o.npy
bad 2 "--h0: rank3.npy has shape (2, 3, 5)" rnn --x x.npy --w-in w-in.npy --w-h w-h.npy --h0 rank3.npy --out out/o.npy

# ---- output files
bad 2 "--out and --lse name the same file" attend "${files[@]}" --lse out/o.npy
bad 2 "--out and --lse name the same file" attend "${files[@]}" --lse ./out/../out/o.npy
cp three.npy in.npy
bad 2 "--out and --q name the same file" attend --q in.npy --k three.npy --v three.npy --out in.npy
ln -sf in.npy link.npy
bad 2 "--out and --q name the same file" attend --q in.npy --k three.npy --v three.npy --out link.npy
cmp -s in.npy three.npy || failed "a refused command changed its input"
bad 2 "cannot write missing/o.npy" attend --q three.npy --k three.npy --v three.npy --out missing/o.npy
bad 2 "cannot write ." attend --q three.npy --k three.npy --v three.npy --out out/w.npy --lse .
bad 2 "cannot write three.npy/o.npy" attend --q three.npy --k three.npy --v three.npy --out three.npy/o.npy
if [ -d /proc/self ]; then # nobody, not even root, makes files there
    bad 2 "--lse: cannot write /proc/self/o.npy" attend "${files[@]}" --lse /proc/self/o.npy
fi
if [ -e /dev/full ]; then bad 1 "cannot write /dev/full" attend "${files[@]}" --lse /dev/full; fi

# A disk that fills up in the second file: the first is what it was, and nothing else is there.
make many.npy f4 C 1 1000 2
make few.npy f4 C 1 8 2
mkdir out
echo before >out/first.npy
code=$(
    ulimit -f 12 # KiB; the first file takes 8, the second 32
    "$program" attend --q many.npy --k few.npy --v few.npy --out out/first.npy --weights out/second.npy 2>stderr
    echo $?
)
[ "$code" -eq 1 ] || failed "a full disk gives exit code $code"
grep -q "^clattn attend: cannot write out/second.npy: " stderr || failed "a full disk says $(cat stderr)"
[ "$(cat out/first.npy)" = before ] || failed "a full disk changed the file before"
[ "$(ls -A out)" = first.npy ] || failed "a full disk left $(ls -A out)"
good attend --q many.npy --k few.npy --v few.npy --out out/first.npy --weights out/second.npy
head_is out/second.npy "float32 C (1000, 8)"

[ $failures -eq 0 ] || echo "$failures failed" >&2
[ $failures -eq 0 ]
