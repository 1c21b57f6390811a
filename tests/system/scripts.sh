#!/usr/bin/env bash
# scripts.sh SOURCE: shellcheck reads every shell script.
#
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

command -v shellcheck >/dev/null || { echo 'skipped: no shellcheck'; exit 77; }
cd "$1"
shellcheck run .ci/run bench/gpu-check tests/*/*.sh
