"""Each benchmark reports what the metronome's operations take, within 2 %: windows, factors, units and warm-ups."""

import re

import pytest
from conftest import read_results
from metronome import COSTS, Times, assert_true, block_bytes, built, measure

SIZES = (64, 4096)
ASKED = ["--sizes", ",".join(map(str, SIZES))]
SAMPLE_MS = {1: 0.3, 100: 10}  # by how slow the library is; samples are at most eight times as long
PRIVATE = ["--contexts", "private"]  # without the plain copies beside the default context, which take no virtual time


def latency_of(t, params):
    """Seconds of an operation of the benchmark latency."""
    op, sync, size = params["op"], params["sync"], params["size_bytes"]
    done = t.flight() + t.quiet()
    if sync == "last_word":
        return 2 * (t.put(8) + t.flight() + t.wait())
    if op == "put_round_trip":
        return 2 * (t.put(size) + t.fence() + t.put(8) + t.flight() + t.wait())
    if op == "put_signal_round_trip":
        return 2 * (t.put(size) + t.signal() + t.flight() + t.wait())
    return {
        "p_quiet": t.put(8) + done,
        "put_quiet": t.put(size) + done,
        "g": t.get(8),
        "get": t.get(size),
        "atomic_add_quiet": t.atomic() + done,
        "atomic_fetch_add": t.fetch(),
        "atomic_fetch": t.fetch(),
        "barrier_all": t.barrier(),
        "sync_all": t.sync(),
    }[op]


LATENCIES = ("put_round_trip", "put_signal_round_trip", "p_quiet", "put_quiet", "g", "get", "atomic_add_quiet",
             "atomic_fetch_add", "atomic_fetch", "barrier_all", "sync_all")  # fmt: skip


@pytest.mark.parametrize("scale", [1, 100])
@pytest.mark.parametrize("pes,threads", [(2, 1), (4, 1), (2, 2)])
def test_latency(tmp_path, pes, threads, scale):
    t = Times(scale)
    asked = ["--ops", ",".join(LATENCIES), *ASKED, *PRIVATE]
    points = measure(tmp_path, "latency", t, *asked, pes=pes, threads=threads, sample_ms=SAMPLE_MS[scale])
    assert {point["params"]["op"] for point in points} == set(LATENCIES)
    assert_true(points, lambda point: latency_of(t, point["params"]))


def window_rate(t, params, slots):
    """Bytes a second of one thread of one sender."""
    size, sync = params["size_bytes"], params["sync"]
    if sync == "fence_flag":  # half of the ring at a time, and a credit that is there
        half = slots // 2
        return half * size / (half * t.put(size) + t.fence() + t.put(8) + t.wait())
    each = t.get(size) if params["op"] == "get" else t.put(size)
    return slots * size / (slots * each + (t.flight() if params["op"] != "get" else 0) + t.quiet())


@pytest.mark.parametrize("scale", [1, 100])
@pytest.mark.parametrize("pes,threads", [(2, 1), (4, 1), (2, 2)])
def test_bandwidth(tmp_path, pes, threads, scale):
    t = Times(scale)
    asked = ["--ops", "put,get,put_both_ways", *ASKED, *PRIVATE]
    points = measure(tmp_path, "bandwidth", t, *asked, pes=pes, threads=threads, sample_ms=SAMPLE_MS[scale])
    assert len(points) == 8

    def truth(point):
        senders = pes if point["params"]["op"] == "put_both_ways" or point["benchmark"] == "bibandwidth" else pes // 2
        return senders * threads * window_rate(t, point["params"], 64)

    assert_true(points, truth)


def rate_of(t, params):
    """Messages a second of one thread of one sender."""
    op, sync, size = params["op"], params["sync"], params["size_bytes"]
    if sync == "self_flag":
        return 1 / t.put(8)
    if sync == "fence_flag":
        return params["batch"] / ((params["batch"] + 1) * t.put(8) + t.fence())
    return 1 / {
        "p": t.put(8),
        "g": t.get(8),
        "put": t.put(size),
        "get": t.get(size),
        "put_nbi": t.put_nbi(size),
        "get_nbi": t.get_nbi(size),
        "atomic_add": t.atomic(),
        "atomic_fetch_add": t.fetch(),
        "atomic_fetch_add_nbi": t.get_nbi(),
        "put_quiet": t.put(size) + t.flight() + t.quiet(),
    }[op]


RATES = ("p", "g", "put", "get", "put_nbi", "get_nbi", "atomic_add", "atomic_fetch_add", "atomic_fetch_add_nbi",
         "put_quiet", "consumed")  # fmt: skip


@pytest.mark.parametrize("scale", [1, 100])
@pytest.mark.parametrize("pes,threads", [(2, 1), (4, 1), (2, 2)])
def test_message_rate(tmp_path, pes, threads, scale):
    t = Times(scale)
    asked = ["--ops", ",".join(RATES), *ASKED, *PRIVATE, "--placements", "heap"]
    points = measure(tmp_path, "message_rate", t, *asked, pes=pes, threads=threads, sample_ms=SAMPLE_MS[scale])
    assert_true(points, lambda point: pes // 2 * threads * rate_of(t, point["params"]))


MOVING = ("put", "put_nbi", "get", "get_nbi", "atomic", "fetch")


@pytest.mark.parametrize("pes,threads", [(2, 2), (4, 3)])
@pytest.mark.parametrize("program", ["latency", "bandwidth", "message_rate"])
def test_the_slowest_thread_counts(tmp_path, program, pes, threads):
    """In each operation that moves data a thread takes 900 ns longer than the one before it."""
    ops = {"latency": LATENCIES, "bandwidth": ("put", "get"), "message_rate": RATES}[program]
    t = Times(thread=(900, 0))
    longer = {name: (COSTS[name][0] + 900 * (threads - 1), COSTS[name][1]) for name in MOVING}
    slowest = Times(**longer)
    asked = ["--ops", ",".join(ops), *ASKED, *PRIVATE, "--placements", "heap"]
    points = measure(tmp_path, program, t, *asked, pes=pes, threads=threads)

    def truth(point):
        params = point["params"]
        if program == "latency":
            return latency_of(slowest, params)
        one = window_rate(slowest, params, 64) if program == "bandwidth" else rate_of(slowest, params)
        return pes // 2 * threads * one

    assert_true(points, truth)


def request_rate_of(t, params):
    """Operations a second of one thread of one sender: what completes them is the wait for each, or one for all."""
    op, sync, size = params["op"], params["sync"], params["size_bytes"]
    if sync in ("quiet_each", "blocking"):
        return 1 / {"put": t.put(size) + t.flight() + t.quiet(), "get": t.get(size), "fetch_add": t.fetch()}[op]
    posted = t.put_nbi(size) if op == "put" else t.get_nbi(size)
    return 1 / (posted + (t.flight() + t.request() if sync == "request_each" else 0))


@pytest.mark.parametrize("pes,threads", [(2, 1), (4, 1), (2, 3)])
def test_completion(tmp_path, pes, threads):
    """What the other threads put takes none of the time of the one that knows."""
    t = Times()
    done = {
        "quiet": t.put_nbi(8) + t.flight() + t.quiet(),
        "request": t.put_nbi(8) + t.flight() + t.request(),
        "signal": t.put(8) + t.signal() + t.put(8) + 2 * (t.flight() + t.wait()),
    }
    points = measure(tmp_path, "completion", t, *ASKED, "--contexts", "default,private", pes=pes, threads=threads)
    times = [point for point in points if point["metric"] == "time"]
    assert len(times) == 2 * 2 * 3
    assert_true(times, lambda point: done[point["params"]["sync"]])
    streams = [point for point in points if point["metric"] == "stream_bandwidth"]
    assert len(streams) == (len(times) if threads > 1 else 0) and all(min(p["samples"]) >= 0 for p in streams)


@pytest.mark.parametrize("threads", [1, 2])
def test_requests(tmp_path, threads):
    t = Times()
    asked = ["--ops", "requests_put,requests_get,requests_fetch_add", *ASKED, *PRIVATE, "--placements", "heap"]
    points = measure(tmp_path, "message_rate", t, *asked, threads=threads)
    assert len(points) == 5 * (2 + 2 + 1)
    assert_true(points, lambda point: threads * request_rate_of(t, point["params"]))


COLLECTIVES = ("broadcast", "collect", "fcollect", "alltoall", "alltoalls", "sum_reduce", "max_reduce")


def back_to_back(point):
    """Where cores suffice there are windows, too, which take as long."""
    return point["params"]["scheme"] == "back-to-back"


@pytest.mark.parametrize("scale", [1, 100])
@pytest.mark.parametrize("pes", [2, 4])
def test_collectives(tmp_path, pes, scale):
    t = Times(scale)
    asked = ["--ops", ",".join(("barrier_all", "sync_all", *COLLECTIVES)), *ASKED]
    points = measure(tmp_path, "collectives", t, *asked, pes=pes, sample_ms=SAMPLE_MS[scale])
    assert sum(back_to_back(point) for point in points) == 2 + 2 * len(COLLECTIVES) * (1 + (pes > 2))

    def truth(point):
        barriers = {"barrier_all": t.barrier(), "sync_all": t.sync()}
        return barriers.get(point["params"]["op"], t.collective(point["params"]["size_bytes"]))

    assert_true(points, truth)


@pytest.mark.parametrize("pes,threads", [(2, 1), (3, 2), (2, 3)])
def test_collectives_of_all_threads(tmp_path, pes, threads):
    t = Times()
    ops = ("team_sync", "team_barrier", "broadcast", "collect", "fcollect", "alltoall", "sum_reduce", "max_reduce")
    asked = ["--ops", ",".join(ops), *ASKED, "--teams", "world"]
    points = measure(tmp_path, "collectives_mt", t, *asked, pes=pes, threads=threads)
    assert sum(back_to_back(point) for point in points) == 2 + 2 * (len(ops) - 2)

    def truth(point):
        barriers = {"team_barrier": t.barrier(), "team_sync": t.sync()}
        return barriers.get(point["params"]["op"], t.collective(point["params"]["size_bytes"]))

    assert_true(points, truth)


def halo_time(t, params):
    """Seconds of an exchange of six faces, of which each thread has equally many, the one behind the other."""
    size, each = params["size_bytes"], 6 // params["threads"]
    if params["sync"] == "quiet_barrier":
        return each * t.put(size) + t.flight() + t.quiet() + t.barrier()
    request = params["sync"] == "request_merged"  # waited for ahead of the next exchange, when all has arrived
    posted = (t.put_nbi(size) if request else t.put(size)) + t.signal()
    sent = [request * t.request() + (turn + 1) * posted for turn in range(each)]
    now = sent[-1]
    for turn in range(each):  # the neighbour's opposite face has its turn beside this one, or before or behind it
        other = turn if params["threads"] % 2 == 0 else turn ^ 1
        now = max(now, sent[other] + t.flight()) + t.wait()
    return now


@pytest.mark.parametrize("pes,threads", [(1, 1), (2, 1), (4, 1), (2, 2), (2, 6)])
def test_halo(tmp_path, pes, threads):
    t = Times()
    asked = ["--form", "exchange", "--sizes", "512,8192", *PRIVATE]
    points = measure(tmp_path, "halo", t, *asked, pes=pes, threads=threads)
    seconds = [point for point in points if point["metric"] == "time"]
    assert len(seconds) == 2 * 3  # sizes, and ways to end an exchange
    assert_true(seconds, lambda point: halo_time(t, point["params"]))
    assert_true([p for p in points if p["metric"] == "rate"], lambda point: 6 * pes / halo_time(t, point["params"]))


@pytest.mark.parametrize("pes", [2, 3])
def test_alltoallv(tmp_path, pes):
    t = Times()
    points = measure(tmp_path, "alltoallv", t, "--sizes", "4096", *PRIVATE, pes=pes)
    assert len(points) == 4
    blocks = [[block_bytes(4096, source, dest) for dest in range(pes)] for source in range(pes)]

    def truth(point):
        put = t.put if point["params"]["op"] == "put" else t.put_nbi
        slowest = max(sum(map(put, row)) for row in blocks)
        seconds = slowest + t.flight() + t.quiet() + t.barrier()
        return seconds if point["metric"] == "time" else sum(map(sum, blocks)) / seconds

    assert_true(points, truth)


@pytest.mark.parametrize("pes", [2, 3])
def test_wait(tmp_path, pes):
    t = Times()
    points = measure(tmp_path, "wait", t, "--waits-ms", "1,20", pes=pes)
    assert len(points) == 4 * 2 * 3 + 3

    def truth(point):
        params = point["params"]
        if params["op"] == "barrier_cost":
            costs = {"switches": t.barrier() / (pes * t.pipe()), "switch": t.pipe(), "barrier": t.barrier()}
            return costs[params["part"] if point["metric"] == "time" else point["metric"]]
        op, wait = params["op"], params["wait_s"]
        late = 2 * t.look() + {
            "wait_until": (pes - 1) * t.put(8) + t.flight() + t.wait(),
            "barrier_all": t.barrier(),
            "team_sync": t.sync(),
            "request_wait": t.post() + t.collective(8) + t.request(),
        }[op]
        burned = t.awake() + t.look() + (t.post() + t.request() if op == "request_wait" else 0)
        return {"wake_latency": late, "cpu_time": burned, "cpu_share": 100 * burned / (wait + late)}[point["metric"]]

    assert_true(points, truth)


@pytest.mark.parametrize("pes,threads", [(2, 1), (2, 2)])
def test_ordering(tmp_path, pes, threads):
    t = Times()
    asked = ["--ops", "relaxed,ordered,fence,quiet", *ASKED, "--outstanding", "1,8"]
    points = [p for p in measure(tmp_path, "ordering", t, *asked, pes=pes, threads=threads) if p["metric"] == "rate"]
    assert len(points) == 2 * (3 * 2 + 1)

    def truth(point):
        rule, size, window = (point["params"][name] for name in ("rule", "size_bytes", "outstanding"))
        fences = window - 1 if rule == "fence" else 0  # the last one passes while its message is in flight
        sent = window * (t.put(size) if rule == "quiet" else t.put_nbi(size)) + fences * t.fence()
        return pes // 2 * threads * window / (sent + t.flight() + t.quiet())

    assert_true(points, truth)


@pytest.mark.parametrize("ratio", [0.5, 1, 2])
@pytest.mark.parametrize(
    "op,sync",
    [
        ("put", "quiet"),
        ("get", "quiet"),
        ("put", "request_each"),
        ("get", "request_each"),
        *((op, "request_wait") for op in ("broadcast", "fcollect", "alltoall", "sum_reduce")),
    ],
)
def test_overlap(tmp_path, op, sync, ratio):
    """Behind a computation disappears what is in flight, as far as that lasts."""
    t, size = Times(flight=(20e3, 0), collective=(20e3, 0.1)), 65536
    asked = ["--ops", op, "--sizes", str(size), "--policies", "auto", "--compute-ratio", str(ratio), "--syncs", sync]
    points = measure(tmp_path, "overlap", t, *asked)
    post, behind = {"put": (t.put_nbi(size), t.flight()), "get": (t.get_nbi(size), t.flight())}.get(
        op, (t.post(), t.collective(size))
    )
    end = t.quiet() if sync == "quiet" else t.request()
    alone = post + behind + end
    computing = ratio * alone
    total = post + max(behind, computing) + end
    times = {"communication": alone, "compute": computing, "total": total, "post": post, "inside": computing}

    def truth(point):
        hidden = 100 * (1 - (total - computing) / alone)
        return {"overlap": hidden, "slowdown": 1}.get(point["metric"]) or times[point["params"]["part"]]

    assert {point["params"]["part"] for point in points} == {*times, "overlap"}
    assert_true(points, truth)


def test_wait_burn(tmp_path):
    t = Times()
    points = measure(tmp_path, "latency", t, "--ops", "wait_burn", "--sleep-ms", "30")
    late = t.put(8) + t.flight() + t.wait() + t.look()
    assert_true(points, lambda p: late if p["metric"] == "wake_latency" else t.awake() + 2 * t.look())


def test_startup(tmp_path):
    t = Times()
    points = measure(tmp_path, "startup", t, "--ops", "init,first_barrier,finalize")
    assert_true(points, lambda p: {"init": t.init(), "first_barrier": t.barrier()}.get(p["params"]["op"], t.finalize()))


def test_idle_waiters(tmp_path):
    """Those that wait cost nothing here, and are not counted."""
    t = Times()
    points = measure(tmp_path, "idle_waiters", t, "--waiters", "0,8")
    assert_true([p for p in points if p["metric"] == "time"], lambda _: 2 * (t.put(8) + t.flight() + t.wait()))


def test_waiters_that_would_take_too_long_are_left_out(tmp_path):
    """By the round trip beside 8, which takes 100 us, one beside 9 takes less than --point-ms, one beside 256 more."""
    t = Times(1, flight=(50e3, 0))
    assert 9 / 8 * 2 * (t.put(8) + t.flight() + t.wait()) < 1e-3 < 256 / 8 * 2 * t.flight()
    points = measure(tmp_path, "idle_waiters", t, "--waiters", "0,8,9,256", "--point-ms", "1")
    assert {point["params"]["waiters"] for point in points} == {0, 8, 9}


def test_two_modes(tmp_path):
    """Every fourth operation takes nine times as long: the figure is the mean."""
    t, slow = Times(), (3 + 9) / 4
    asked = ["--ops", "put,get", "--sizes", "64", *PRIVATE, "--placements", "heap"]
    points = measure(tmp_path, "message_rate", t, *asked, sample_ms=2, METRONOME_MODES="4:9")
    assert_true(points, lambda point: rate_of(t, point["params"]) / slow)


def test_senders_that_start_apart(tmp_path):
    """PE 1 leaves each barrier 600 us late: more than a twentieth of the longest sample that is 1 ms at first."""
    t = Times(100, skew=(600e3, 0))
    asked = ["--ops", "put", "--sizes", "64", *PRIVATE, "--placements", "heap"]
    points = measure(tmp_path, "message_rate", t, *asked, pes=4)
    assert [point["staggered"] for point in points] == [True]
    points = measure(tmp_path, "message_rate", t, *asked, pes=4, sample_ms=20)
    assert [point["staggered"] for point in points] == [False]
    assert_true(points, lambda point: 2 * rate_of(t, point["params"]))


@pytest.mark.parametrize("program", ["latency", "bandwidth", "message_rate", "halo"])
@pytest.mark.parametrize("context,used,by_default", [("default", 0, True), ("shared", 1, False), ("private", 2, False)])
def test_contexts_are_those_that_points_name(tmp_path, program, context, used, by_default):
    """As many as there are threads where each has its own. The metronome ends where a thread uses another's."""
    ops = {
        "latency": "put_round_trip,put_quiet,get",
        "bandwidth": "put_both_ways,get",  # without the plain copies, which take no virtual time
        "message_rate": "put,get",
        "halo": "exchange",
    }[program]
    asked = ["--ops", ops, "--sizes", "5000", "--contexts", context, "--owners", "warm,handed-over"]
    measure(tmp_path, program, Times(), *asked, threads=2, METRONOME_COUNT="5000")
    told = re.findall(r"PE 0: contexts (\d+), default (\d+)", (tmp_path / "log.txt").read_text())
    assert [(int(contexts), int(default) > 0) for contexts, default in told] == [(used, by_default)]


def test_the_same_again(tmp_path):
    """Virtual time depends on nothing else: each sample of two starts is the same."""
    asked = ["--ops", "put_round_trip,get", "--sizes", "64", "--contexts", "private"]
    first, second = (measure(tmp_path, "latency", Times(10), *asked, threads=2) for _ in range(2))
    assert [point["samples"] for point in first] == [point["samples"] for point in second]


@pytest.mark.long
def test_the_driver_takes_it_for_any_other_library(shmem_mt, tmp_path, monkeypatch):
    """Compiled by its oshcc, started by its oshrun: the run folder has the truth, with intervals of no width."""
    t = Times()
    monkeypatch.setenv("METRONOME", t.told())
    asked = ["--only", "latency", "--threads", "1", "--rounds", "6", "--out", tmp_path / "run"]
    status, _, stderr = shmem_mt("run", "--oshcc", built("oshcc"), "--oshrun", built("oshrun"), *asked)
    assert status == 0, stderr
    results = [result for result in read_results(tmp_path / "run") if result["params"]["op"] in LATENCIES]
    assert results
    assert_true(results, lambda result: latency_of(t, result["params"]))
    assert all(low == high for low, high in (result["interval"] for result in results))
