#!/usr/bin/env bash
# The race from outside: real figures, in words and as JSON, that agree with one another.
#
#     test_race.sh PROGRAM WORK_DIRECTORY
#
# SPDX-License-Identifier: Apache-2.0
set -u

program=$1 work=$2
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1
failures=0
unset CLATTN_DEVICE

failed() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}
says() { grep -qF -- "$1" out || failed "\"$1\" is not in: $(cat out err)"; }

# refuses SENTENCE OPTION...
refuses() {
    local sentence=$1 code=0
    shift
    "$program" race "$@" >out 2>err || code=$?
    [ $code -eq 2 ] || failed "$*: exit code $code"
    grep -qF -- "$sentence" err || failed "$*: \"$sentence\" is not in: $(cat err)"
}

# A text without blanks and ends of lines: however it was wrapped.
flat() { tr -d ' \n'; }

# race.html holds the figures and sentences of race.json, and asks for nothing else; what was printed has the same sentences and device.
check_page() {
    local figure figures=0 device
    device=$(sed -n 's/.*"device":"\([^"]*\)".*/\1/p' race.html | flat)
    [ -n "$device" ] || failed 'the page does not say what computes'
    flat <out | grep -qF -- "$device" || failed "the page computes on $device, not what was printed: $(head -n 2 out)"
    while read -r figure; do
        figures=$((figures + 1))
        grep -qF "$(LC_ALL=C printf '%.7g' "$figure")" race.html || failed "$figure is not on the page"
    done < <(sed -n 's/.*"\(ms\|ms_q1\|ms_q3\|dependent_steps\)":[[:space:]]*\([0-9.e+-]*\).*/\2/p' race.json)
    [ "$figures" -ge 24 ] || failed "only $figures figures are in race.json"
    sed -n 's/.*"sentences":[[:space:]]*\["\(.*\)"\].*/\1/p' race.json | sed 's/", "/\n/g' >sentences
    [ "$(grep -c . sentences)" -eq 3 ] || failed "the sentences of race.json are: $(cat sentences)"
    while IFS= read -r sentence; do
        grep -qF -- "$sentence" race.html || failed "\"$sentence\" is not on the page"
        flat <out | grep -qF -- "$(printf '%s' "$sentence" | flat)" || failed "\"$sentence\" was not printed"
    done <sentences
    grep -q '"kind":"lanes"' race.html || failed 'there are no lanes on the page'
    grep -q "default-src 'none'" race.html || failed 'the page may load something'
    if grep -qE '(src|href)="?https?:|url\(["]?https?:|@import' race.html; then failed 'the page loads something'; fi
    [ "$(wc -c <race.html)" -le 500000 ] || failed "the page has $(wc -c <race.html) bytes"
}

"$program" race --device native --len 16 --seconds 1 --lang en >out 2>err || failed "exit code $?: $(cat err)"
says '16 words, '
says 'On the processor, '
if grep -q 'native' out; then failed "the device is called by a name that nobody knows: $(head -n 2 out)"; fi
[ "$(LC_ALL=C.UTF-8 wc -L <out)" -le 80 ] || failed "$(LC_ALL=C.UTF-8 wc -L <out) columns"
says 'recurrence [################] 16/16 words, 18/18 steps'
says 'attention  [################] 16/16 words, 3/3 steps'
says 'on more units (core against core, ms)'
says 'layer against layer'
says 'at 2 words attention does'
says "the recurrence's arithmetic"
says '1. The recurrence takes 18 steps'
says '3. Attention'
if grep -q "$(printf '\033')" out; then failed 'escape sequences where there is no terminal'; fi

"$program" race --device native --len 16 --seconds 1 --lang zh --json race.json --html race.html >out 2>err || failed "exit code $?: $(cat err)"
if grep -q 'no JSON' err; then
    echo 'no cJSON in this build: no JSON is tested'
else
    says '循环要走 18 步'
    for key in '"schema":[[:space:]]*"clattn-race-1"' '"core":' '"layer":' '"units":' '"sentences":' '"dependent_steps":[[:space:]]*18'; do
        grep -q "$key" race.json || failed "$key is not in race.json"
    done
    [ "$(grep -c '循环要走' race.json)" -eq 1 ] || failed 'the sentences are not in race.json'
    says 'race.html'
    check_page
    "$program" race --device native --len 16 --seconds 1 --json - >out 2>err || failed "exit code $?: $(cat err)"
    [ "$(head -c 1 out)" = '{' ] || failed "more than JSON on standard output: $(head -n 3 out)"

    "$program" race --device native --len 16 --seconds 1 --lang en --json race.json --html race.html >out 2>err ||
        failed "exit code $?: $(cat err)"
    check_page
    grep -q '<html lang="en">' race.html || failed 'the page is not in English'
    "$program" race --device native --len 16 --seconds 1 --html - >out 2>err || failed "exit code $?: $(cat err)"
    [ "$(head -n 1 out)" = '<!doctype html>' ] || failed "more than a page on standard output: $(head -n 3 out)"
    refuses 'name the same file' --html one --json ./one
    refuses 'cannot write no/race.html' --device native --len 2 --seconds 1 --html no/race.html
    [ ! -e one ] || failed 'a file is left of a race that was refused'
fi

code=0
"$program" race --len 1 >out 2>err || code=$?
[ $code -eq 2 ] || failed 'a race of one word is run'
code=0
"$program" race --device nowhere >out 2>err || code=$?
[ $code -eq 2 ] || failed 'a device that is not there is raced on'

[ $failures -eq 0 ] && echo 'the race: all as it should be'
exit $((failures > 0))
