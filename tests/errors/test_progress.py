"""Words that are no policy of progress, and policies that the machine cannot do: nonzero, and a message that names what
would be right; at start-up it ends the program."""

import pytest
from conftest import PROGRAMS, both_runs, execute, invoke, is_said, message

FUNCTION = "shmemx_progress_policy"
WORDS = r"auto\|manual\|thread\|thread:spin\|thread:monitor\|thread:block"
NO_MONITOR = r"this CPU has no instruction that watches a cache line for user programs \(or HEDDLE_MONITOR forbids it\)"
INIT = PROGRAMS / "init_only"


@both_runs
def test_no_word(check):
    invoke("one", FUNCTION, "policy=null", check=check).is_fatal(message(FUNCTION, "policy is NULL", 0))


@both_runs
def test_a_word_that_is_none(check):
    result = invoke("one", FUNCTION, "policy=heap", check=check)  # zeros: an empty word
    assert result.status == 0 and "returned 1" in result.out and result.out.count("survived") == 2, result
    text = message(FUNCTION, f'policy "" is none: right would be one of {WORDS}', 0)
    assert is_said(text, result.err.rstrip()), result


def test_a_policy_that_cannot_be_ends_init():
    execute([INIT, "init"], HEDDLE_PROGRESS="thread:monitor", HEDDLE_MONITOR="none").is_fatal(
        rf"heddle.* shmem_init: HEDDLE_PROGRESS=thread:monitor.*{NO_MONITOR}.*")


@pytest.mark.parametrize("policy", ["auto", "manual", "thread", "thread:spin", "thread:block"])
def test_policies_that_can_always_be(policy):
    result = execute([INIT, "init"], HEDDLE_PROGRESS=policy, HEDDLE_MONITOR="none")
    assert result.status == 0 and result.err == "", result


def test_a_monitor_that_is_there():
    result = execute([INIT, "init"], HEDDLE_PROGRESS="thread:monitor", HEDDLE_MONITOR="fake")
    assert result.status == 0 and result.err == "", result
