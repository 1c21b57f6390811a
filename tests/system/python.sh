#!/usr/bin/env bash
# python.sh SOURCE: pyflakes reads every Python script.
#
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

command -v pyflakes3 >/dev/null || { echo 'skipped: no pyflakes3'; exit 77; }
cd "$1"
pyflakes3 bench/*.py bench/gpu_check/*.py tests/*/*.py
