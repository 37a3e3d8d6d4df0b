#!/bin/sh
# Debian packages of the committed sources: packaging/deb.sh. They and what lintian says come to build/packages/.
set -eu
PATH=/usr/sbin:/usr/bin:/sbin:/bin # Debian's own tools: its Python, too
cd "$(dirname "$0")/.."
version=$(sed -n 's/^project(heddle VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
out=$PWD/build/packages
work=$out/debian
tree=$work/heddle-$version
rm -rf "$work"
mkdir -p "$work"

# The sources as a release has them, and packaging/debian where Debian's tools look for it.
git archive --format=tar --prefix="heddle-$version/" HEAD | tar -x -C "$work"
cp -a "$tree/packaging/debian" "$tree/debian"
# dh gives the build another home, where ccache would begin with nothing.
! command -v ccache >/dev/null || export CCACHE_DIR="${CCACHE_DIR:-$(ccache --get-config cache_dir)}"

echo "building, with messages in $work/build.log"
if ! (cd "$tree" && DEB_BUILD_OPTIONS="parallel=${DEB_JOBS:-$(nproc)}" dpkg-buildpackage --build=binary --no-sign) \
    >"$work/build.log" 2>&1; then
    tail -n 30 "$work/build.log" >&2
    exit 1
fi
rm -f "$out"/*.deb
mv "$work"/*.deb "$out"
lint=$work/lintian.log
(cd "$out" && lintian --allow-root --fail-on error,warning --tag-display-limit 0 ./*.deb) >"$lint" 2>&1 || {
    cat "$lint" >&2
    echo "lintian has found something (above)" >&2
    exit 1
}
cat "$lint"
(cd "$out" && ls -1 ./*.deb | sed 's|^\./|build/packages/|')
