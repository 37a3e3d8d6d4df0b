"""What collectives of teams that span nodes send each other: control messages, as each PE counts those that come to it
and HEDDLE_STATS=1 shows. The bounds are those of docs/decisions/0014; the results of each run are checked, too, around
the sizes at which the ways change. The build under test is the folder HEDDLE_BUILD."""

import functools
import os
import pathlib
import re
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"])
SHAPES = [(2, 1), (4, 2), (7, 3), (8, 1)]  # PEs, PEs of a node
KIB = 1024
shapes = pytest.mark.parametrize("pes,node_pes", SHAPES)

if not (BUILD / "lib" / "libheddle_ucx.so").exists():
    pytest.exit("skipped: no network", returncode=77)


def messages(operation, nbytes, times, pes, node_pes, serial_members=64, counter="received", late=()):
    """Those that have come to each PE, or waited there at once. late: the PE that begins later."""
    settings = {"HEDDLE_TEST_SERIAL_MEMBERS": str(serial_members),
                "HEDDLE_TEST_PES_PER_NODE": str(node_pes), "HEDDLE_NET_TRANSPORTS": "tcp", "HEDDLE_STATS": "1",
                "SHMEM_SYMMETRIC_SIZE": "64M"}
    command = [BUILD / "bin" / "oshrun", "-n", pes, BUILD / "tests" / "conformance" / "conformance_message_counts",
               operation, nbytes, times, *late]
    result = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            timeout=600, check=False, env={**os.environ, **settings})
    assert result.returncode == 0, f"{result.returncode}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
    found = re.search(rf"^ *control_messages_{counter} .*\[([\d ]+)\]$", result.stderr, re.M)
    assert found and len(found[1].split()) == pes, result.stderr
    return [int(count) for count in found[1].split()]


@functools.lru_cache
def messages_of_none(pes, node_pes):
    return messages("barrier", 8, 0, pes, node_pes)


def messages_of_one(operation, nbytes, pes, node_pes, serial_members=64):
    times = 4
    total = messages(operation, nbytes, times, pes, node_pes, serial_members)
    each = [(all_of_it - none) / times for all_of_it, none in zip(total, messages_of_none(pes, node_pes))]
    assert all(count == int(count) for count in each), each
    return each


def node_count(pes, node_pes):
    return -(-pes // node_pes)


def told(nodes):
    """Messages to a leader when all tell each other."""
    count, known = 0, 1
    while known < nodes:
        count += min(3, -(-nodes // known) - 1)
        known *= 4
    return count


def at_leaders(count, pes, node_pes):
    return [count if pe % node_pes == 0 else 0 for pe in range(pes)]


@shapes
def test_a_barrier_is_one_letter_a_round(pes, node_pes):
    rounds = (node_count(pes, node_pes) - 1).bit_length()
    assert messages_of_one("barrier", 8, pes, node_pes) == at_leaders(rounds, pes, node_pes)


@shapes
@pytest.mark.parametrize("nbytes", [8, 16 * KIB, 100 * KIB])
def test_a_broadcast_is_one_letter_a_node(pes, node_pes, nbytes):
    root_node = (pes - 1) // node_pes
    right = [1 if pe % node_pes == 0 and pe // node_pes != root_node else 0 for pe in range(pes)]
    assert messages_of_one("broadcast", nbytes, pes, node_pes) == right


@pytest.mark.parametrize("pes,node_pes", [(3, 1), (5, 2), (4, 1)])
@pytest.mark.parametrize("beyond", [-1, 0, 1, 300000])
def test_a_long_broadcast_goes_in_pieces(pes, node_pes, beyond):
    piece = 256 * KIB
    nbytes = node_count(pes, node_pes) * piece + beyond
    pieces = -(-nbytes // piece) if beyond >= 0 else 1
    count = messages_of_one("broadcast", nbytes, pes, node_pes)
    assert sum(count) == pieces * (node_count(pes, node_pes) - 1) and max(count) == pieces, count


@shapes
@pytest.mark.parametrize("operation", ["collect", "fcollect", "reduce", "inscan", "exscan"])
def test_short_ones_are_told_among_leaders(operation, pes, node_pes):
    right = at_leaders(told(node_count(pes, node_pes)), pes, node_pes)
    for nbytes in (8, 1000):
        assert messages_of_one(operation, nbytes, pes, node_pes) == right, nbytes


def test_telling_takes_a_few_messages_on_many_nodes():
    assert messages_of_one("fcollect", 8, 18, 1) == [7] * 18


@shapes
@pytest.mark.parametrize("nbytes", [3000, 4095, 4096, 8 * KIB, 8 * KIB + 8, 40000])
def test_collect_of_any_size_is_right(pes, node_pes, nbytes):
    """Short parts need no messages of their own; long ones one to each node."""
    for operation in ("collect", "fcollect"):
        most = max(messages_of_one(operation, nbytes, pes, node_pes))
        others = pes - (pes % node_pes or node_pes) if nbytes >= 4096 else node_count(pes, node_pes) - 1
        assert most <= told(node_count(pes, node_pes)) + others, operation


@shapes
@pytest.mark.parametrize("operation", ["alltoall", "alltoalls"])
def test_short_blocks_are_one_letter_for_two_nodes(operation, pes, node_pes):
    nodes = node_count(pes, node_pes)
    assert sum(messages_of_one(operation, 1000, pes, node_pes)) == nodes * (nodes - 1)


@shapes
@pytest.mark.parametrize("nbytes", [8 * KIB, 8 * KIB + 8, 40000])
def test_blocks_of_any_size_come_right(pes, node_pes, nbytes):
    """Longer ones are a message each at most."""
    for operation in ("alltoall", "alltoalls"):
        sums = sum(messages_of_one(operation, nbytes, pes, node_pes))
        assert sums <= sum(pes - min(node_pes, pes - pe // node_pes * node_pes) for pe in range(pes)), operation


@shapes
@pytest.mark.parametrize("total", [-8, 0, 8, 100000])
def test_long_sums_go_along_the_nodes(pes, node_pes, total):
    """In pieces of 16 KiB: one message a piece to every node, and one more round all where all have the sum."""
    nbytes = (32 * KIB // pes + total) // 8 * 8
    nodes, pieces = node_count(pes, node_pes), -(-nbytes // (16 * KIB))
    for operation in ("reduce_double", "inscan", "exscan"):
        count = messages_of_one(operation, nbytes, pes, node_pes)
        if nbytes * pes <= 32 * KIB:
            assert max(count) <= 3 * told(nodes)
        else:
            assert sum(count) == pieces * (nodes - 1) * (2 if operation == "reduce_double" else 1), operation


@shapes
@pytest.mark.parametrize("total", [0, 8, 100000])
def test_sums_of_integers_are_told_by_node(pes, node_pes, total):
    """One part a node; beyond that two messages a node and piece, by a tree and back, or along all and round. Long ones
    of more than two nodes have one more a node, so that nodes of other nelems do not wait for each other."""
    nodes = node_count(pes, node_pes)
    nbytes = (32 * KIB // nodes + total) // 8 * 8
    pieces = -(-nbytes // (16 * KIB))
    count = messages_of_one("reduce", nbytes, pes, node_pes)
    here = int(pieces > 1 and nodes > 2)
    assert sum(count) == (2 * pieces + here) * (nodes - 1) if total else max(count) <= 3 * told(nodes)


@pytest.mark.parametrize("operation", ["inscan", "exscan"])
@pytest.mark.parametrize("pes,node_pes,up", [(4, 2, 1), (7, 3, 3), (8, 1, 7), (8, 3, 3), (5, 2, 2)])
@pytest.mark.parametrize("beyond", [8, 3000])
def test_short_scans_of_many_integers_are_a_tree(operation, pes, node_pes, up, beyond):
    """Each value that a node without its left half has; and as many sums back."""
    nbytes = min((32 * KIB // pes + beyond) // 8 * 8, 16 * KIB)
    assert sum(messages_of_one(operation, nbytes, pes, node_pes, serial_members=2)) == 2 * up


@pytest.mark.parametrize("pes,node_pes,up", [(4, 2, 1), (7, 3, 3), (8, 1, 7), (8, 3, 3), (5, 2, 2)])
@pytest.mark.parametrize("beyond", [8, 3000])
def test_short_sums_of_many_reals_are_a_tree(pes, node_pes, up, beyond):
    """up: the values that a node without their left half has. Then the result goes down."""
    nbytes = min((32 * KIB // pes + beyond) // 8 * 8, 16 * KIB)
    count = messages_of_one("reduce_double", nbytes, pes, node_pes, serial_members=2)
    assert sum(count) == up + node_count(pes, node_pes) - 1


STEPS_AHEAD = 256  # team::Span::kStepsAhead


@pytest.mark.parametrize("operation,teams", [("broadcast", 1), ("broadcasts", 3)])
@pytest.mark.parametrize("pes,node_pes", [(2, 1), (4, 2)])
def test_roots_run_ahead_of_late_pes_only_so_far(operation, teams, pes, node_pes):
    """A broadcast waits for nobody at its root; every 256th step of a team brings its nodes together."""
    times = 3 * STEPS_AHEAD
    waiting = messages(operation, 8, times, pes, node_pes, counter="waiting", late=(0,))
    assert 1 < max(waiting) <= teams * (STEPS_AHEAD + 2), waiting


@pytest.mark.parametrize("operation", ["inscan", "exscan"])
def test_long_scans_run_ahead_of_late_pes_only_so_far(operation):
    """At most 32 pieces of one scan wait."""
    waiting = messages(operation, 200 * 16 * KIB, 1, 2, 1, counter="waiting", late=(1,))
    assert 1 < max(waiting) <= 32 + 2, waiting


@shapes
@pytest.mark.parametrize("operation", ["neighbors", "neighbors_started"])
@pytest.mark.parametrize("nbytes", [8, 16 * KIB, 16 * KIB + 8, 100 * KIB])
def test_an_exchange_is_one_letter_a_neighbor_elsewhere_or_two(pes, node_pes, operation, nbytes):
    """Nobody but the neighbors hears of it: nothing goes through leaders. Of long blocks the reader says that it is
    there, and where they belong: one more."""
    elsewhere = [sum(neighbor // node_pes != pe // node_pes for neighbor in {(pe - 1) % pes, (pe + 1) % pes})
                 for pe in range(pes)]
    each = 1 if nbytes <= 16 * KIB else 2
    assert messages_of_one(operation, nbytes, pes, node_pes) == [each * count for count in elsewhere]
