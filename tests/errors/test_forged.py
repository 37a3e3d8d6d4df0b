"""A PE that sends control messages of any length and content: the others end with the message that says so, and write
nothing outside of what they must."""

import os
import re

import pytest
from conftest import BUILD, OSHRUN, PROGRAMS, execute

NETWORK = (BUILD / "lib" / "libheddle_ucx.so").exists()
SEEDS = int(os.environ.get("HEDDLE_TEST_FORGED", "64"))


@pytest.mark.skipif(not NETWORK, reason="there is no plugin for a network")
@pytest.mark.parametrize("pes", [2, 4])
def test_forged_control_messages_end_with_a_message(pes):
    refused = 0
    for seed in range(pes, pes + SEEDS):
        result = execute([OSHRUN, "-n", pes, PROGRAMS / "forged", seed], HEDDLE_TEST_PES_PER_NODE="1",
                         HEDDLE_NET_TRANSPORTS="tcp", SHMEM_SYMMETRIC_SIZE="4M", HEDDLE_CHECK="0",
                         UCX_LOG_LEVEL="fatal")
        assert result.status in (0, 1), f"seed {seed}: {result}"
        own = [line for line in result.err.splitlines() if not line.startswith(("oshrun: ", "["))]
        assert all(re.match(r"heddle \[pe \d\] (shmem_\w+|network): ", line) for line in own), f"seed {seed}: {result}"
        if result.status == 1:
            assert own, f"seed {seed}: {result}"
            refused += 1
    assert refused > SEEDS // 2
