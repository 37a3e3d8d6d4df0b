"""The benchmark patterns: every byte is right in all patterns, synchronizations and contexts, however the cores are
divided; faults are caught; what makes no sense is skipped by name; all divisions are planned."""

import pytest
from conftest import compiled_without, run_points
from shmem_mt.catalogue import catalogue, plan
from shmem_mt.runner.points import describe
from shmem_mt.targets import fabrics
from shmem_mt.targets.places import Host, Places

OPS = next(benchmark.ops for benchmark in catalogue.BENCHMARKS if benchmark.name == "patterns")
IN_PAIRS = {"latency", "stream", "bidirectional"}
ORIGIN = {"quiet", "pe_quiet", "request_merged"}
FOR_ALL = {"thread_quiet", "request_shared"}
TARGET = {"fence_flag", "put_signal"}
SUMS = {"blocking", "request_wait", "all_threads"}
LACKING = {
    "put_signal": "SHMEM_MT_HAVE_PUT_SIGNAL",
    "pe_quiet": "SHMEM_MT_HAVE_PE_QUIET",
    "request_merged": "SHMEM_MT_HAVE_SHMEMX",
    "request_shared": "SHMEM_MT_HAVE_SHMEMX",
    "all_threads": "SHMEM_MT_HAVE_SHMEMX",
    "request_wait": "SHMEM_MT_HAVE_PROGRESS",
}


def patterns(implementation, tmp_path, pes, threads, *arguments):
    return run_points(implementation, tmp_path, "patterns", pes, threads, "--point-ms", "1", *arguments)


def wanted(implementation, pes, threads, contexts):
    """{(pattern, synchronization, context)} that make sense."""
    several = FOR_ALL if threads > 1 else set()
    found = set()
    for op in OPS:
        if op in IN_PAIRS and pes % 2 and pes > 1:
            continue
        syncs = ORIGIN | several | TARGET | {"barrier_all"}
        syncs = {"latency": ORIGIN | TARGET, "random": syncs - TARGET - {"pe_quiet"}, "collective": SUMS}.get(op, syncs)
        for sync in (sync for sync in syncs if implementation.features.get(LACKING.get(sync), True)):
            for context in contexts if op != "collective" else ("default",):
                if context.startswith("pool") and int(context[5:]) >= threads:
                    continue
                alone = sync == "barrier_all" and context != "default"
                alone |= sync == "thread_quiet" and context == "private"
                alone |= sync.startswith("request") and context == "serialized"
                if not alone:
                    found.add((op, sync, context))
    return found


@pytest.mark.parametrize("pes,threads", [(1, 1), (1, 3), (2, 2), (3, 2), (4, 1)])
def test_every_byte_is_right(implementation, tmp_path, pes, threads):
    contexts = ("default", "shared", "serialized", "private", "pool:2")
    points, _ = patterns(implementation, tmp_path, pes, threads, "--sizes", "1000", "--contexts", ",".join(contexts))
    found = {tuple(p["params"][name] for name in ("op", "sync", "context")): p["valid"] for p in points}
    assert found == dict.fromkeys(wanted(implementation, pes, threads, contexts), True)
    assert {(p["params"]["pes"], p["params"]["threads"], p["params"]["cores"]) for p in points} == {
        (pes, threads, pes * threads)
    }
    units = dict.fromkeys(("latency", "collective"), ("time", "s")) | {"random": ("throughput", "1/s")}
    for point in points:
        assert (point["metric"], point["unit"]) == units.get(point["params"]["op"], ("throughput", "bytes/s"))
        assert point["params"]["level"] == "multiple" and point["params"]["pinning"] in ("core", "cpu", "none")


def test_sizes_that_are_no_words_and_more_threads_than_pieces(implementation, tmp_path):
    """A face of 8 bytes is no more than a piece, so of eight threads six send one each; 20 bytes are two."""
    asked = ["--contexts", "private", "--sizes", "3,8,20,4096", "--messages", "5"]
    points, _ = patterns(implementation, tmp_path, 1, 8, "--ops", "halo2d,halo3d,alltoall,incast,stream", *asked)
    assert {p["valid"] for p in points} == {True}
    pieces = {p["params"]["size_bytes"]: p["params"]["messages"] for p in points if p["params"]["op"] == "halo3d"}
    assert pieces == {3: 1, 8: 1, 20: 2, 4096: 5}


def test_a_sum_is_of_the_size_that_its_point_has(implementation, tmp_path):
    """Doubles are 8 bytes each; and the buffers of a collective have a limit like those of messages."""
    asked = ["--ops", "collective", "--sizes", "12,16,4096", "--buffer-bytes", "2048"]
    points, skipped = patterns(implementation, tmp_path, 2, 1, *asked)
    assert {p["params"]["size_bytes"] for p in points} == {16}
    assert {what for what in skipped if what.startswith("collective of")} == {
        "collective of 12 bytes", "collective of 4096 bytes"}  # fmt: skip


def test_a_pe_of_seventy_threads(implementation, tmp_path):
    asked = ["--ops", "stream,alltoall", "--syncs", "quiet", "--contexts", "private", "--sizes", "4096"]
    points, _ = patterns(implementation, tmp_path, 1, 70, *asked)
    assert [(p["params"]["op"], p["valid"]) for p in points] == [("stream", True), ("alltoall", True)]
    assert points[1]["params"]["messages"] == 70


@pytest.mark.parametrize("level", catalogue.LEVELS)
@pytest.mark.parametrize("threads", [1, 2])
def test_levels(implementation, tmp_path, level, threads):
    asked = ["--level", level, "--ops", "stream,halo3d", "--sizes", "512", "--contexts", "default,private"]
    points, skipped = patterns(implementation, tmp_path, 2, threads, *asked)
    if level == "single" and threads > 1:
        assert points == [] and skipped == {"threads=2 with level=single"}
        return
    assert points and {p["valid"] for p in points} == {True}
    assert {p["params"]["level"] for p in points} == {level}
    one_at_a_time = threads > 1 and level != "multiple"
    assert ("context=private" in skipped) is one_at_a_time
    assert ("fence_flag" in skipped) is (threads > 1 and level == "serialized")


FAULTS = ["rank-as-size", "check-never-runs", "get-named-put", "skipped-operation", "stale-result",
          "last-element-missing", "idle-timed-pass", "idle-thread", "one-pe-reduction"]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_caught(implementation, tmp_path, fault):
    """Faults of peers are none of a sum's."""
    ops = [op for op in OPS if op != "collective" or fault not in ("rank-as-size", "get-named-put")]
    asked = ["--ops", ",".join(ops), "--sizes", "512", "--contexts", "default", "--plant-fault", fault]
    points, _ = patterns(implementation, tmp_path, 2, 2, *asked, "--syncs", "quiet,fence_flag,put_signal,blocking")
    by_op = {op: {p["valid"] for p in points if p["params"]["op"] == op} for op in ops}
    assert all(by_op[op] == {False} for op in ops), by_op


def test_wrong_peers_are_caught(implementation, tmp_path):
    asked = ["--ops", "stream,halo3d,alltoall,random", "--sizes", "512", "--contexts", "default"]
    points, _ = patterns(implementation, tmp_path, 4, 1, *asked, "--plant-fault", "peer-list-ignored")
    assert points and {p["valid"] for p in points} == {False}


def test_what_makes_no_sense_is_skipped_by_name(implementation, tmp_path):
    asked = ["--ops", "stream,random", "--sizes", "8", "--contexts", "default,private,pool:4"]
    _, skipped = patterns(implementation, tmp_path, 3, 2, *asked)
    assert skipped >= {"stream", "random with fence_flag", "context=pool:4", "thread_quiet with context=private",
                       "barrier_all with context=private"}  # fmt: skip
    points, skipped = patterns(implementation, tmp_path, 2, 1, *asked, "--buffer-bytes", "100")
    assert points == [] and "stream of 8 bytes" in skipped


@pytest.mark.long
def test_what_the_library_has_not_is_skipped_by_name(implementation, tmp_path):
    features = sorted({*LACKING.values(), "SHMEM_MT_HAVE_TEAM_COLLECTIVES"})
    without = compiled_without(implementation, tmp_path, "patterns", *features)
    points, skipped = patterns(without, tmp_path, 2, 2, "--sizes", "8", "--contexts", "default")
    assert {p["params"]["sync"] for p in points} == {"quiet", "thread_quiet", "barrier_all", "fence_flag"}
    assert {*LACKING, "blocking"} <= skipped


def test_splits_are_all_divisions_of_the_cores():
    assert plan.splits(8) == [(8, 1), (4, 2), (2, 4), (1, 8)]
    assert plan.splits(1) == [(1, 1)] and plan.splits(7) == [(7, 1), (1, 7)]
    assert plan.splits(128)[-1] == (1, 128)
    assert plan.splits(12, hosts=3) == [(12, 1), (6, 2), (3, 4)]
    assert plan.splits(7, hosts=2) == [(6, 1), (2, 3)]
    assert plan.splits(1, hosts=2) == [(2, 1)]


def divisions(profile, cores, room=None, **chosen):
    starts = plan.starts(profile, catalogue.select(["patterns"]), plan.Choices(**chosen), cores, room)
    return list(dict.fromkeys((start.pes, start.threads) for start in starts))


def test_the_profiles_divide_the_cores():
    quick, full = plan.PROFILES["quick"], plan.PROFILES["full"]
    assert divisions(quick, 2) == [(2, 1), (1, 2)]
    assert divisions(quick, 64) == [(64, 1), (8, 8), (1, 64)]
    assert divisions(full, 128) == plan.splits(128)
    assert divisions(quick, 8, threads=(4,)) == [(2, 4)] and divisions(quick, 8, pes=(4,)) == [(4, 2)]
    assert divisions(quick, 8, pes=(3, 5), threads=(1, 7)) == [(3, 1), (3, 7), (5, 1), (5, 7)]
    network = plan.NETWORK_PROFILES["full"]
    assert divisions(network, 8, plan.Room(8, 2)) == [(8, 1), (4, 2), (2, 4)]
    assert divisions(network, 2, plan.Room(2, 2)) == [(4, 1), (2, 2)]  # a second division is oversubscribed


def test_cores_are_those_of_all_hosts():
    hosts = Places((Host("a", 4), Host("b", 4)))
    assert plan.room_of(fabrics.HOSTS, hosts, 2) == plan.Room(8, 2)
    assert plan.room_of(fabrics.HOSTS, Places((Host("a"), Host("b"))), 16, 2) == plan.Room(16, 2)
    assert plan.room_of(fabrics.ON_NODE, None, 16, 2) == plan.Room(8, 1)
    assert plan.room_of(fabrics.HOSTS, None, 16) == plan.Room(16, 2)  # a template puts them where it likes
    assert plan.room_of(fabrics.TCP, None, 16) == plan.Room(16, 2)


def test_contexts_and_levels_of_the_full_profile():
    starts = plan.starts(plan.PROFILES["full"], catalogue.select(["patterns"]), plan.Choices(), 8)

    def told(option, among):
        return {(s.threads, s.arguments[s.arguments.index(option) + 1]) for s in among}

    own = [s for s in starts if "--level" not in s.arguments]
    several = "default,shared,serialized,pool:{},private"
    expected = {(1, "default"), *((threads, several.format(threads // 2)) for threads in (2, 4, 8))}
    assert told("--contexts", own) == expected
    levels = {(level, threads) for threads, level in told("--level", [s for s in starts if s not in own])}
    assert levels == {("single", 1), *((level, t) for level in ("funneled", "serialized") for t in (2, 4, 8))}


def test_the_quick_profile_has_room_for_it():
    """32 s of a quick run, by its own estimate, on two cores."""
    starts = plan.starts(plan.PROFILES["quick"], catalogue.select(["patterns"]), plan.Choices(), 2)
    assert sum(start.estimate_s * start.rounds for start in starts) < 32


def test_messages_of_the_command_line(shmem_mt, wrappers):
    asked = ["run", "--only", "patterns", "--dry-run", "--oshcc", wrappers[0], "--oshrun", wrappers[1]]
    assert shmem_mt(*asked, "--messages", "3")[0] == 0
    status, _, stderr = shmem_mt(*asked, "--messages", "0")
    assert status == 2 and "--messages: '0' is not a number between 1 and 4096" in stderr


def test_describe_tells_the_ways_apart():
    params = dict(op="stream", size_bytes=8, sync="thread_quiet", context="pool:2", level="serialized")
    params |= dict(fabric="on-node", pes=2, threads=4)
    words = describe("patterns", params)
    assert "thread_quiet" in words and "pool:2 ctx" in words and "level serialized" in words
