#!/bin/sh
# RPM packages of the committed sources: packaging/rpm.sh. They and what rpmlint says come to build/packages/. On a machine
# without RPM's database of packages, such as Debian, what the spec file needs by Fedora's names is not looked for there.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^project(heddle VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
out=$PWD/build/packages
work=$out/rpm
rm -rf "$work"
mkdir -p "$work/SOURCES"
git archive --format=tar.gz --prefix="heddle-$version/" -o "$work/SOURCES/heddle-$version.tar.gz" HEAD
git show HEAD:packaging/heddle.spec >"$work/heddle.spec"

# The names of the build's machine and its time are not in packages: two builds are alike.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
set -- --define "_topdir $work" --define "_buildhost reproducible" --define "use_source_date_epoch_as_buildtime 1" \
    --define "clamp_mtime_to_source_date_epoch 1"
# Its script that compresses manual pages is written for bash, which Debian's sh is not.
rpm -q rpm >"$work/own.log" 2>&1 || set -- "$@" --nodeps --define "debug_package %{nil}" \
    --define "__brp_compress /bin/bash /usr/lib/rpm/brp-compress"
echo "building, with messages in $work/build.log"
if ! rpmbuild -ba "$@" "$work/heddle.spec" >"$work/build.log" 2>&1; then
    tail -n 30 "$work/build.log" >&2
    exit 1
fi
rm -f "$out"/*.rpm
mv "$work"/RPMS/*/*.rpm "$work"/SRPMS/*.rpm "$out"
lint=$work/rpmlint.log
(cd "$out" && rpmlint --config "$OLDPWD/packaging/rpmlint.toml" --strict "$work/heddle.spec" ./*.rpm) >"$lint" 2>&1 || {
    cat "$lint" >&2
    echo "rpmlint has found something (above)" >&2
    exit 1
}
tail -n 1 "$lint"
(cd "$out" && ls -1 ./*.rpm | sed 's|^\./|build/packages/|')
