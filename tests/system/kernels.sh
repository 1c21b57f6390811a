#!/usr/bin/env bash
# kernels.sh SOURCE: clang reads every row of the kernel table as OpenCL C 1.2, with the row's macros and a plan's.
#
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

kernels=$1/kernels
clang=${CLANG:-clang}
command -v "$clang" >/dev/null || { echo "skipped: no $clang"; exit 77; }

# family role name source -D macro=value ...
rows() {
    printf '%s\n' '#define ROW(name, role, family, source, ...) family role name source __VA_ARGS__' \
        '#define M(name, value) -D name=value' '#include "rows.def"' | "$clang" -E -P -x c -I "$kernels" - | tr -d '"'
}

# role macro value ...
variants() {
    printf '%s\n' '#define VARIANT(role, macro, parameter, kind, ...) role macro __VA_ARGS__' '#define V(value) value' \
        '#include "variants.def"' | "$clang" -E -P -x c -I "$kernels" -
}

declare -A variant # of a role: -D macro=least value ...
while read -r role macro least _; do
    [[ -z $macro ]] || variant[$role]="${variant[$role]-} -D $macro=$least"
done < <(variants)

read_rows=0 failed=0
while read -r family role name source macros; do
    [[ $family != CLBLAST && -n $source ]] || continue
    read_rows=$((read_rows + 1))
    # shellcheck disable=SC2086 # a list of words
    "$clang" -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -fsyntax-only -Wall -Wextra -Werror -I "$kernels" \
        -target spir64 ${variant[$role]-} $macros "$kernels/$source" || { echo "row $name"; failed=$((failed + 1)); }
done < <(rows)
echo "$read_rows rows read, $failed with warnings"
((read_rows > 0 && failed == 0))
