#!/bin/sh
# The library for old systems: packaging/portable.sh BUILD configures and builds it there, for glibc 2.28 and later.
# PyPI's ziglang does it: clang, its C++ library, and the symbols of any version of glibc. pip's package and the folder
# for anywhere are made of it.
set -eu
cd "$(dirname "$0")/.."
build=$1
glibc=2.28
mkdir -p "$build"
build=$(cd "$build" && pwd)
[ -x "$build/venv/bin/python" ] || python3 -m venv "$build/venv"
"$build/venv/bin/pip" install --quiet 'ziglang==0.17.*'
zig=$("$build/venv/bin/python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')

# Of the system's headers these alone are seen: glibc's would be of the system's version.
rm -rf "$build/headers"
mkdir -p "$build/headers"
if pkg-config --exists ucx 2>/dev/null; then
    for part in ucm ucp ucs uct; do
        ln -s "$(pkg-config --variable=includedir ucx)/$part" "$build/headers/$part"
    done
fi

# Archives of what is optimized at the link are zig's, too: the system's tools do not read its objects.
for tool in ar ranlib; do
    printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" "$tool" >"$build/$tool"
    chmod +x "$build/$tool"
done

# Optimized also where CMake looks at the compiler: zig would check for undefined behaviour otherwise, and build its C++
# library once more. Frame pointers and debug information are what zig adds by itself, and gcc does not. C++ is optimized
# at the link, as a whole (docs/decisions/0074); C is not, for libtsan.a is linked by the compiler of whoever has unpacked
# it, which compiles programs, too.
target=$(uname -m)-linux-gnu.$glibc
options="-O2 -g0 -fomit-frame-pointer -isystem $build/headers -Wno-unused-command-line-argument"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DHEDDLE_BUILD_TESTS=OFF -DHEDDLE_CCACHE= \
    -DCMAKE_C_COMPILER="$zig;cc;-target;$target" -DCMAKE_CXX_COMPILER="$zig;c++;-target;$target" \
    -DCMAKE_AR="$build/ar" -DCMAKE_RANLIB="$build/ranlib" \
    -DCMAKE_C_FLAGS="$options" -DCMAKE_CXX_FLAGS="$options -flto" -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
    -DHEDDLE_WRAPPED_CC=cc -DHEDDLE_WRAPPED_CXX=c++ >"$build/configure.log" 2>&1 || {
    cat "$build/configure.log" >&2
    exit 1
}
cmake --build "$build"

# What is called by a newer name than that would not start there.
too_new=$(find "$build/lib" "$build/bin" -type f \( -name '*.so*' -o -perm -u+x \) -exec objdump -T {} + 2>/dev/null |
    sed -n 's/.*\*UND\*.*(GLIBC_\([0-9.]*\)) *\(.*\)/\1 \2/p' | sort -u |
    while read -r version name; do
        [ "$(printf '%s\n%s\n' "$version" "$glibc" | sort -V | tail -n 1)" = "$glibc" ] || echo "$version $name"
    done)
if [ -n "$too_new" ]; then
    printf 'portable.sh: this needs more than glibc %s:\n%s\n' "$glibc" "$too_new" >&2
    exit 1
fi
