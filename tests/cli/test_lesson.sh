#!/usr/bin/env bash
# clattn lesson as a class meets it: languages, columns, colours, steps, exit codes.
#
#     test_lesson.sh PROGRAM WORK_DIRECTORY SOURCE
#
# SPDX-License-Identifier: Apache-2.0
set -u

program=$1 work=$2 source=$3
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1
failures=0
export CLATTN_DEVICE=native
unset LC_ALL LC_MESSAGES LANG NO_COLOR COLORTERM

failed() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

environment=() # of the next commands

# good ARGUMENT ...: it succeeds and says nothing on stderr
good() {
    env "${environment[@]}" "$program" lesson "$@" >stdout 2>stderr || failed "clattn lesson $*: exit code $?: $(cat stderr)"
    [ ! -s stderr ] || failed "clattn lesson $*: said $(cat stderr)"
}
prints() { grep -qF -- "$1" stdout || failed "\"$1\" is not in what was printed: $(head -n 5 stdout)"; }
hides() { ! grep -qF -- "$1" stdout || failed "\"$1\" is in what was printed"; }

# bad WORDS ARGUMENT ...: exit code 2 and one sentence that holds the words
bad() {
    local words=$1 code
    shift
    "$program" lesson "$@" >stdout 2>stderr </dev/null
    code=$?
    [ $code -eq 2 ] || failed "clattn lesson $*: exit code $code"
    [ "$(wc -l <stderr)" -eq 1 ] || failed "clattn lesson $*: stderr is not one line: $(cat stderr)"
    grep -q '^clattn lesson' stderr || failed "clattn lesson $*: starts otherwise: $(cat stderr)"
    grep -qF -- "$words" stderr || failed "clattn lesson $*: \"$(cat stderr)\" does not say \"$words\""
    [ ! -s stdout ] || failed "clattn lesson $*: printed on stdout"
}

names=(rnn-step rnn-bottleneck lstm-memory serial-steps alignment projection matmul qkv word-vectors heads mask softmax scaling memory
    positions parameters initialisation head-dim)

# ---- the list, and languages
good
for name in "${names[@]}"; do prints "  $name "; done
prints 'the whole course'
good --lang zh
prints '全部'
environment=(LANG=zh_CN.UTF-8)
good
prints '全部'
environment=(LANG=zh_CN.UTF-8 LC_MESSAGES=de_DE.UTF-8)
good
prints 'the whole course'
environment=(LC_ALL=zh_TW.UTF-8)
good matmul
prints '先猜一猜'
good matmul --lang en
prints 'Predict first'
hides '先猜一猜'
environment=()

# ---- symbols
good symbols
prints 'd_k               qkv '
good symbols --lang zh
prints '头数'
[ "$(LC_ALL=C.UTF-8 wc -L <stdout)" -le 80 ] || failed 'the symbols are wider than 80 columns'
bad 'belongs to no option' symbols heads

# ---- the figures of the documents, at their precision, as they are read
good rnn-step
prints '0.885'
good rnn-bottleneck
for figure in 0.649 0.914 0.989 1.000; do prints "$figure"; done
good lstm-memory
for figure in 0.605 0.507 0.425 0.887 0.865 0.675 0.997 0.968 0.814 0.998 0.811 0.746; do prints "$figure"; done
good alignment
for figure in 0.774 0.780 0.075 0.073; do prints "$figure"; done
good projection
for figure in 'it     0.25    0.99    0.64' 'it     0.85    0.00   -0.20' '“chased” > “the” > “ball”' '“ball” > “chased” > “the”'; do prints "$figure"; done
good matmul
for figure in '1×5 + 2×7 = 19' '= 22' '= 43' '= 50'; do prints "$figure"; done
good qkv
prints 'The      -0.34  -1.46  -1.02  -0.37'
good word-vectors
prints '中国    2.37   4.65  10.58'
good mask
prints '可爱 cute    0.190  0.211  0.174  0.217  0.208'

# ---- 80 columns, as the C library counts them, in both languages; plain where nobody looks
good all --lang zh
cp stdout zh
good all --lang en
for file in zh stdout; do
    width=$(LC_ALL=C.UTF-8 wc -L <$file)
    [ "$width" -le 80 ] || failed "$file: $width columns"
    ! grep -q $'\033' $file || failed "$file is coloured"
done
[ "$(grep -c '^# ' stdout)" -eq ${#names[@]} ] || failed "all has $(grep -c '^# ' stdout) lessons"
good matmul --color always
grep -q $'\033\\[48;5;' stdout || failed '--color always has no colours'
environment=(COLORTERM=truecolor)
good matmul --color always
grep -q $'\033\\[48;2;' stdout || failed 'COLORTERM=truecolor is not deep'
environment=()
good matmul --color never
! grep -q $'\033' stdout || failed '--color never is coloured'

# ---- mistakes
bad 'did you mean projection?' projektion
bad 'clattn lesson lists them' xyzzy-and-more
bad 'there is no lesson ""' ''
bad '--seed has no effect here: this lesson has no parameters' projection --seed 1
bad '--pairs has no effect here: this lesson takes --seed, --text' word-vectors --pairs 3
bad '--lang wants zh|en' rnn-step --lang fr
bad '--dim wants an integer from 1 to 1024' qkv --dim 0
bad '--seed wants an integer from 0 to 4294967295' qkv --seed 4294967296
bad 'belongs to no option' rnn-step matmul
bad 'no fused kernel of this device takes heads as wide as 1024' memory --dim 1024
bad '--dim has to be a multiple of the 8 heads' parameters --dim 12
bad '--step waits for keys' rnn-step --step
bad '--text is not UTF-8' qkv --text $'a\xff'
bad '--text has no word' qkv --text ' '
bad 'device "moon" is not understood' rnn-step --device moon
if [ -e /dev/full ]; then
    "$program" lesson matmul >/dev/full 2>stderr
    [ $? -eq 1 ] || failed 'a full disk is no failure'
fi

# ---- what if
good rnn-bottleneck --lengths 3,12 --pairs 5 --seed 9 --dim 6
prints '5 pairs'
good lstm-memory --forget-bias 2
prints 'forget bias 2'
good qkv --text '我 love 注意力 </script>'
prints '</script>'
prints 'drawn at random'
good all --text 'one two three' --seed 5
prints 'three'

# ---- the teacher's plan: every command in it works, and its figures come out
for plan in "$source/docs/teaching.md" "$source/docs/teaching.zh.md"; do
    : >taught
    while IFS= read -r line; do
        eval "words=(${line#clattn lesson})"
        good "${words[@]}"
        cat stdout >>taught
    done < <(grep '^clattn lesson ' "$plan")
    for figure in 0.885 0.649 1.000 0.746 0.774 '“chased” > “the” > “ball”' '“ball” > “chased” > “the”'; do
        grep -qF -- "$figure" taught || failed "$figure does not come out of the commands of $plan"
    done
done

# ---- JSON
if "$program" devices --json - >/dev/null 2>&1; then
    good matmul --json -
    prints '"AB":	[[19, 22], [43, 50]]'
    hides 'Predict first:'
    good all --json all.json
    prints 'Predict first:'
    for key in rnn_bottleneck lstm_memory rnn_by_hand alignment projection_flips_ranking matmul_by_hand qkv_projection word_vectors \
        positional_encoding parameters lessons; do
        grep -q "^	\"$key\":" all.json || failed "all --json has no $key"
    done

    # ---- pages
    good matmul --html matmul.html --lang zh
    prints 'matmul.html'
    hides '先猜'
    grep -q '<html lang="zh-Hans">' matmul.html || failed 'matmul.html is in another language'
    ! grep -q '{{[A-Z_]*}}' matmul.html || failed 'matmul.html has a part that was not filled in'
    good matmul --html - --json json
    prints '<!doctype html>'
    good matmul --html matmul.html --json -
    prints '"AB"'
    hides 'matmul.html'
    good all --html course --lang en
    prints 'course/index.html'
    for name in $("$program" lesson --lang en | sed -n 's/^  \([a-z-]*\)  *[0-9][0-9]* min.*/\1/p') index; do
        [ -s "course/$name.html" ] || failed "the course has no page $name.html"
    done
    good all --html course --lang zh # over what is there
    grep -q 'zh-Hans' course/index.html || failed 'the course was not written again'
    good word-vectors --text '</script><script>x</script>' --html words.html
    [ "$(grep -c '</script><script>x' words.html)" -eq 0 ] || failed 'a text ends the script element'
    for words in 64 128 256; do # the largest maps that are whole, and those that are averaged
        text=$(seq -s ' ' -f 'w%g' 1 $words)
        for name in $("$program" lesson --lang en | sed -n 's/^  \([a-z-]*\)  *[0-9][0-9]* min.*/\1/p'); do
            "$program" lesson "$name" --text "$text" --html large.html >stdout 2>stderr || continue # it takes no text
            [ "$(wc -c <large.html)" -le 500000 ] || failed "$name with $words words has $(wc -c <large.html) bytes"
            checked=$((${checked-0} + 1))
        done
    done
    [ "${checked-0}" -ge 6 ] || failed "only ${checked-0} pages of many words"
    touch file
    bad 'cannot make the folder file: Not a directory' all --html file
    bad 'cannot make the folder no/course' all --html no/course
    bad 'cannot write no/page.html' matmul --html no/page.html
    bad 'Is a directory' matmul --html course
    bad 'the same file' matmul --html one --json ./one
    bad 'do not go together' matmul --html one --step
    [ ! -e one ] || failed 'a page was written after an error'
    [ -z "$(find . -name '.clattn-*')" ] || failed "temporary files are left: $(find . -name '.clattn-*')"
else
    echo 'skipped: this build writes no JSON'
    bad 'made without cJSON' matmul --html page.html
    bad 'made without cJSON' matmul --json -
fi

# ---- steps, on a terminal
if command -v script >/dev/null; then
    run="'$program' lesson alignment --step --lang en"
    printf '          ' | TERM=xterm script -qec "$run" /dev/null >stdout 2>stderr || failed "--step: exit code $?"
    prints 'any key goes on'
    prints 'The answer'
    grep -q $'\033\\[48;' stdout || failed 'a terminal has no colours'
    printf 'q' | TERM=xterm NO_COLOR=1 script -qec "$run" /dev/null >stdout 2>stderr || failed "--step and q: exit code $?"
    prints 'any key goes on'
    hides 'The answer'
    ! grep -q $'\033\\[48;' stdout || failed 'NO_COLOR has colours'
else
    echo 'skipped: steps need script'
fi

[ $failures -eq 0 ] || echo "$failures failed" >&2
[ $failures -eq 0 ]
