"""The folder for anywhere on a system that is older than the one where it was made: unpacked and used there, by that
system's compiler."""

import os
import shutil
from pathlib import Path

import pytest

PACKAGES = Path(os.environ["HEDDLE_PACKAGES"])
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Puts and barriers, threads, C++. Each checks its answer.
PROGRAMS = [("ring.c", "oshcc"), ("heat2d.c", "oshcc"), ("workqueue.c", "oshcc -pthread"),
            ("hashtable.cpp", "oshc++ -std=c++17")]
ENDS = """#include <shmem.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
    volatile int* volatile nothing = 0;
    shmem_init();
    if (shmem_my_pe() == 1 && strcmp(argv[argc - 1], "crash") == 0)
        *nothing = 1;
    if (shmem_my_pe() == 1)
        sleep(1000);
    shmem_barrier_all();
}
"""


def test_it_works_there(older):
    tarballs = list(PACKAGES.glob("heddle-*.tar.xz"))
    if not tarballs:
        pytest.skip("no tarball in build/packages: make tarball")
    shutil.unpack_archive(tarballs[0], older.root / "opt", filter="data")
    (folder,) = (older.root / "opt").iterdir()
    for file in EXAMPLES.iterdir():
        if file.suffix in (".c", ".cpp", ".h", ".hpp"):
            shutil.copy(file, older.root / "opt")
    older.run("apt-get", "update", "-qq")
    older.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "gcc", "g++", "libc6-dev")
    bin_folder = f"/opt/{folder.name}/bin"
    version = older.run("ldd", "--version").splitlines()[0].split()[-1]
    assert tuple(map(int, version.split("."))) < (2, 36), version
    print(f"\nglibc {version}, {older.run('gcc', '--version').splitlines()[0]}")
    assert "found nothing wrong" in older.run(f"{bin_folder}/heddle-info", "--check")
    for name, compiler in PROGRAMS:
        program = name.split(".")[0]
        older.run("sh", "-c", f"cd /opt && {bin_folder}/{compiler} -O2 {name} -o {program} -lm")
        for settings in ([], ["HEDDLE_CHECK=1"], ["HEDDLE_PROGRESS=thread"]):
            older.run("env", "SHMEM_SYMMETRIC_SIZE=64M", *settings, f"{bin_folder}/oshrun", "-n", "4",
                      f"/opt/{program}")
    missing = older.run("sh", "-c", f"for file in {bin_folder}/oshrun {bin_folder}/heddle-info "
                        f"/opt/{folder.name}/lib/*.so; do ldd $file; done")
    assert "version `GLIBC" not in missing and "libstdc++" not in missing, missing
    # The code that tells of crashes and hangs calls most of what an older C library lacks.
    (older.root / "opt/ends.c").write_text(ENDS)
    older.run("sh", "-c", f"cd /opt && {bin_folder}/oshcc -g -O2 ends.c -o ends")
    crashed = older.run("sh", "-c", f"{bin_folder}/oshrun -n 2 /opt/ends crash || echo status $?")
    assert "heddle [pe 1] signal 11 (Segmentation fault): address" in crashed and "ends.c:" in crashed, crashed
    hung = older.run("sh", "-c", f"{bin_folder}/oshrun --timeout 10 -n 2 /opt/ends hang || echo status $?")
    assert "PE 0" in hung and "in shmem_barrier_all" in hung, hung
