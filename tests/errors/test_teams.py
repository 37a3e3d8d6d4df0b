"""Teams, contexts of teams, sessions and locks misused: the exact message, or nonzero on all PEs; never a hang."""

import pytest
from conftest import ADDRESS, INT_MAX, INT_MIN, ON_TEAMS, PLACES, alike, both_runs, invoke, is_said, message

NO_TEAM = rf"team ({ADDRESS}) is no team: it was destroyed, or never created"
QUERIES = {"shmem_team_my_pe": "team", "shmem_team_n_pes": "team", "shmem_team_get_config": "team",
           "shmem_team_translate_pe": "src_team", "shmem_team_ptr": "team", "shmem_team_create_ctx": "team",
           "shmem_team_split_strided": "parent_team", "shmem_team_split_2d": "parent_team"}
SPLITS = {"shmem_team_split_strided", "shmem_team_split_2d"}


def complains(result, function, text, times=2):
    """Every PE goes on, with -1 and this message."""
    assert result.status == 0 and result.out.count("returned -1") == times, result
    lines = result.err.splitlines()
    assert len(lines) == times and all(is_said(message(function, text), line) for line in lines), result


@pytest.mark.parametrize("function,argument", QUERIES.items())
@both_runs
def test_destroyed_teams(function, argument, check):
    invoke("all", function, f"{argument}=destroyed", check=check).is_fatal(message(function, NO_TEAM))


def test_destroyed_destination():
    function = "shmem_team_translate_pe"
    invoke("all", function, "dest_team=destroyed").is_fatal(message(function, NO_TEAM))


@pytest.mark.parametrize("function,argument", [*QUERIES.items(), ("shmem_team_destroy", "team")])
def test_what_never_was_a_team_checked(function, argument):
    invoke("all", function, f"{argument}=none", check=True).is_fatal(message(function, NO_TEAM))


@pytest.mark.parametrize("function,argument", QUERIES.items())
@both_runs
def test_no_team_is_told_by_the_result(function, argument, check):
    result = invoke("all", function, f"{argument}=invalid", check=check)
    right = {"shmem_team_ptr": "returned NULL", "shmem_team_create_ctx": "returned 1"}.get(function, "returned -1")
    assert result.status == 0 and result.out.count(right) == 2 and result.err == "", result


@both_runs
def test_destroying_what_cannot_be(check):
    function = "shmem_team_destroy"
    for team in ("world", "shared"):
        invoke("all", function, f"team={team}", check=check).is_fatal(
            message(function, f"team is SHMEM_TEAM_{team.upper()}, which cannot be destroyed"))
    invoke("all", function, "team=destroyed", check=check).is_fatal(message(function, NO_TEAM))
    invoke("all", function, "team=invalid", check=check).is_fine()
    invoke("one", function, "team=invalid", check=check).is_fine()
    invoke("all", function, "team=created", check=check).is_fine()


@pytest.mark.parametrize("function", ON_TEAMS)
@both_runs
def test_collectives_on_no_team(function, check):
    invoke("all", function, "team=invalid", check=check).is_fatal(
        message(function, "team is SHMEM_TEAM_INVALID: right would be a team that this PE is a member of"))
    invoke("all", function, "team=destroyed", check=check).is_fatal(message(function, NO_TEAM))


@pytest.mark.parametrize("start,stride,size", [
    (-1, 1, 2), (4, 1, 1), (INT_MAX, 1, 1), (INT_MIN, 1, 1), (0, 1, 0), (0, 1, -1), (0, 1, 5), (0, 2, 3), (1, 3, 2),
    (0, -1, 2), (3, -2, 3), (0, 0, 2), (0, INT_MAX, 2), (3, INT_MIN, 2), (0, 1, INT_MAX), (1, INT_MAX, INT_MAX),
    (INT_MAX, INT_MAX, INT_MAX), (0, 1, INT_MIN)])
@both_runs
def test_wrong_triplets(start, stride, size, check):
    """Nonzero on all PEs, and SHMEM_TEAM_INVALID (the conformance tests look at that)."""
    function = "shmem_team_split_strided"
    result = invoke("all", function, f"start={start}", f"stride={stride}", f"size={size}", pes=4, check=check)
    complains(result, function, rf"start {start}, stride {stride}, size {size} is no subset: right would be size >= 1, "
                                r"and numbers from start to start \+ stride \* \(size - 1\) within 0 to 3", 4)


@pytest.mark.parametrize("xrange", [0, -1, INT_MIN])
@both_runs
def test_wrong_ranges(xrange, check):
    function = "shmem_team_split_2d"
    result = invoke("all", function, f"xrange={xrange}", check=check)
    complains(result, function, rf"xrange {xrange} is wrong: right would be 1 or more")


CONFIGS = [("shmem_team_split_strided", "config", "config_mask"), ("shmem_team_split_2d", "xaxis_config", "xaxis_mask"),
           ("shmem_team_split_2d", "yaxis_config", "yaxis_mask")]


@pytest.mark.parametrize("function,config,mask", CONFIGS)
@both_runs
def test_wrong_configurations(function, config, mask, check):
    complains(invoke("all", function, f"{mask}=6", check=check), function, "config_mask 0x6: the bits 0x6 are unknown")
    complains(invoke("all", function, f"{mask}=1", f"{config}=null", check=check), function,
              "config is NULL, but config_mask is 0x1: right would be a config, or 0")
    complains(invoke("all", function, f"{mask}=1", f"{config}=ones", check=check), function,
              "num_contexts -1 is wrong: right would be 0 or more")
    invoke("all", function, f"{mask}=0", f"{config}=null", check=check).is_fine()


@pytest.mark.parametrize("function,config,mask", CONFIGS)
@pytest.mark.parametrize("pe", [0, 1])
def test_a_wrong_configuration_on_one_fails_on_all(function, config, mask, pe):
    result = invoke("all", function, f"{mask}@{pe}=1", f"{config}@{pe}=ones", pes=3)
    assert result.status == 0 and result.out.count("returned -1") == 3 and result.out.count("survived") == 3, result
    assert is_said(message(function, "num_contexts -1 is wrong: right would be 0 or more", pe), result.err.rstrip())


@both_runs
def test_wrong_configuration_to_get(check):
    function = "shmem_team_get_config"
    result = invoke("one", function, "config_mask=2", check=check)
    complains(result, function, "config_mask 0x2: the bits 0x2 are unknown", 1)
    invoke("one", function, "config_mask=1", "config=null", check=check).is_fatal(message(function, "config is NULL"))
    invoke("one", function, "config_mask=0", "config=null", check=check).is_fine()


@pytest.mark.parametrize("function,argument", [("shmem_team_split_strided", "new_team"),
                                               ("shmem_team_split_2d", "xaxis_team"),
                                               ("shmem_team_split_2d", "yaxis_team"), ("shmem_ctx_get_team", "team"),
                                               ("shmem_team_create_ctx", "ctx")])
@both_runs
def test_results_into_nothing(function, argument, check):
    invoke("all", function, f"{argument}=null", check=check).is_fatal(message(function, f"{argument} is NULL"))


@pytest.mark.parametrize("function,arguments", [("shmem_team_split_strided", ["start", "stride", "size"]),
                                                ("shmem_team_split_2d", ["xrange"])])
def test_unequal_splits_checked(function, arguments):
    for argument in arguments:
        # On the other PE a triplet that is right, too: of one PE, and with another start or stride.
        others = {"start": ["size=1", "start@1=1"], "stride": ["size=1", "stride@1=2"], "size": ["size@1=1"],
                  "xrange": ["xrange@1=2"]}[argument]
        result = invoke("all", function, *others, check=True)
        result.is_fatal(message(function, alike(argument, r"\d+", r"\d+", r"\d")))


NO_CONTEXT = rf"ctx {ADDRESS} is no context: it was destroyed, or never created"


@both_runs
def test_contexts_and_their_teams(check):
    function = "shmem_ctx_get_team"
    result = invoke("one", function, "ctx=invalid", check=check)
    assert result.status == 0 and "returned 1" in result.out and result.err == "", result
    invoke("one", function, "ctx=destroyed", check=check).is_fatal(message(function, NO_CONTEXT))
    invoke("one", function, "ctx=created", check=check).is_fine()
    result = invoke("one", "shmem_team_create_ctx", "options=8", check=check)
    assert result.status == 0 and "returned 1" in result.out, result
    assert "shmem_team_create_ctx: options 0x8: the bits 0x8 are unknown" in result.err
    result = invoke("one", "shmem_team_create_ctx", "team=created", pes=1, check=check)
    assert result.status == 0 and "returned 0" in result.out and result.err == "", result


@both_runs
def test_sessions(check):
    start, stop = "shmem_ctx_session_start", "shmem_ctx_session_stop"
    for function in (start, stop):
        invoke("one", function, "ctx=invalid", check=check).is_fine()
        invoke("one", function, "ctx=destroyed", check=check).is_fatal(message(function, NO_CONTEXT))
    for ctx in ("default", "created"):
        invoke("one", stop, f"ctx={ctx}", check=check).is_fine()  # none is open: no effect
        invoke("one", start, f"ctx={ctx}", "options=1", "config_mask=1", check=check).is_fine()
    invoke("one", start, "options=4", check=check).is_fine()  # no combination of hints is an error
    invoke("one", start, "config_mask=2", check=check).is_fatal(
        message(start, "config_mask 0x2: the bits 0x2 are unknown"))
    invoke("one", start, "config_mask=1", "config=null", check=check).is_fatal(message(start, "config is NULL"))


LOCKS = ["shmem_set_lock", "shmem_clear_lock", "shmem_test_lock"]


@pytest.mark.parametrize("function", LOCKS)
@both_runs
def test_locks_that_are_none(function, check):
    for place in ("stack", "malloc", "null", "library"):
        invoke("one", function, f"lock={place}", check=check).is_fatal(
            message(function, rf"lock ({ADDRESS}|\(nil\)) is not symmetric: {PLACES}(; .*)?"))
    invoke("one", function, "lock=heap+4", check=check).is_fatal(
        message(function, rf"lock {ADDRESS} is not a multiple of 8, as an atomic of that size needs"))
    invoke("one", function, "lock=heapend", check=check).is_fatal(
        message(function, rf"lock {ADDRESS} is not symmetric: {PLACES}(; .*)?"))


@pytest.mark.parametrize("function", LOCKS)
def test_locks_in_freed_memory_checked(function):
    invoke("one", function, "lock=freed", check=True).is_fatal(
        message(function, rf"lock {ADDRESS} lies in symmetric heap that is not allocated: it was freed, or never "
                          "allocated"))


@pytest.mark.parametrize("place", ["heap", "static"])
@both_runs
def test_clearing_a_lock_that_is_not_held(place, check):
    invoke("one", "shmem_clear_lock", f"lock={place}", check=check).is_fatal(
        message("shmem_clear_lock", rf"lock {ADDRESS} is not held by this PE"))
