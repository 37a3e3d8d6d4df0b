"""HEDDLE_NET_TRANSPORT: a word that is no transport, and a transport whose plugin is not there."""

import shutil

import pytest
from conftest import BUILD, OSHRUN, PROGRAMS, execute, message

INIT = PROGRAMS / "init_only"


def test_an_unknown_transport_names_the_nearest():
    result = execute([INIT, "init"], HEDDLE_NET_TRANSPORT="ucxx")
    assert "HEDDLE_NET_TRANSPORT=ucxx is malformed: right would be auto|ucx; did you mean ucx?" in result.err, result


@pytest.mark.parametrize("word", ["auto", "ucx"])
def test_a_transport_whose_plugin_is_missing(tmp_path, word):
    """The plugin is looked for beside the library that the program has loaded: here, a copy alone in a folder."""
    for file in (BUILD / "lib").glob("libheddle.so*"):
        shutil.copy(file, tmp_path)
    result = execute([OSHRUN, "-n", 2, INIT, "init"], HEDDLE_NET_TRANSPORT=word, HEDDLE_TEST_PES_PER_NODE="1",
                     LD_LIBRARY_PATH=str(tmp_path))
    result.is_fatal(message("shmem_init", rf"HEDDLE_NET_TRANSPORT={word} needs libheddle_ucx\.so beside libheddle\.so: "
                                          r".*libheddle_ucx\.so: cannot open shared object file: .*; right would be an "
                                          r"installation that was built where the library of that name is, or all PEs "
                                          r"on one node"))
