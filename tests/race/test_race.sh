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

"$program" race --device native --len 16 --seconds 1 --lang en >out 2>err || failed "exit code $?: $(cat err)"
says '16 words, '
says 'recurrence [##########################] 16/16 words, 18/18 steps'
says 'attention  [##########################] 16/16 words, 1/1 steps'
says 'on more units (core against core, ms)'
says 'layer against layer'
says 'at 2 words attention does'
says "the recurrence's arithmetic at"
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
    if ! grep -q '循环要走 18 步' race.html || grep -qE '(src|href)="?https?:' race.html; then failed 'race.html'; fi
    [ "$(wc -c <race.html)" -le 512000 ] || failed "race.html has $(wc -c <race.html) bytes"
    code=0
    "$program" race --len 16 --json both --html both >out 2>err || code=$?
    [ $code -eq 2 ] || failed 'two outputs in one file are taken'
    "$program" race --device native --len 16 --seconds 1 --json - >out 2>err || failed "exit code $?: $(cat err)"
    [ "$(head -c 1 out)" = '{' ] || failed "more than JSON on standard output: $(head -n 3 out)"
fi

code=0
"$program" race --len 1 >out 2>err || code=$?
[ $code -eq 2 ] || failed 'a race of one word is run'
code=0
"$program" race --device nowhere >out 2>err || code=$?
[ $code -eq 2 ] || failed 'a device that is not there is raced on'

[ $failures -eq 0 ] && echo 'the race: all as it should be'
exit $((failures > 0))
