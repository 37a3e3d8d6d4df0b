"""Words that are no policy of progress, and policies that the machine cannot do: nonzero, and a message that names what
would be right; at start-up it ends the program."""

import pytest

from conftest import PROGRAMS, both_runs, execute, faults, message

FUNCTION = "shmemx_progress_policy"
WORDS = r"auto\|manual\|thread\|thread:spin\|thread:monitor\|thread:block"
NO_MONITOR = (r"this CPU has no instruction that watches a cache line for user programs \(or HEDDLE_MONITOR forbids it\)")
INIT = PROGRAMS / "init_only"


@both_runs
def test_no_word(check):
    faults("one", FUNCTION, "policy=null", check=check).is_fatal(message(FUNCTION, "policy is NULL", 0))


@both_runs
def test_words_that_are_none(check):
    """An empty one, and bytes that are no text of any kind."""
    for place, shown in (("heap", ""), ("ones", ".*")):
        result = faults("one", FUNCTION, f"policy={place}", check=check)
        assert result.status == 0 and "returned 1" in result.out and result.out.count("survived") == 2, result
        text = message(FUNCTION, f'policy "{shown}" is none: right would be one of {WORDS}', 0)
        assert __import__("re").fullmatch(text + "\n", result.err, 16), result


@pytest.mark.parametrize("monitor", ["none"])
def test_policies_that_cannot_be_end_init(monitor):
    execute([INIT, "init"], HEDDLE_PROGRESS="thread:monitor", HEDDLE_MONITOR=monitor).is_fatal(
        rf"heddle.* shmem_init: HEDDLE_PROGRESS=thread:monitor.*{NO_MONITOR}.*")


@pytest.mark.parametrize("policy", ["auto", "manual", "thread", "thread:spin", "thread:block"])
def test_policies_that_can_always_be(policy):
    result = execute([INIT, "init"], HEDDLE_PROGRESS=policy, HEDDLE_MONITOR="none")
    assert result.status == 0 and result.err == "", result


def test_a_monitor_that_is_there():
    result = execute([INIT, "init"], HEDDLE_PROGRESS="thread:monitor", HEDDLE_MONITOR="fake")
    assert result.status == 0 and result.err == "", result
