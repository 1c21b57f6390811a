#!/usr/bin/env bash
# outside.sh KIND SOURCE BUILD: one way to use an installed clattn from outside; ends with 77 when it cannot be tried here.
#
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

kind=$1 source=$2 build=$3
prefix=$build/prefix
work=$build/outside/$kind
warnings=(-Wall -Wextra -Wpedantic -Werror)

fail() { echo "$*" >&2; exit 1; }
skip() { echo "skipped: $*" >&2; exit 77; }
need() { command -v "$1" >/dev/null || skip "no $1"; }
library_folder() { dirname -- "$(find "$1" -name clattn.pc)" | xargs -d '\n' dirname --; }

# Installed in one place, then moved to another: nothing in it may know where it was.
try_prefix() {
    local file
    rm -rf "$prefix" "$work/first"
    cmake --install "$build" --prefix "$work/first" >/dev/null
    mv "$work/first" "$prefix"
    local files=(include/clattn/clattn.h include/clattn/clattn_opencl.h)
    [[ ! -x $build/clattn ]] || files+=(bin/clattn share/man/man1/clattn.1)
    for file in "${files[@]}"; do
        [[ -f $prefix/$file ]] || fail "not installed: $file"
    done
    ! grep -rl --include='*.pc' --include='*.cmake' -e "$build" -e "$source" "$prefix" ||
        fail 'these name the folder of the build'
    [[ ! -x $build/clattn ]] || "$prefix/bin/clattn" --version
}

# The manual page names every command of the program, and every option of those that work on files.
try_manual() {
    local program=$build/clattn command option page=$prefix/share/man/man1/clattn.1
    [[ -x $program ]] || skip 'the program is not built'
    sed 's/\\-/-/g; s/Fl Fl /--/g' "$page" >text
    for command in $("$program" help | awk '/^  [a-z]+ / && $1 != "clattn" { print $1 }'); do
        grep -qw -- "$command" text || fail "not in the manual page: $command"
        [[ $command != bench && $command != help ]] || continue
        for option in $("$program" "$command" --help | grep -oE '^ +--[a-z0-9-]+' | grep -vx -e ' *--help'); do
            grep -qw -e "$option" text || fail "not in the manual page: $command $option"
        done
    done
}

# Exported are the functions of the headers, and nothing else.
try_symbols() {
    need nm
    local library
    library=$(library_folder "$prefix")/libclattn.so
    nm -D --defined-only "$library" | awk '{ print $3 }' | sort >exported
    sed -nE 's/^CLATTN_API .*[ *](clattn_[a-z0-9_]+)\(.*/\1/p' "$prefix"/include/clattn/*.h | sort >declared
    [[ -s declared ]] || fail 'no declaration found'
    diff -u declared exported || fail 'exported symbols are not those of the headers'
}

# Library and program need no OpenCL, no BLAS; the library's soname is versioned.
try_links() {
    need readelf
    local library file
    library=$(library_folder "$prefix")/libclattn.so
    for file in "$prefix/bin/clattn" "$library"; do
        [[ -f $file ]] || continue
        readelf -d "$file" | tee dynamic | grep -E 'NEEDED|SONAME'
        ! grep -E 'NEEDED.*(OpenCL|clblast|blas)' dynamic || fail "$file is linked to what is to be loaded at run time"
    done
    grep -qF '[libclattn.so.0]' dynamic || fail 'soname is not libclattn.so.0'
    ! grep -E 'R(UN)?PATH' dynamic || fail 'the library carries a search path'
}

# Compile and run: with_pkg_config PREFIX (--shared | --static) COMPILER ARGUMENTS...
with_pkg_config() {
    local folder flags
    need pkg-config
    folder=$(library_folder "$1")
    eval "flags=($(PKG_CONFIG_PATH=$folder/pkgconfig pkg-config "${2/#--shared/--libs}" --cflags --libs clattn))"
    "${@:3}" "${flags[@]}" -o program
    LD_LIBRARY_PATH=$folder ./program
}

try_pkg_config_c() {
    with_pkg_config "$prefix" --shared "${CC:-cc}" -std=c17 "${warnings[@]}" "$source/examples/attention.c" | tee out
    [[ $(wc -l <out) == 2 ]] || fail 'two rows of output were expected'
}

try_pkg_config_cxx() {
    need c++
    with_pkg_config "$prefix" --shared c++ -std=c++17 "${warnings[@]}" "$source/examples/plan.cpp"
}

# A prefix without the shared library.
try_pkg_config_static() {
    cp -r "$prefix" only_static
    find only_static -name 'libclattn.so*' -delete
    with_pkg_config "$PWD/only_static" --static "${CC:-cc}" "${warnings[@]}" "$source/examples/attention.c"
    ! readelf -d program | grep -E 'NEEDED.*(clattn|OpenCL)' || fail 'not linked statically'
}

# The first C program of the README, as it stands there.
try_readme() {
    awk '/^```c$/ { inside = 1; next } /^```$/ && inside { exit } inside' "$source/README.md" >readme.c
    [[ -s readme.c ]] || fail 'README.md shows no C program'
    with_pkg_config "$prefix" --shared "${CC:-cc}" -std=c17 "${warnings[@]}" readme.c
}

# cmake_project FOLDER [options]: configure and build it here.
cmake_project() {
    cmake -S "$1" -B out -DCMAKE_BUILD_TYPE=Release "${@:2}" >configure.log || { cat configure.log; fail 'cannot configure'; }
    cmake --build out --parallel "$(nproc)"
}

try_find_package() {
    need c++
    cmake_project "$source/examples" -DCMAKE_PREFIX_PATH="$prefix"
    out/attention
    out/plan
}

try_find_package_static() {
    cmake_project "$source/tests/install/static_library" -DCMAKE_PREFIX_PATH="$prefix"
    out/attention
}

# The example that find_package has built.
try_own_queue() {
    local program=$build/outside/find_package/out/own_queue
    [[ -x $program ]] || skip 'no OpenCL to link with'
    "$program"
}

# Kernels of one instruction set, not optimised, are enough here.
try_embedded() {
    cmake_project "$source/tests/install/embedded" -DCMAKE_BUILD_TYPE=Debug -DCLATTN_SOURCE="$source" \
        -DCLATTN_COMPILES_avx2=OFF -DCLATTN_COMPILES_avx512=OFF
    out/attention
}

rm -rf "$work"
mkdir -p "$work"
cd "$work"
"try_$kind"
