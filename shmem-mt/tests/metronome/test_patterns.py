"""The benchmark patterns over the metronome: figures within 2 % of the truth, whatever the division, the context and
the synchronization, and nothing valid of a library that loses, tears or delays messages."""

import pytest
from metronome import Times, assert_true, measure, named, start

T = Times()
SIZE = 1000  # bytes; no message of the program's own has as many
WINDOW = 8
DONE = {
    "quiet": T.flight() + T.quiet(),
    "thread_quiet": T.flight() + T.quiet(),
    "pe_quiet": T.flight() + T.quiet(),
    "request_merged": T.flight() + T.request(),
    "request_shared": T.flight() + T.request(),
    "barrier_all": T.flight() + T.barrier(),
}


def patterns(tmp_path, ops, syncs, *more, **how):
    asked = ["--ops", ops, "--syncs", syncs, "--sizes", str(SIZE), *more]
    points = measure(tmp_path, "patterns", T, *asked, **how)
    assert {point["params"]["op"] for point in points} == set(ops.split(","))
    assert {point["params"]["sync"] for point in points} == set(syncs.split(","))
    return points


def windows(op, pes, threads):
    """(windows that the job sends in a turn, windows of a thread that sends)."""
    if op == "stream":
        return (pes // 2 * threads if pes > 1 else max(1, threads // 2)), 1
    if op == "fan-out":
        return max(1, pes - 1) * threads, max(1, pes - 1)
    if op == "incast":
        return max(1, pes - 1) * threads, 1
    return pes * threads, 1  # bidirectional, random


def rate_of_windows(params):
    op, sync, size = params["op"], params["sync"], params["size_bytes"]
    sent, own = windows(op, params["pes"], params["threads"])
    messages = params["messages"]
    if sync == "fence_flag":  # bidirectional waits for the other's flag, a stream has its credit
        end = T.flight() + T.wait() if op == "bidirectional" else T.wait()
        turn = messages * T.put(size) + T.fence() + T.put(8) + end
    else:
        turn = own * messages * T.put_nbi(size) + DONE[sync]
    return sent * messages * (1 if op == "random" else size) / turn


@pytest.mark.parametrize("pes,threads", [(2, 1), (1, 2), (4, 2)])
def test_windows(tmp_path, pes, threads):
    ops, more = "stream,bidirectional,incast,fan-out,random", ["--contexts", "private", "--messages", str(WINDOW)]
    points = patterns(tmp_path, ops, "quiet,request_merged", *more, pes=pes, threads=threads)
    assert_true(points, lambda point: rate_of_windows(point["params"]))


def test_one_completes_for_all(tmp_path):
    more = ["--contexts", "default", "--messages", str(WINDOW)]
    points = patterns(tmp_path, "stream,random", "thread_quiet,request_shared,barrier_all", *more, threads=2)
    assert_true(points, lambda point: rate_of_windows(point["params"]))


def test_targets_that_are_told_give_credit(tmp_path):
    points = patterns(tmp_path, "stream,bidirectional", "fence_flag", "--contexts", "private", "--messages", "8")
    assert_true(points, lambda point: rate_of_windows(point["params"]))


FACES = {"halo2d": 4, "halo3d": 6}


def exchange_time(params):
    """Of a turn: the thread with most pieces counts; where targets are told, of PEs with one thread."""
    faces = FACES.get(params["op"], params["pes"])
    pieces, size, sync = params["messages"], params["size_bytes"], params["sync"]
    words = size // 8
    own = [8 * (words // pieces + (piece < words % pieces)) for _ in range(faces) for piece in range(pieces)]
    if sync in DONE:
        most = max(sum(map(T.put_nbi, own[thread :: params["threads"]])) for thread in range(params["threads"]))
        return most + DONE[sync] + (T.sync() if sync != "barrier_all" else 0)
    if sync == "fence_flag":
        sent = sum(map(T.put, own)) + T.fence()
        told = [sent + (place + 1) * T.put(8) for place in range(len(own))]
    else:
        told = [sum(T.put(bytes) + T.signal() for bytes in own[: place + 1]) for place in range(len(own))]
    now = told[-1]
    for place in range(len(own)):
        face = place // pieces
        other = face ^ 1 if params["op"] in FACES else -face % faces
        now = max(now, told[other * pieces + place % pieces] + T.flight()) + T.wait()
    return now


def exchange_rate(point):
    params = point["params"]
    return FACES.get(params["op"], params["pes"]) * params["pes"] * params["size_bytes"] / exchange_time(params)


@pytest.mark.parametrize("pes,threads", [(2, 1), (3, 2), (1, 8)])
def test_exchanges(tmp_path, pes, threads):
    points = patterns(tmp_path, "halo2d,halo3d,alltoall", "quiet,pe_quiet", "--contexts", "private", pes=pes,
                      threads=threads)  # fmt: skip
    assert_true(points, exchange_rate)


def test_exchanges_completed_for_all(tmp_path):
    points = patterns(tmp_path, "halo3d,alltoall", "thread_quiet,request_shared,barrier_all", "--contexts", "default",
                      threads=3)  # fmt: skip
    assert_true(points, exchange_rate)


@pytest.mark.parametrize("messages", ["1", "3"])
def test_exchanges_whose_targets_are_told(tmp_path, messages):
    more = ["--contexts", "private", "--messages", messages]
    points = patterns(tmp_path, "halo2d,halo3d,alltoall", "fence_flag,put_signal", *more, pes=4)
    assert {point["params"]["messages"] for point in points} == {int(messages)}
    assert_true(points, exchange_rate)


@pytest.mark.parametrize("pes,threads", [(1, 1), (1, 2), (4, 2)])
def test_round_trips(tmp_path, pes, threads):
    flag = T.put(8) + T.flight() + T.wait()
    one_way = {
        "quiet": T.put_nbi(SIZE) + DONE["quiet"] + flag,
        "request_merged": T.put_nbi(SIZE) + DONE["request_merged"] + flag,
        "fence_flag": T.put(SIZE) + T.fence() + flag,
        "put_signal": T.put(SIZE) + T.signal() + T.flight() + T.wait(),
    }
    points = patterns(tmp_path, "latency", ",".join(one_way), "--contexts", "private", pes=pes, threads=threads)
    assert_true(points, lambda point: 2 * one_way[point["params"]["sync"]])


@pytest.mark.parametrize("pes,threads", [(1, 1), (3, 2)])
def test_sums(tmp_path, pes, threads):
    done = {
        "blocking": T.collective(SIZE),
        "request_wait": T.post() + T.collective(SIZE) + T.request(),
        "all_threads": T.collective(SIZE),
    }
    points = patterns(tmp_path, "collective", ",".join(done), pes=pes, threads=threads)
    assert_true(points, lambda point: done[point["params"]["sync"]])


def test_a_lock_lets_one_thread_at_a_time_send(tmp_path):
    """All threads together are no faster than one that never rests."""
    more = ["--contexts", "serialized,pool:1", "--messages", str(WINDOW)]
    points = patterns(tmp_path, "stream", "quiet", *more, threads=3)
    by_context = {point["params"]["context"]: max(point["samples"]) for point in points}
    assert {point["valid"] for point in points} == {True}
    assert by_context["serialized"] < 1.02 * SIZE / T.put_nbi(SIZE) < by_context["pool:1"]


def test_threads_that_the_level_lets_send(tmp_path):
    """One for all, or one at a time: the windows of three threads, one behind the other."""
    for level, syncs in (("funneled", "quiet"), ("serialized", "thread_quiet")):
        more = ["--level", level, "--contexts", "default", "--messages", str(WINDOW)]
        (point,) = patterns(tmp_path, "stream", syncs, *more, threads=3)
        assert point["params"]["level"] == level
        turn = 3 * WINDOW * T.put_nbi(SIZE) + DONE[syncs]
        assert_true([point], lambda _, turn=turn: 3 * WINDOW * SIZE / turn)


@pytest.mark.parametrize("every", (1, 3, 7))
@pytest.mark.parametrize("kind", ["drop", "tear", "late"])
def test_what_goes_wrong_is_seen(tmp_path, kind, every):
    ops = "latency,stream,bidirectional,incast,fan-out,halo2d,halo3d,alltoall,random"
    asked = ["--ops", ops, "--sizes", str(SIZE), "--messages", "2", "--contexts", "private"]
    asked += ["--syncs", "quiet,fence_flag,put_signal"]
    faces = ["--ops", "halo3d", "--sizes", str(2 * SIZE), *asked[4:]]  # in two pieces
    for arguments in (asked, faces):
        outcome, points = start(tmp_path, "patterns", T, *arguments, METRONOME_FAULT=f"{kind}:{every}:{SIZE}")
        assert outcome.ok and points
        cut = [p for p in points if p["params"]["size_bytes"] == SIZE and p["params"]["messages"] == 2
               and p["params"]["op"] in (*FACES, "alltoall")]  # fmt: skip
        assert [named(p) for p in points if p not in cut and p["valid"] is not False] == []


@pytest.mark.parametrize("kind", ["drop", "tear", "late"])
def test_sums_that_go_wrong_are_seen(tmp_path, kind):
    asked = ["--ops", "collective", "--sizes", str(SIZE)]
    outcome, points = start(tmp_path, "patterns", T, *asked, METRONOME_FAULT=f"{kind}:3:{SIZE}")
    assert outcome.ok and {point["valid"] for point in points} == {False}


@pytest.mark.parametrize("context,used,by_default", [("default", 0, True), ("shared", 1, False), ("private", 4, False),
                                                     ("serialized", 1, False), ("pool:3", 3, False)])  # fmt: skip
def test_contexts_are_those_that_points_name(tmp_path, context, used, by_default):
    asked = ["--ops", "bidirectional", "--sizes", "5000", "--contexts", context, "--syncs", "quiet,fence_flag"]
    measure(tmp_path, "patterns", T, *asked, threads=4, METRONOME_COUNT="5000")
    told = (tmp_path / "log.txt").read_text()
    assert f"PE 0: contexts {used}, default " in told
    assert ("default 0\n" not in told) is by_default
