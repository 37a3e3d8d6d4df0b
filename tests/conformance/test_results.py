"""Reductions give the same bits whatever computes them: each vector unit, each algorithm, each way to meet, each
placement of PEs on nodes. The program checks every result itself; here the checksum of all of them is compared. The
build under test is HEDDLE_BUILD."""

import os
import pathlib
import re
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"])
HAS_NETWORK = (BUILD / "lib" / "libheddle_ucx.so").exists()
PROGRAM = BUILD / "tests" / "conformance" / "conformance_reductions_inline"
SETTINGS = [{"HEDDLE_VECTOR": unit} for unit in ("avx2", "avx512", "auto")]
SETTINGS += [{"HEDDLE_REDUCE": way, "HEDDLE_SCAN": way} for way in ("bounce", "sliced")]
SETTINGS += [{"HEDDLE_BARRIER": way, "HEDDLE_VECTOR": "avx2"} for way in ("central", "dissemination", "flat")]


def checksum(pes, **settings):
    """What PE 0 prints at the end of a run that all settings share but these."""
    command = [str(BUILD / "bin" / "oshrun"), "-n", str(pes), str(PROGRAM)]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False,
                            env={**os.environ, "HEDDLE_TEST_SEED": "20251", **settings})
    assert result.returncode == 0, f"{settings}\n{result.stdout[-2000:]}\n{result.stderr[-2000:]}"
    return re.search(r"checksum of the results: (\w+)", result.stdout).group(1)


@pytest.fixture(scope="module")
def right():
    """By number of PEs: the checksum of the baseline."""
    return {pes: checksum(pes, HEDDLE_VECTOR="baseline") for pes in (3, 8)}


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(settings.values()))
@pytest.mark.parametrize("pes", [3, 8])
def test_the_same_bits(right, pes, settings):
    assert checksum(pes, **settings) == right[pes]


def test_another_seed_is_another_checksum(right):
    """The checksum can differ at all."""
    assert checksum(3, HEDDLE_TEST_SEED="20252") != right[3]


@pytest.mark.parametrize("serial_members", ["2", "64"])
def test_the_same_bits_on_other_nodes(serial_members):
    """Also as a tree over the members, which more than 64 have."""
    settings = {"HEDDLE_TEST_SERIAL_MEMBERS": serial_members, "HEDDLE_NET_TRANSPORTS": "tcp",
                "SHMEM_SYMMETRIC_SIZE": "64M"}
    one_node = checksum(7, **settings)
    for pes_per_node in ("1", "2", "3", "5") if HAS_NETWORK else ():
        assert checksum(7, HEDDLE_TEST_PES_PER_NODE=pes_per_node, **settings) == one_node, pes_per_node


def test_another_order_is_another_checksum():
    """The tree gives other bits than one member after the other, so that the checksum shows the order."""
    assert checksum(7, HEDDLE_TEST_SERIAL_MEMBERS="2") != checksum(7)
