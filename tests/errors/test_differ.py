"""PEs that differ in what they call, on one node and over the network: a checked run names both PEs, both functions and
both places; what manages memory is compared in every run. Two threads in one team's collectives are told so."""

import pathlib
import re

import pytest
from conftest import BUILD, OSHRUN, PLACE, PROGRAMS, execute

PES = 4
NODES = [0, 1, 2] if (BUILD / "lib" / "libheddle_ucx.so").exists() else [0]  # HEDDLE_TEST_PES_PER_NODE; 0: one node
CALL = r"(\w+) \(called at differ\+0x[0-9a-f]+(?:, [\w.]+:\d+)?\)"
nodes = pytest.mark.parametrize("node_pes", NODES)


def run(scenario, node_pes, check, other=2, *arguments):
    return execute([OSHRUN, "-n", PES, PROGRAMS / "differ", scenario, other, *arguments], HEDDLE_CHECK=str(int(check)),
                   HEDDLE_TEST_PES_PER_NODE=str(node_pes), HEDDLE_NET_TRANSPORTS="tcp", UCX_LOG_LEVEL="fatal",
                   HEDDLE_TEST_SERIAL_MEMBERS="2")  # short reductions of double go along a tree


def named(result, pattern):
    """The groups of the pattern in each message, of which there is one at least, and none of another kind. UCX has
    lines of its own where a PE ends while another one connects to it; and on a busy machine PEs may notice one that
    has ended before the launcher ends them."""
    assert result.status == 1, result
    ended = r"heddle \[pe \d\] network: PE \d (does not answer any more: |\(process \d+\) has ended )"
    own = [line for line in result.err.splitlines()
           if not line.startswith(("oshrun: ", "[")) and not re.match(ended, line)]
    matches = [re.fullmatch(f"(?:{pattern})(?:{PLACE})?", line) for line in own]
    assert own and all(matches), f"{pattern}\n{result}"
    return [match.groups()[:match.re.groups - 1] for match in matches]


# What PE 2 calls, and what the others call.
FUNCTIONS = {"functions": ("shmem_long_broadcast", "shmem_long_sum_reduce"),
             "operations": ("shmem_long_max_reduce", "shmem_long_sum_reduce"),
             "types": ("shmem_int_alltoall", "shmem_long_alltoall"),
             "order": ("shmem_team_sync", "shmem_long_sum_reduce"),
             "split_alone": ("shmem_team_split_2d", "shmem_sync_all"),
             "posted": ("shmemx_long_max_reduce_nbe", "shmemx_long_sum_reduce_nbe"),
             "posted_or_blocking": ("shmemx_long_sum_reduce_nbe", "shmem_long_sum_reduce"),
             "active_sets": ("shmem_long_max_to_all", "shmem_long_sum_to_all"),
             "malloc_and_free": ("shmem_free", "shmem_malloc"),
             "malloc_and_barrier": ("shmem_barrier_all", "shmem_malloc")}


# Of a PE that waits for one that is in shmem_finalize: where it waits. A posted collective waits in finalize.
LEFT = {"posted_alone": "shmem_finalize", "barrier_missed": "shmem_barrier_all", "malloc_alone": "shmem_malloc"}


@nodes
@pytest.mark.parametrize("scenario", LEFT)
def test_one_that_finalizes_is_not_waited_for(scenario, node_pes):
    result = run(scenario, node_pes, True)
    assert result.status == 1, result
    where = LEFT[scenario]
    waits = rf"heddle \[pe \d\] shmem_finalize: PE \d is in {where} and waits for this PE, which is in shmem_finalize"
    over_network = rf"heddle \[pe \d\] {where}: PE \d is in another collective while this PE is in {where}"
    parting = r"heddle \[pe \d\] shmem_finalize: PEs of other nodes are in another collective"
    found = [line for line in result.err.splitlines() if re.match(f"{waits}|{over_network}|{parting}", line)]
    assert found, result


IN_SECOND = ("posted_second_alone", "posted_on_a_later_team")


@nodes
@pytest.mark.parametrize("scenario", IN_SECOND)
def test_one_that_posts_alone_is_named_in_any_instance(scenario, node_pes):
    """Plain runs have two. The PE that others wait for has not used the second one."""
    result = run(scenario, node_pes, False)
    assert result.status == 1, result
    assert re.search(r"heddle \[pe \d\] shmem_finalize: PE 2 is in shmemx_request_wait and waits for this PE, which is "
                     "in shmem_finalize: right would be the same collectives on all PEs", result.err), result


@nodes
@pytest.mark.parametrize("scenario", FUNCTIONS)
def test_other_functions_checked(scenario, node_pes):
    others, rest = FUNCTIONS[scenario]
    for pe, function, theirs, their_function, own_function in named(
            run(scenario, node_pes, True),
            rf"heddle \[pe (\d)\] (\w+): PE (\d) is in {CALL} while this PE is in {CALL}: right would be the same "
            "collective on all members"):
        assert function == own_function
        assert {(pe, function), (theirs, their_function)} >= {("2", others)}, (pe, theirs)
        assert {function, their_function} == {others, rest}


# What the argument is called, on PE 2 and on the others; null: whatever it is.
ARGUMENTS = {"counts": ("nelems", 3, 5), "roots": ("PE_root", 1, 0), "team": ("nelems", 3, 5), "splits": ("size", 1, 2),
             "places": ("dest, from the start of its region,", None, None)}
OF_MEMORY = {"malloc_sizes": ("size", 8, 80), "calloc_sizes": ("count * size", 24, 40), "align_sizes": ("size", 8, 80),
             "alignments": ("alignment", 32, 64), "hints_sizes": ("size", 8, 80), "realloc_sizes": ("size", 8, 160),
             "realloc_pointers": ("ptr, from the start of the heap,", 128, 0),
             "free_pointers": ("ptr, from the start of the heap,", 128, 0)}


def check_argument(result, argument, others, rest, call):
    for pe, function, own, own_function, value, theirs, their_function in named(
            result, rf"heddle \[pe (\d)\] (\w+): {re.escape(argument)} is (\d+) in {call}, but (\d+) on PE (\d) in "
                    rf"{call}: right would be the same on all"):
        assert function == own_function == their_function
        values = {pe: int(own), theirs: int(value)}
        assert others is None or (values.pop("2"), values.popitem()[1]) == (others, rest)


@nodes
@pytest.mark.parametrize("scenario", [*ARGUMENTS, "malloc_sizes"])
def test_other_arguments_checked(scenario, node_pes):
    check_argument(run(scenario, node_pes, True), *{**ARGUMENTS, **OF_MEMORY}[scenario], CALL)


@nodes
@pytest.mark.parametrize("scenario", OF_MEMORY)
def test_memory_is_compared_in_every_run(scenario, node_pes):
    check_argument(run(scenario, node_pes, False), *OF_MEMORY[scenario], r"(\w+)")


@nodes
def test_memory_and_something_else(node_pes):
    for function, theirs, own in named(run("malloc_and_free", node_pes, False),
                                       r"heddle \[pe \d\] (\w+): PE \d is in (\w+) while this PE is in (\w+): right "
                                       "would be the same collective on all members"):
        assert function == own and {theirs, own} == {"shmem_malloc", "shmem_free"}
    met = (r"\w+: PE \d is in another collective while this PE is in \w+: right would be the same collective on all "
           "members; .*")
    left = r"\w+: (?:PE \d is|PEs of other nodes are) in .*, which is in shmem_finalize: right would be the same .*"
    parted = r"\w+: PEs of (?:an)?other nodes? (?:leave|are in another) .*"
    for scenario in ("malloc_nothing", "malloc_and_barrier", "malloc_alone"):
        named(run(scenario, node_pes, False), rf"heddle \[pe \d\] (?:{met}|{left}|{parted})")


RIGHT = "right would be the same collective with the same nelems on all members, HEDDLE_CHECK=1 names both calls"
OTHER_NELEMS = (r"heddle \[pe \d\] (\w+): argument nelems differs: (\d+) bytes on this PE, (\d+) bytes on PE \d, in "
                rf"an? ([\w ]+) on SHMEM_TEAM_WORLD; {RIGHT}")
# Of a PE that was through before the others' messages came.
EARLIER = (r"heddle \[pe \d\] \w+: argument nelems differed, or PE \d was in another collective on SHMEM_TEAM_WORLD, "
           rf"in an earlier call: it was in an? [\w ]+ of \d+ bytes, of which this PE has not read all; {RIGHT}")


@pytest.mark.parametrize("node_pes", NODES[1:])
def test_a_message_of_another_length_ends_the_pe(node_pes):
    for _, own, theirs, what in named(run("counts_reduced", node_pes, False), OTHER_NELEMS):
        assert {int(own), int(theirs)} == {3 * 8, 5 * 8} and what == "reduction"


# Each collective whose nelems are alike on all members.
NELEMS = {"broadcast": "shmem_long_broadcast", "fcollect": "shmem_long_fcollect", "alltoall": "shmem_long_alltoall",
          "alltoalls": "shmem_long_alltoalls", "reduce": "shmem_long_sum_reduce", "inscan": "shmem_long_sum_inscan",
          "exscan": "shmem_long_sum_exscan", "reduce_double": "shmem_double_sum_reduce"}


@pytest.mark.parametrize("node_pes", NODES[1:])
@pytest.mark.parametrize("collective", NELEMS)
def test_other_nelems_between_nodes(collective, node_pes):
    # Elements for which the ways differ: none; to all leaders; along a tree (four nodes of long); along the nodes.
    for other, rest in [(3, 5), (0, 3), (3, 0), (3, 20000), (20000, 3), (1500, 20000), (20000, 1500)]:
        for differs in (0, 2) if node_pes == 1 else (2,):  # a member that speaks for its node
            result = run(f"nelems_{collective}", node_pes, False, differs, other, rest)
            for function, own, theirs, _ in named(result, rf"(?:{OTHER_NELEMS})|(?:{EARLIER})"):
                if function is None:
                    continue
                assert function == NELEMS[collective], result
                assert {int(own), int(theirs)} == {other * 8, rest * 8}, result


# What PE 2 is in, and what the others: one waits for the other.
@pytest.mark.parametrize("node_pes", NODES[1:])
def test_another_collective_between_nodes(node_pes):
    for function, theirs, own in named(
            run("functions", node_pes, False),
            rf"heddle \[pe \d\] (\w+): PE \d is in (an? \w+) of 64 bytes while this PE is in (an? \w+) of 64 bytes, "
            rf"both on SHMEM_TEAM_WORLD: {RIGHT}"):
        assert {theirs, own} == {"a broadcast", "a reduction"}, function


@nodes
@pytest.mark.parametrize("collective", NELEMS)
def test_other_nelems_checked(collective, node_pes):
    for other, rest in [(3, 5), (20000, 3), (3, 20000)]:
        argument = "nreduce" if "reduce" in collective else "nelems"
        check_argument(run(f"nelems_{collective}", node_pes, True, 2, other, rest), argument, other, rest, CALL)


TWO = {"two_in_barrier": ({"shmem_barrier_all"}, "SHMEM_TEAM_WORLD"),
       "two_in_team": ({"shmem_long_sum_reduce"}, "the team of 4 PEs from PE 0 to PE 3"),
       "two_in_active_set": ({"shmem_barrier"}, "the active set of 4 PEs from PE 0 to PE 3"),
       "two_different": ({"shmem_sync_all", "shmem_malloc"}, "SHMEM_TEAM_WORLD"),
       "one_posts": ({"shmem_team_sync", "shmemx_team_sync_nbe"}, "SHMEM_TEAM_WORLD"),
       "group_and_one": ({"shmem_sync_all", "shmemx_team_sync_mt"}, "SHMEM_TEAM_WORLD")}


@nodes
@pytest.mark.parametrize("check", [False, True], ids=["plain", "checked"])
def test_two_threads_in_one_team(node_pes, check):
    for scenario, (functions, team) in TWO.items():
        for function, theirs, own in named(
                run(scenario, node_pes, check),
                rf"heddle \[pe 0\] (\w+): another thread of this PE is in {CALL} while this one is in {CALL}, both on "
                f"{team}: right would be one thread at a time in the collectives of a team, or a team for each thread"):
            assert function == own and {theirs, own} == functions


@nodes
@pytest.mark.parametrize("check", [False, True], ids=["plain", "checked"])
def test_threads_that_keep_apart_are_fine(node_pes, check):
    run("right", node_pes, check).is_fine(PES)


def test_scenarios_are_all_run():
    source = pathlib.Path(__file__).with_name("differ.cpp").read_text()
    run_here = {*FUNCTIONS, *LEFT, *ARGUMENTS, *OF_MEMORY, *TWO, *(f"nelems_{name}" for name in NELEMS),
                *IN_SECOND, "malloc_nothing", "counts_reduced", "right"}
    assert set(re.findall(r'\{"(\w+)", \w+\}', source)) == run_here
