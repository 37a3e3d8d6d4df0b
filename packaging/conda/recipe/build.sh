#!/bin/bash
# What rattler-build runs in the unpacked sources; CMAKE_ARGS is conda's.
set -euo pipefail
# shellcheck disable=SC2086
cmake -S . -B build-conda -G Ninja ${CMAKE_ARGS:-} -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$PREFIX" \
    -DCMAKE_INSTALL_LIBDIR=lib -DHEDDLE_BUILD_TESTS=OFF
cmake --build build-conda --parallel "${CPU_COUNT:-2}"
cmake --install build-conda
# pip has the suite.
rm "$PREFIX/share/man/man1/shmem-mt.1"
