"""Wrong exchanges (alltoallv, alltoall and alltoallv with neighbors) and plans: the message, on one node and between
nodes. Lists that do not fit are found in every run on a node, and by HEDDLE_CHECK=1 between nodes."""

import re

import pytest
from conftest import BUILD, EXCHANGES, OSHRUN, PROGRAMS, both_runs, execute, invoke, message

PES, OTHER = 4, 2
NODES = [0, 1, 2] if (BUILD / "lib" / "libheddle_ucx.so").exists() else [0]  # HEDDLE_TEST_PES_PER_NODE; 0: one node
nodes = pytest.mark.parametrize("node_pes", NODES)
NEIGHBOR = "shmemx_neighbor_alltoallv"
SITE = r"\w+ \(called at exchanges\+0x[0-9a-f]+\)"
ADDRESS = "0x[0-9a-f]+"
RANGE = rf"\[{ADDRESS}, {ADDRESS}\)"


def run(scenario, node_pes=0, check=False):
    return execute([OSHRUN, "-n", PES, PROGRAMS / "exchanges", scenario, OTHER], HEDDLE_CHECK=str(int(check)),
                   HEDDLE_TEST_PES_PER_NODE=str(node_pes), HEDDLE_NET_TRANSPORTS="tcp", UCX_LOG_LEVEL="fatal")


def require(result, text):
    """Ended by such a message from one PE at least. Where one ends, others may say that it has."""
    assert result.status == 1, result
    said = [line for line in result.err.splitlines() if re.match(rf"heddle \[pe \d\] (?:{text})", line)]
    assert said, f"{text}\n{result}"


# What another PE than expected does; its function, and what is said of it.
BYTES = r"PE \d sends {} bytes to (?:this PE|PE \d), which expects {}\b.*: right would be the same "
LISTS = {"one_sided": (NEIGHBOR, r".*names PE 2 1 times in neighbors, and PE 2 names .* 0 times: right would be"),
         "named_twice": ("shmemx_neighbor_alltoall", r".* names PE \d [12] times in neighbors, and PE \d names .* [12] "
                                                     "times: right would be"),
         "expects_more": (NEIGHBOR, BYTES.format(8, 9)),
         "expects_long": (NEIGHBOR, BYTES.format(8, 100000)),
         "sends_long": (NEIGHBOR, BYTES.format(100000, 8)),
         "long_differs": (NEIGHBOR, BYTES.format(99999, 100000)),
         "block_bytes": ("shmemx_neighbor_alltoall", BYTES.format("[35]", "[35]")),
         "alltoallv_counts": ("shmemx_alltoallv", BYTES.format(8, 6)),
         "sent_to_nobody": (NEIGHBOR, BYTES.format(8, 0))}


@nodes
@pytest.mark.parametrize("scenario", LISTS)
def test_lists_that_do_not_fit_checked(scenario, node_pes):
    function, text = LISTS[scenario]
    require(run(scenario, node_pes, True), f"{function}: {text}")


@pytest.mark.parametrize("scenario", LISTS)
def test_lists_that_do_not_fit_on_a_node(scenario):
    function, text = LISTS[scenario]
    require(run(scenario), f"{function}: {text}")


@pytest.mark.skipif(len(NODES) == 1, reason="no network")
@pytest.mark.parametrize("scenario", LISTS)
def test_lists_that_do_not_fit_between_nodes(scenario):
    """In every run the job ends: by what has come, by what is left over in a later call, or in finalize."""
    function, _ = LISTS[scenario]
    left = "PE 2 has sent this PE more, in an earlier exchange on SHMEM_TEAM_WORLD, than this PE expected"
    stuck = rf"shmem_finalize: PE \d is in {function}, which nobody can end"
    require(run(scenario, 1), rf"{function}: PE \d sends|\w+: {left}|{stuck}")


@nodes
@pytest.mark.parametrize("scenario,first,second", [("overlap", "dest", "dest"), ("source_in_dest", "source", "dest")])
def test_blocks_that_overlap_checked(scenario, first, second, node_pes):
    require(run(scenario, node_pes, True),
            rf"{NEIGHBOR}: block \d of {first} {RANGE} and block \d of {second} {RANGE} overlap: right would be a "
            "place of its own for each block of dest")


@nodes
@both_runs
def test_right_exchanges_are_silent(node_pes, check):
    run("right", node_pes, check).is_fine(PES)


@nodes
def test_plans_recorded_anew_checked(node_pes):
    require(run("recorded_anew", node_pes, True),
            rf"shmemx_neighbor_alltoall_nbe: the number of runs of its plan is [01] in {SITE}, but [01] on PE \d in "
            rf"{SITE}: right would be the same on all")


@pytest.mark.parametrize("barrier", ["central", "dissemination", "flat"])
def test_plans_recorded_anew_on_a_node(barrier):
    result = execute([OSHRUN, "-n", PES, PROGRAMS / "exchanges", "ring_recorded_anew", OTHER], HEDDLE_BARRIER=barrier)
    require(result, r"shmemx_neighbor_alltoall_nbe: PE \d starts its plan again, and PE \d starts one for the first "
                    "time, or calls: right would be plans that all members record, and start, as often")


START, BEGIN, END = "shmemx_request_start", "shmemx_plan_begin", "shmemx_plan_end"
PLANS = {"freed_plan": (START, rf"plan {ADDRESS} is used in {SITE}, but has ended in {SITE}"),
         "no_plan": (START, rf"plan 0x123456789a00 is none of this PE, in {SITE}: right would be a handle of {BEGIN}"),
         "null_plan": (START, rf"plan \(nil\) is none of this PE, in {SITE}: right would be a handle of {BEGIN}"),
         "begun_twice": (BEGIN, rf"in {SITE} this thread records a plan already, since {SITE}: right would be {END} "
                                "before"),
         "not_begun": (END, f"this thread records no plan: right would be {BEGIN} before"),
         "another_ended": (END, rf"plan is {ADDRESS} in {SITE}, but this thread records another one, since {SITE}: "
                                "right would be that one"),
         "not_ended": (START, rf"plan {ADDRESS} is still being recorded, since {SITE}: right would be {END} before"),
         "started_in_recording": (START, rf"this thread records a plan, since {SITE}: right would be {END} before"),
         "started_twice": (START, rf"plan {ADDRESS} is started in {SITE} while it is under way, since {SITE}: right "
                                  "would be to wait for that request before"),
         "team_destroyed": (START, rf"the team of {SITE}, which plan {ADDRESS} has recorded, was destroyed"),
         "null_place": (BEGIN, "plan is NULL")}


@pytest.mark.parametrize("scenario", PLANS)
def test_plans(scenario):
    function, text = PLANS[scenario]
    require(run(scenario), f"{function}: {text}")


V = [name for name in EXCHANGES if "alltoallv" in name]
OF_NEIGHBORS = [name for name in EXCHANGES if "neighbor" in name]
ARRAYS = ("dest_counts", "dest_offsets", "source_counts", "source_offsets")


@pytest.mark.parametrize("function", V)
@pytest.mark.parametrize("array", ARRAYS)
def test_no_array(function, array):
    invoke("all", function, "nneighbors=1", f"{array}=null").is_fatal(message(function, f"{array} is NULL"))


@pytest.mark.parametrize("function", OF_NEIGHBORS)
@both_runs
def test_neighbors(function, check):
    invoke("all", function, "nneighbors=1", "neighbors=null", check=check).is_fatal(
        message(function, "neighbors is NULL"))
    invoke("all", function, "nneighbors=1", "neighbors=ones", check=check).is_fatal(
        message(function, r"neighbors\[0\] is -1, which is out of range: the team has PEs 0 to 1"))


@pytest.mark.parametrize("function", OF_NEIGHBORS)
def test_number_of_neighbors(function):
    invoke("all", function, f"nneighbors={2**64 - 1}").is_fatal(
        message(function, f"nneighbors is {2**64 - 1}, more than fit in memory: right would be the length of "
                          "neighbors"))


@pytest.mark.parametrize("function", EXCHANGES)
@both_runs
def test_buffers(function, check):
    """Of the form with blocks their places follow; of the others counts of -1 do not fit in an address space."""
    if function in V:
        invoke("all", function, "nneighbors=1", "source_counts=ones", "element_bytes=8", check=check).is_fatal(
            message(function, rf"nelems {2**64 - 1} is too large: .*"))
        invoke("all", function, "nneighbors=1", "dest_counts=ones", "element_bytes=1", check=check).is_fatal(
            message(function, rf"nelems {2**64 - 1} is too large: .*"))
        return
    for argument in ("dest", "source"):
        invoke("all", function, "nneighbors=1", "block_bytes=8", f"{argument}=private", check=check).is_fatal(
            message(function, rf"block 0 of {argument}, {ADDRESS} is not symmetric: .*"))
        invoke("all", function, "nneighbors=1", "block_bytes=8", f"{argument}=heapend-4", check=check).is_fatal(
            message(function, rf"block 0 of {argument}, {ADDRESS}(: 8 bytes from there cross the end of the heap .*|"
                              " lies in symmetric heap that is not allocated: .*)"))


def test_lists_are_complete():
    assert len(V) == 4 and len(OF_NEIGHBORS) == 4 and len(EXCHANGES) == 6
