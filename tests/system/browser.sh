#!/usr/bin/env bash
# browser.sh PROGRAM FIGURES FOLDER: the pages of the course in headless Chromium.
#
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

tests=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")

for need in chromium chromedriver; do
    command -v "$need" >/dev/null || { echo "skipped: no $need"; exit 77; }
done
# Debian's python3-selenium belongs to Debian's Python, which need not be the first on the way.
for python in python3 /usr/bin/python3; do
    "$python" -c 'import selenium' 2>/dev/null && exec "$python" "$tests/browser.py" "$@"
done
echo 'skipped: no Python with selenium'
exit 77
