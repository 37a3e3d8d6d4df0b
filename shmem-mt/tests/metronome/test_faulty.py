"""A library that loses, doubles, tears or delays one message in n: what it measures is invalid, or it never ends.

Sizes are such that no message of the programs' own has them. A point is invalid where the validating pass, or a timed
pass that reads, has a message that went wrong; shmem-mt/docs/method.md says for which n that is sure. Of messages of 8
bytes those of the programs go wrong, too; then it may be that nobody can go on, and no point comes.
"""

import pytest
from metronome import Times, block_bytes, named, start

SIZE = 1000  # bytes
PUTS_AND_GETS = {
    "latency": ["--ops", "put_round_trip,put_signal_round_trip,put_quiet,get", "--owners", "warm,handed-over"],
    "bandwidth": ["--ops", "put,get,put_both_ways"],
    "completion": ["--threads", "2"],
    "message_rate": ["--ops", "put,get,put_nbi,get_nbi,requests_put,requests_get"],
    "ordering": ["--ops", "relaxed,ordered,fence", "--outstanding", "16"],
    "overlap": ["--ops", "put,get", "--policies", "auto"],
}
EVERY = (1, 3, 7)


def verdicts(tmp_path, program, fault, *arguments, **changed):
    """{point of messages that can go wrong: whether it is valid}; empty where the program did not end well."""
    asked = [*arguments, "--contexts", "private"]
    outcome, points = start(tmp_path, program, Times(**changed), *asked, METRONOME_FAULT=fault)
    sized = [point for point in points if point["params"].get("sync") != "last_word"]
    return {named(point): point["valid"] for point in sized} if outcome.ok else {}


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("kind", ["drop", "tear", "late"])
@pytest.mark.parametrize("program", PUTS_AND_GETS)
def test_puts_and_gets(tmp_path, program, kind, every):
    found = verdicts(tmp_path, program, f"{kind}:{every}:{SIZE}", *PUTS_AND_GETS[program], "--sizes", str(SIZE))
    assert found
    assert [point for point, valid in found.items() if valid is not False] == []


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("kind", ["drop", "tear", "late"])
def test_faces(tmp_path, kind, every):
    found = verdicts(tmp_path, "halo", f"{kind}:{every}:5000", "--form", "exchange", "--sizes", "5000")
    assert found
    assert set(found.values()) == {False}


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("kind", ["drop", "tear", "late"])
def test_uneven_blocks(tmp_path, kind, every):
    found = verdicts(tmp_path, "alltoallv", f"{kind}:{every}:{block_bytes(SIZE, 0, 1)}", "--sizes", str(SIZE))
    assert found
    assert set(found.values()) == {False}


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("kind", ["drop", "tear", "late"])
@pytest.mark.parametrize(
    "program,ops,blocks",
    [
        ("collectives", "broadcast,sum_reduce,max_reduce", 1),
        ("collectives", "collect,fcollect,alltoall", 2),
        ("collectives_mt", "broadcast,sum_reduce,max_reduce", 1),
        ("overlap", "broadcast,sum_reduce", 1),
        ("overlap", "fcollect,alltoall", 2),
    ],
)
def test_collectives(tmp_path, program, ops, blocks, kind, every):
    asked = ["--ops", ops, "--sizes", str(SIZE), "--policies", "auto"]
    found = verdicts(tmp_path, program, f"{kind}:{every}:{blocks * SIZE}", *asked)
    assert found
    assert [point for point, valid in found.items() if valid is not False] == []


@pytest.mark.parametrize("every", (7, 50, 500))
@pytest.mark.parametrize(
    "op,kind", [("p", "drop"), ("p", "late"), ("atomic_add", "drop"), ("atomic_add", "double"), ("atomic_add", "late")]
)
def test_words(tmp_path, op, kind, every):
    late = {} if kind == "late" else {"late": (2e3, 0)}
    found = verdicts(tmp_path, "message_rate", f"{kind}:{every}:8", "--ops", op, "--placements", "heap", **late)
    assert set(found.values()) <= {False}


@pytest.mark.parametrize("every", (2, 3, 7, 50, 500))
def test_consumed_messages_that_come_late(tmp_path, every):
    """Behind the flag of their batch."""
    found = verdicts(tmp_path, "message_rate", f"late:{every}:8", "--ops", "consumed", "--batches", "8", late=(3e3, 0))
    assert found
    assert set(found.values()) == {False}


@pytest.mark.parametrize("every", (3, 50, 400))
@pytest.mark.parametrize("kind", ["drop", "tear", "late"])
@pytest.mark.parametrize("program,ops", [("latency", "put_round_trip,put_signal_round_trip"), ("bandwidth", "put")])
def test_what_is_read_is_checked_in_the_timed_pass(tmp_path, program, ops, kind, every):
    asked = ["--ops", ops, "--sizes", str(SIZE), "--touches", "read", "--sample-ms", "1"]
    found = verdicts(tmp_path, program, f"{kind}:{every}:{SIZE}", *asked, late=(20e3, 0))
    assert found
    assert set(found.values()) == {False}


T = Times()
LAP = {  # from a message to the next one in its place, and on until that has come and is not yet read
    "put_round_trip": 2 * (T.put(SIZE) + T.fence() + T.put(8) + T.flight() + T.wait()) + T.put(8) / 2,
    "put_signal_round_trip": 2 * (T.put(SIZE) + T.signal() + T.flight() + T.wait()) + T.wait() / 2,
    "put": 64 * T.put(SIZE) + 2 * (T.fence() + T.put(8) + T.wait()) + T.put(SIZE) / 2,
}


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("op", LAP)
def test_doubled_messages_that_overwrite_the_next(tmp_path, op, every):
    asked = ["--ops", op, "--sizes", str(SIZE), "--touches", "read"]
    program = "bandwidth" if op == "put" else "latency"
    found = verdicts(tmp_path, program, f"double:{every}:{SIZE}", *asked, late=(1e9 * LAP[op], 0))
    assert found
    assert set(found.values()) == {False}


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("program", ["latency", "collectives"])
def test_syncs_that_do_not_wait(tmp_path, program, every):
    """PE 1 leaves all others late, so that the two do not come at the same time."""
    asked = ["--ops", "sync_all", "--sizes", "8"]
    found = verdicts(tmp_path, program, f"early:{every}:1", *asked, skew=(10e3, 0))
    assert found
    assert set(found.values()) == {False}
