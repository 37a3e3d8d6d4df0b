"""The last barrier of shmem_finalize between hosts, which the launcher makes: who waits there is alive, answers others
and hears them, until it is through."""

import pytest
from processes import alive

LIMIT_S = 120  # far less than a job that went on


@pytest.mark.parametrize("progress", ["auto", "manual"])
def test_who_waits_there_answers_others(apart, progress):
    """Under manual the program's calls make progress, and this call is one: who waits in it is asked for the last
    acknowledgements. Three jobs: one in a few would end well by chance."""
    for _ in range(3):
        result = apart.run("1+1", "./last_barrier", limit=LIMIT_S, settings={"HEDDLE_PROGRESS": progress})
        assert result.status == 0 and result.lines.count("finalized") == 2, result


@pytest.mark.parametrize("progress", ["auto", "manual"])
def test_who_waits_there_is_not_missed(apart, progress):
    """The late PE comes five seconds behind the others, which is longer than a PE may be silent."""
    result = apart.run("1+1", "./last_barrier", "slow", limit=LIMIT_S,
                       settings={"HEDDLE_NET_HEARTBEAT_TIMEOUT_S": 1, "HEDDLE_PROGRESS": progress})
    assert result.status == 0 and "late" in result.lines and result.lines.count("finalized") == 2, result


def test_who_is_stopped_there_is_missed(apart):
    result = apart.run("1+1", "./last_barrier", "stopped", limit=LIMIT_S,
                       settings={"HEDDLE_NET_HEARTBEAT_TIMEOUT_S": 1})
    assert result.status != 0 and "PE 1 does not answer any more" in result.err, result
    assert "late" in result.lines and not any(map(alive, result.pids())), result


def test_who_is_killed_there_ends_the_job(apart):
    result = apart.run("1+1", "./last_barrier", "killed", limit=LIMIT_S)
    assert result.status == 128 + 9 and "late" in result.lines and not any(map(alive, result.pids())), result
