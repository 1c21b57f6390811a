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
export CLATTN_CONFIG_DIR=$work/config

failed() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

make() { "$npy" make "$@" || failed "npy_tool make $*"; }
put() { "$npy" put "$@" || failed "npy_tool put $*"; }

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

# close_numbers A B [DISTANCE]: as many numbers, one a line, pairwise within 1e-5 or the distance
close_numbers() {
    paste -d' ' "$1" "$2" | awk -v most="${3:-1e-5}" '
        NF != 2 || $1 != $2 "" && !($1 - $2 < most && $2 - $1 < most) { bad = 1 }
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
for command in attend merge mha project rnn lstm devices cache bench tune lesson; do
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
good attend --q q8.npy --k k.npy --v v8.npy --out o8.npy --lse l8.npy --weights w8.npy
head_is o8.npy "float64 C (2, 4, 6, 3)"
head_is l8.npy "float32 C (2, 4, 6)"
head_is w8.npy "float64 C (2, 4, 6, 7)"
alike o.npy o8.npy
run 0 attend --q q.npy --k k8.npy --v v8.npy --out o8.npy
[ "$(grep -c 'note: .*float64.*float32' stderr)" -eq 2 ] || failed "float64 is converted without a word: $(cat stderr)"
same o.npy o8.npy
for type in f2 u2; do
    for name in q k v; do
        shape=$("$npy" show $name.npy | head -n 1 | tr -d '(),' | cut -d' ' -f3-)
        case $name in q) seed=1 ;; k) seed=2 ;; v) seed=3 ;; esac
        # shellcheck disable=SC2086
        make ${name}h.npy $type C $seed $shape
    done
    short=() name=float16
    [ $type = u2 ] && short=(--bf16) && name=uint16
    good attend --q qh.npy --k kh.npy --v vh.npy --out oh.npy --lse lh.npy "${short[@]}"
    head_is oh.npy "$name C (2, 4, 6, 3)"
    close_numbers <(numbers l.npy) <(numbers lh.npy) .01 || failed "$type is far from float32"
    close_numbers <(numbers o.npy) <(numbers oh.npy) .01 || failed "$type is far from float32"
done
bad 2 "holds uint16; if that is bfloat16, --bf16 says so" attend --q qh.npy --k kh.npy --v vh.npy --out out/o.npy
bad 2 "--bf16 is given, and no file holds uint16" attend --q q.npy --k k.npy --v v.npy --out out/o.npy --bf16
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

# ---- attend's options, where what they do is known
v() { mapfile -t v < <(numbers "$1"); }
# some FIRST COUNT: the mean of so many values from FIRST, from 0, on
some() { printf '%s\n' "${v[@]:$1:$2}" | awk '{ s += $1 } END { printf "%.6f", s / NR }'; }
make v.npy f4 C 1 4 1
v v.npy
put m.npy b1 2,4 1 0 0 0 1 1 0 0
good attend "${zero[@]}" --mask m.npy
near o.npy "$(mean 1)" "$(mean 2)"
put m.npy u1 1,2,1 1 0
good attend --q q0.npy --k k0.npy --v v.npy --out o.npy --lse l.npy --mask m.npy # one key: the rest is masked
near o.npy "$(mean 1)" 0
near l.npy 0 -inf
put m.npy b1 2 1 1
good attend "${zero[@]}" --mask m.npy
near o.npy "$(mean 2)" "$(mean 2)"
put m.npy b1 "" 1
good attend "${zero[@]}" --mask m.npy
near o.npy "$(mean 4)" "$(mean 4)"
for type in f2 f4 f8; do
    put b.npy $type 4 0 0 -inf -inf
    run 0 attend "${zero[@]}" --bias b.npy --scores s.npy --scores-mode bias
    { [ $type = f8 ] && grep -q "note: .*float64 and is computed in float32" stderr; } || [ ! -s stderr ] ||
        failed "a bias of $type: $(cat stderr)"
    near o.npy "$(mean 2)" "$(mean 2)"
    near s.npy 0 0 -inf -inf 0 0 -inf -inf
done
put b.npy u1 2 3 3 # 3 added to the first two, the rest masked
good attend "${zero[@]}" --bias b.npy --scores s.npy --scores-mode bias
near s.npy 3 3 -inf -inf 3 3 -inf -inf
run 0 attend "${zero[@]}" --window 0,0
grep -q "note: query 0 stands at key 0" stderr || failed "nothing says where queries stand: $(cat stderr)"
good attend "${zero[@]}" --window 0,0 --align top-left
near o.npy "${v[0]}" "${v[1]}"
good attend "${zero[@]}" --window 1,-1 --align bottom-right
near o.npy "$(some 1 3)" "$(some 2 2)"
good attend "${zero[@]}" --window -1,-1 --align bottom-right
near o.npy "$(mean 4)" "$(mean 4)"
good attend "${zero[@]}" --window -1,1 --causal past --past-len 1 --align past
near o.npy "$(mean 2)" "$(mean 3)"
good attend "${zero[@]}" --causal-offset 2 --causal 2 --align 2
near o.npy "$(mean 3)" "$(mean 4)"
good attend "${zero[@]}" --causal top-left --causal-offset 0
near o.npy "$(mean 1)" "$(mean 2)"
put n.npy i4 1 3
good attend "${zero[@]}" --kv-lengths n.npy
near o.npy "$(mean 3)" "$(mean 3)"
put n.npy i8 1 3
good attend "${zero[@]}" --kv-lengths n.npy --causal bottom-right
near o.npy "$(mean 2)" "$(mean 3)"
put sink.npy f8 1 0
good attend "${zero[@]}" --sinks sink.npy --lse l.npy
near l.npy 1.609438 1.609438
near o.npy "$(some 0 4 | awk '{ print $1 * .8 }')" "$(some 0 4 | awk '{ print $1 * .8 }')"
put slope.npy f2 1 .00390625
good attend "${zero[@]}" --alibi standard --align top-left --scores s.npy --scores-mode bias
near s.npy 0 -.00390625 -.0078125 -.01171875 -.00390625 0 -.00390625 -.0078125
cp o.npy standard.npy
good attend "${zero[@]}" --alibi slope.npy --align top-left --weights w.npy
same o.npy standard.npy
good attend "${zero[@]}" --alibi slope.npy --align top-left --scores s.npy --scores-mode softmax
same s.npy w.npy

# raw, softcap, bias: 3 and 6 before
put q1.npy f4 1,1 3
put k1.npy f4 2,1 1 2
one=(--q q1.npy --k k1.npy --v k1.npy --out o.npy --scale 1 --scores s.npy)
put b.npy f4 2 1 -1
good attend "${one[@]}" --softcap 2 --bias b.npy
near s.npy 3 6
good attend "${one[@]}" --softcap 2 --bias b.npy --scores-mode softcap
near s.npy 1.810297 1.990109
good attend "${one[@]}" --softcap 2 --bias b.npy --scores-mode bias
near s.npy 2.810297 .990109
good attend "${one[@]}" --softcap 0 --scores-mode softcap
near s.npy 3 6

# a cache: the first key and value are past
raw pk.npy '<f4' '(1, 3)' 12
raw nk.npy '<f4' '(3, 3)' 36
put pv.npy f4 1,1 "${v[0]}"
put nv.npy f4 3,1 "${v[@]:1}"
new=(--q q0.npy --k nk.npy --v nv.npy --out o.npy)
good attend "${new[@]}" --past-k pk.npy --past-v pv.npy --present-k k.npy --present-v pv1.npy --causal past
near o.npy "$(mean 2)" "$(mean 3)"
same pv1.npy v.npy
same k.npy k0.npy
good attend "${new[@]}" --present-v pv1.npy
same pv1.npy nv.npy
near o.npy "$(some 1 3)" "$(some 1 3)"
raw ck.npy '<f4' '(6, 3)' 72
put cv.npy f4 6,1 "${v[0]}" 9 9 9 9 9
put past.npy i4 1 1
good attend "${new[@]}" --cache-k ck.npy --cache-v cv.npy --past-lengths past.npy --present-v pv1.npy
near pv1.npy "${v[@]}" 9 9
near o.npy "$(mean 4)" "$(mean 4)"
good attend "${new[@]}" --cache-k ck.npy --cache-v cv.npy --past-lengths past.npy --causal past --lse l.npy
near l.npy .693147 1.098612

# heads and width in one dimension
raw q0h.npy '<f4' '(1, 2, 6)' 48
raw k0h.npy '<f4' '(1, 4, 3)' 48
make vh.npy f4 C 5 1 4 2
good attend --q q0h.npy --k k0h.npy --v vh.npy --out o.npy --q-heads 2 --kv-heads 1 --weights w.npy --lse l.npy
head_is o.npy "float32 C (1, 2, 4)"
head_is w.npy "float32 C (1, 2, 2, 4)"
head_is l.npy "float32 C (1, 2, 2)"
v vh.npy
column() { printf '%s\n' "${v[@]}" | awk -v c="$1" 'NR % 2 == c { s += $1 } END { printf "%.6f", s / 4 }'; }
near o.npy "$(column 1)" "$(column 0)" "$(column 1)" "$(column 0)" "$(column 1)" "$(column 0)" "$(column 1)" "$(column 0)"
raw k0h.npy '<f4' '(1, 4, 6)' 96
good attend --q q0h.npy --k k0h.npy --v vh.npy --out o.npy --q-heads 2 --present-v pv1.npy
head_is o.npy "float32 C (1, 2, 2)"
head_is pv1.npy "float32 C (1, 2, 4, 1)"
near o.npy "$(column 1)" "$(column 0)" "$(column 1)" "$(column 0)"
v v.npy

# a quarter turn
put k4.npy f4 1,4 1 2 3 4
put cos.npy f4 1,2 0 0
put sin.npy f4 1,2 1 1
turn=(--q k4.npy --k k4.npy --v k4.npy --out o.npy --rotary-cos cos.npy --rotary-sin sin.npy --present-k k.npy)
good attend "${turn[@]}" --rotary half
near k.npy -3 -4 1 2
good attend "${turn[@]}" --rotary interleaved
near k.npy -2 1 -4 3
put cos.npy f4 3,2 1 1 1 1 2 2 # twice as long at position 2: scores are four times as high
put sin.npy f4 3,2 0 0 0 0 0 0
turn=(--q k4.npy --k k4.npy --v k4.npy --out o.npy --rotary-cos cos.npy --rotary-sin sin.npy --rotary half --scores s.npy)
good attend "${turn[@]}"
near s.npy 15
good attend "${turn[@]}" --align past --past-len 2
near s.npy 60

# ragged: one key for the first query, three for the second
put qo.npy i4 3 0 1 2
put ko.npy i8 3 0 1 4
good attend "${zero[@]}" --q-offsets qo.npy --kv-offsets ko.npy
near o.npy "${v[0]}" "$(some 1 3)"

# parts, one of them empty, are the whole
make q.npy f4 C 1 4 6 5
make k.npy f4 C 2 2 7 5
make v7.npy f4 C 3 2 7 3
good attend --q q.npy --k k.npy --v v7.npy --out o.npy --lse l.npy
put none.npy b1 1 0
put left.npy b1 7 1 1 1 0 0 0 0
put right.npy b1 7 0 0 0 1 1 1 1
for part in none left right; do
    good attend --q q.npy --k k.npy --v v7.npy --mask $part.npy --out o-$part.npy --lse l-$part.npy
done
parts=(--out-parts "o-left.npy,o-none.npy,o-right.npy" --lse-parts "l-left.npy,l-none.npy,l-right.npy")
good merge "${parts[@]}" --out om.npy --lse lm.npy
head_is om.npy "float32 C (4, 6, 3)"
alike o.npy om.npy
alike l.npy lm.npy
make sink.npy f4 C 9 4
good attend --q q.npy --k k.npy --v v7.npy --out o.npy --lse l.npy --sinks sink.npy
good merge "${parts[@]}" --out om.npy --lse lm.npy --sinks sink.npy
alike o.npy om.npy
alike l.npy lm.npy
bad 2 "--out-parts names 2 files and --lse-parts 1" \
    merge --out-parts o-left.npy,o-right.npy --lse-parts l-left.npy --out out/o.npy
bad 2 "--out-parts: v.npy has shape (4, 1) where the first part has (4, 6, 3)" \
    merge --out-parts o-left.npy,v.npy --lse-parts l-left.npy,l-right.npy --out out/o.npy
bad 2 "--out and --lse-parts name the same file" merge "${parts[@]}" --out l-none.npy
bad 2 "it cannot be opened" merge --out-parts "o-left.npy," --lse-parts l-left.npy --out out/o.npy

# ---- mha and project agree with attend
make x.npy f4 C 4 6 10
for name in q k v; do make w$name.npy f4 C 5 10 8; done
make bq.npy f4 C 6 8
weights=(--x x.npy --wq wq.npy --wk wk.npy --wv wv.npy --bq bq.npy --heads 2)
good project "${weights[@]}" --q pq.npy --k pk.npy --v pv.npy
head_is pq.npy "float32 C (2, 6, 4)"
put m.npy b1 6,6 1 1 1 1 0 1 1 0 1 1 1 1 1 1 1 1 1 1 1 1 0 1 1 1 1 1 1 1 1 1 0 1 1 1 1 1
more=(--causal top-left --mask m.npy --softcap 3 --alibi standard --window "2,-1")
good attend --q pq.npy --k pk.npy --v pv.npy --out po.npy --weights pw.npy "${more[@]}"
good mha "${weights[@]}" --out mo.npy --weights mw.npy "${more[@]}"
head_is mo.npy "float32 C (6, 8)"
alike pw.npy mw.npy
for type in f2 u2; do
    make xh.npy $type C 4 6 10
    for name in q k v; do make w$name$type.npy $type C 5 10 8; done
    make bh.npy $type C 7 6 6
    short=() name=float16
    [ $type = u2 ] && short=(--bf16) && name=uint16
    good mha --x xh.npy --wq wq$type.npy --wk wk$type.npy --wv wv$type.npy --heads 2 --bias bh.npy --out mh.npy "${short[@]}"
    head_is mh.npy "$name C (6, 8)"
done
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
bad 2 "--s is ambiguous: --scores or --scores-mode?" attend "${files[@]}" --s 1
bad 2 "--out is given twice" attend "${files[@]}" --out out/p.npy
bad 2 "--lse wants an argument" attend "${files[@]}" --lse
bad 2 "--explain takes no argument" attend "${files[@]}" --explain=yes
bad 2 "\"stray\" belongs to no option" attend "${files[@]}" stray
bad 2 "--lse is given an empty text" attend "${files[@]}" --lse ""
bad 2 "--scale wants a finite number, not \"nan\"" attend "${files[@]}" --scale nan
bad 2 "--scale 1e+300 is too large" attend "${files[@]}" --scale 1e300
bad 2 "--threads wants an integer from 1 to 65536, not \"0\"" attend "${files[@]}" --threads 0
bad 2 "--algorithm wants auto|staged|fused|split, not \"quick\"" attend "${files[@]}" --algorithm quick
bad 2 "top-left, bottom-right, past or an integer, not \"left\"" attend "${files[@]}" --causal left
bad 2 "--causal past needs --past-len" attend "${files[@]}" --causal past
bad 2 "--past-len is for --causal past" attend "${files[@]}" --past-len 3
bad 2 "--past-len is for --causal past" attend "${files[@]}" --causal 3 --past-len 3
bad 2 "--causal and --align name different alignments" attend "${files[@]}" --causal past --past-len 1 --align 1
bad 2 "--causal-offset and --causal name different alignments" attend "${files[@]}" --causal bottom-right --causal-offset 0
bad 2 "--causal-offset and --align name different alignments" attend "${files[@]}" --align top-left --causal-offset 1
bad 2 "--align is for --causal, --window and --alibi" attend "${files[@]}" --align bottom-right
bad 2 "--window wants two numbers" attend "${files[@]}" --window 3
bad 2 "--window wants an integer of at least -1" attend "${files[@]}" --window 3,-2
bad 2 "softcap is -1" attend "${files[@]}" --softcap -1
bad 2 "--scores-mode is for --scores" attend "${files[@]}" --scores-mode raw
bad 2 "--scores-mode softmax is what --weights writes" \
    attend "${files[@]}" --scores-mode softmax --scores out/s.npy --weights out/w.npy
bad 2 "--kv-heads is for --q-heads" attend "${files[@]}" --kv-heads 1
bad 2 "has shape (3, 5) where (batch, len, heads * dim) is wanted" attend "${files[@]}" --q-heads 1
bad 2 "--q: q0h.npy has 6 columns, which are no multiple of 4 heads" \
    attend --q q0h.npy --k k0h.npy --v k0h.npy --out out/o.npy --q-heads 4
bad 2 "--past-k and --past-v go together" attend "${files[@]}" --past-k three.npy
bad 2 "--past-lengths goes with --cache-k and --cache-v" attend "${files[@]}" --past-lengths past.npy
bad 2 "--past-k is one way to have a cache" attend "${files[@]}" --past-k three.npy --past-v three.npy \
    --cache-k three.npy --cache-v three.npy --past-lengths past.npy
bad 2 "--past-len is for where there is no cache" attend "${files[@]}" --past-k three.npy --past-v three.npy --past-len 3
bad 2 "--rotary, --rotary-cos and --rotary-sin go together" attend "${files[@]}" --rotary half
bad 2 "--q-offsets and --kv-offsets go together" attend "${files[@]}" --q-offsets qo.npy
bad 2 "--mask: three.npy holds float32 where bool, or uint8 of 0 and 1, is wanted; numbers to add to the scores go to --bias" \
    attend "${files[@]}" --mask three.npy
bad 2 "true and false go to --mask" attend "${files[@]}" --bias none.npy
bad 2 "--kv-lengths: three.npy holds float32 where int32 or int64 is wanted" attend "${files[@]}" --kv-lengths three.npy
bad 2 "--q: qo.npy holds int32 where float16, float32 or float64 is wanted" attend --q qo.npy --k qo.npy --v qo.npy --out out/o.npy
put two.npy u1 3 1 0 2
bad 2 "--mask: two.npy holds uint8 with other values than 0 and 1" attend "${files[@]}" --mask two.npy
put mask2.npy b1 2,3 1 1 1 1 1 1
bad 2 "mask: len is 2" attend "${files[@]}" --mask mask2.npy
put mask4.npy b1 4 1 1 1 1
bad 2 "mask: dim is 4" attend "${files[@]}" --mask mask4.npy
put n.npy i4 1 4
bad 2 "kv_lengths[0] is 4; it is 0 to 3" attend "${files[@]}" --kv-lengths n.npy
bad 2 "sinks" attend "${files[@]}" --sinks sink.npy
bad 2 "--algorithm staged holds a matrix of scores, and --require forbids it" attend "${files[@]}" --algorithm staged --require
bad 2 "what --require asks for never has --scores in memory" attend "${files[@]}" --require --scores out/s.npy
bad 2 "--algorithm split never has --weights in memory" attend "${files[@]}" --algorithm split --weights out/w.npy
bad 2 "--present-k and --cache-k name the same file" attend "${files[@]}" --cache-k mask2.npy --cache-v three.npy \
    --past-lengths past.npy --present-k mask2.npy
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

# ---- the cache on disk
# kept WORD: how many files of the kind the last command counted
kept() { awk -v word="$1" '$2 == word { print $1 }' stdout; }
hash=0123456789abcdef
export CLATTN_CACHE_DIR=$PWD/kept
good cache
prints "$PWD/kept"
[ "$(kept compiled) $(kept lists)" = "0 0" ] || failed "clattn cache counts what is not there: $(cat stdout)"
[ ! -e kept ] || failed "clattn cache makes a directory"
mkdir kept
printf 1234567 >kept/kernel-$hash
printf 1234567 >kept/kernel-$hash.AbCdEf
printf 123 >kept/self-check-$hash
printf 1 >kept/notes
good cache
[ "$(kept compiled) $(kept lists)" = "2 1" ] || failed "clattn cache counts $(cat stdout)"
prints " 14 bytes"
good cache --clear
[ "$(kept compiled) $(kept lists)" = "0 0" ] || failed "clattn cache --clear counts $(cat stdout)"
[ "$(ls kept)" = notes ] || failed "clattn cache --clear leaves $(ls kept)"
CLATTN_CACHE_DIR='' good cache --clear
prints "nothing is kept: \$CLATTN_CACHE_DIR is empty"
CLATTN_CACHE_DIR=/dev/null/nowhere good cache
prints "nothing more is kept: Not a directory"
CLATTN_CACHE_DIR=/dev/null/nowhere bad 1 "Not a directory" cache --clear
CLATTN_KERNEL_CACHE=0 good cache
prints "compiled kernels are not kept"
bad 2 "--clear takes no argument" cache --clear=all
bad 2 "" cache all
unset CLATTN_CACHE_DIR

# ---- what was measured: nothing here, then a file that is none, then one of another day
good tune --show --device native
prints "nothing was measured for native"
good tune --clear --device native
prints "nothing is kept in $work/config/tune/"
mkdir -p config/tune
echo '{"schema": "clattn-tune-9"}' >config/tune/new.json
head -c 40 /dev/urandom >config/tune/noise.json
run 0 tune --show --device native
[ "$(grep -c "^clattn tune: note: tuning file .* is left out: " stderr)" -eq 2 ] || failed "tune --show: $(cat stderr)"
good attend --q three.npy --k three.npy --v three.npy --out o.npy --explain --device native
prints 'new.json is left out: its schema is "clattn-tune-9"'
CLATTN_TUNING=0 good attend --q three.npy --k three.npy --v three.npy --out o.npy --explain --device native
prints 'measurements are left aside: '
CLATTN_TUNING=7 bad 2 "neither 0 nor 1" attend "${files[@]}"
rm -r config
bad 2 "--show and --clear are two wishes" tune --show --clear
bad 2 "--show measures nothing" tune --show --quick
bad 2 "--clear measures nothing" tune --op project --clear
bad 2 "--op wants all|attention" tune --op all-of-them

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
    good cache --json -
    [ "$(head -c 1 stdout)" = "{" ] || failed "cache --json - prints $(head -n 3 stdout)"
    prints '"most_bytes":'
    bad 2 "--out and --json name the same file" attend "${files[@]}" --json out/o.npy
    bad 2 "the reference has no kernels" tune
    good tune --quick --op project --device native # each of its kernels is the only one
    prints "nothing to keep"
    good tune --quick --op project --device native --json -
    prints '"choices":'
    [ ! -e config ] || failed "tune keeps what is no choice: $(ls -R config)"
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
raw half.npy '<c8' '(3, 5)' 120
bad 2 "elements of type '<c8'" attend --q half.npy --k three.npy --v three.npy --out out/o.npy
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
