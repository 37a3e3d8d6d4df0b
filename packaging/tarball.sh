#!/bin/sh
# The library and its tools as one folder that works wherever it is unpacked: packaging/tarball.sh BUILD [OUT]. It comes to
# build/packages or OUT, and says which version of the C library it needs.
set -eu
build=$(cd "$1" && pwd)
mkdir -p "${2:-.}"
out=${2:+$(cd "$2" && pwd)}
cd "$(dirname "$0")/.."
version=$(sed -n 's/^project(heddle VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=heddle-$version-linux-$(uname -m)
out=${out:-build/packages}
tree=$out/tarball/$name
rm -rf "$out/tarball"
mkdir -p "$out/tarball"
cmake --install "$build" --prefix "$tree" --strip >"$out/tarball/install.log"
install -D -m 644 packaging/modulefile "$tree/share/modulefiles/heddle/$version"
install -m 644 LICENSE "$tree/LICENSE"

# The C library's newest version that any file needs.
needs=$(find "$tree" -type f \( -name '*.so*' -o -perm -u+x \) -exec objdump -T {} + 2>/dev/null |
    sed -n 's/.*\*UND\*.*(GLIBC_\([0-9.]*\)).*/\1/p' | sort -Vu | tail -n 1)
echo "Heddle $version for Linux on $(uname -m), with the C library glibc $needs or later." >"$tree/README"
echo "bin/oshcc and bin/oshrun work from here; module use DIR/share/modulefiles, module load heddle sets the paths." >>"$tree/README"

# The same bytes from the same files.
tar --sort=name --mtime="@$(git log -1 --format=%ct)" --owner=0 --group=0 --numeric-owner -C "$out/tarball" -cJf \
    "$out/$name.tar.xz" "$name"
echo "$out/$name.tar.xz: needs glibc $needs or later"
