"""Where MiniMD's atoms begin: each PE finds its own on the lattice without a walk through all of it."""

import shutil
import subprocess

import pytest
from shmem_mt import sources

PROGRAM = """
#include <cstdio>
#include <vector>

#include "apps/minimd/layout.hpp"

using namespace shmem_mt;

int wrong(long cells, int n_pes) {
    const MdModel model(cells);
    std::vector<int> owners(static_cast<size_t>(model.atoms()), 0);
    const Place grid = grid_of(n_pes);
    double most = 1;
    for (size_t a = 0; a < 3; ++a)
        most *= std::min(static_cast<double>(cells), static_cast<double>(cells) / grid[a] + 4);
    for (int me = 0; me < n_pes; ++me) {
        const MdLayout layout(cells, n_pes, me);
        long last = -1, walked = 0;
        layout.for_cells(cells, [&](long cell) {
            for (long id = 4 * cell; id < 4 * cell + 4; ++id)
                owners[static_cast<size_t>(id)] += layout.owns(model.lattice_site(id));
            ++walked;
            if (cell <= last)
                last = 1L << 40;  // not in the order of cells
            else
                last = cell;
        });
        if (last >= cells * cells * cells || static_cast<double>(walked) > most)
            return std::printf("PE %d of %d walks %ld of %ld cells, to %ld\\n", me, n_pes, walked, cells, last);
    }
    for (const int count : owners)
        if (count != 1)
            return std::printf("an atom of %ld cells has %d of %d PEs\\n", cells, count, n_pes);
    return 0;
}

int main() {
    for (const long cells : {1, 2, 3, 5, 7, 8, 24})
        for (const int n_pes : {1, 2, 3, 4, 6, 7, 8, 12, 16, 27})
            if (wrong(cells, n_pes))
                return 1;
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("c++") is None, reason="no c++ on PATH")
def test_each_atom_is_found_by_its_pe_in_a_walk_round_its_part(tmp_path):
    source, binary = tmp_path / "lattice.cpp", tmp_path / "lattice"
    source.write_text(PROGRAM)
    flags = ["-std=c++17", "-O1", "-Wall", "-Werror", "-I", sources.root()]
    done = subprocess.run(["c++", *flags, source, "-o", binary], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([binary], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
