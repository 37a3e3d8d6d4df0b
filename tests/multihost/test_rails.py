"""Two rails between hosts with two interfaces each: both carry data, and what becomes of a job that loses one."""

import itertools
import os
import time

import namespace_hosts as made_of
import pytest
from conftest import BUILD, Oshrun, finish, start
from processes import alive

INTERFACES = ["eth0", "eth1"]
RAILS = {"HEDDLE_NET_RAILS": "2", "HEDDLE_NET_DEVICES": ",".join(INTERFACES)}
LIMIT_S = 120  # far less than a job that went on


@pytest.fixture(scope="module")
def two_ways(tmp_path_factory, programs):
    all_hosts = made_of.Hosts(tmp_path_factory.mktemp("rails"), 2, interfaces=len(INTERFACES))
    yield Oshrun(programs, all_hosts)
    all_hosts.close()


@pytest.mark.parametrize("shape,order", [pytest.param("1+1", "reorder", marks=pytest.mark.every), ("2+1", "rail")])
def test_both_rails_carry_data(two_ways, shape, order):
    sender = two_ways.hosts.all[0]
    before = [sender.sent_bytes(name) for name in INTERFACES]
    result = two_ways.run(shape, "./rails", 1, settings={**RAILS, "HEDDLE_ORDER": order})
    assert result.status == 0, result
    sent = [sender.sent_bytes(name) - count for name, count in zip(INTERFACES, before)]
    assert min(sent) > max(sent) / 8 > 1 << 20, (sent, result)


@pytest.mark.parametrize("settings,words", [
    ({"HEDDLE_NET_RAILS": "3", "HEDDLE_NET_DEVICES": "lo,lo"}, ["HEDDLE_NET_RAILS=3", "lo lo", "no more rails"]),
    ({"HEDDLE_NET_RAILS": "8"}, ["HEDDLE_NET_RAILS=8", "no more rails"]),
    ({"HEDDLE_NET_RAILS": "2", "HEDDLE_NET_DEVICES": "lo,eth77"}, ["eth77"]),
    ({"HEDDLE_NET_RAILS": "2", "HEDDLE_NET_DEVICES": "all"}, ["HEDDLE_NET_DEVICES=all"]),
    ({"HEDDLE_NET_RAILS": "0"}, ["HEDDLE_NET_RAILS=0", "1 to 8"]),
    ({"HEDDLE_NET_RAILS": "9"}, ["HEDDLE_NET_RAILS=9", "1 to 8"]),
    ({"HEDDLE_RAIL_LOSS": "perhaps"}, ["HEDDLE_RAIL_LOSS=perhaps", "end|continue"]),
    ({"HEDDLE_ORDER": "maybe"}, ["HEDDLE_ORDER=maybe", "rail|reorder"]),
    ({"HEDDLE_NET_RAILS": "2", "HEDDLE_NET_DEVICES": "lo,lo", "HEDDLE_RAIL_LOSS": "continue",
      "HEDDLE_NET_PROTOCOL": "rma"}, ["HEDDLE_RAIL_LOSS=continue", "right would be am"]),
])
def test_rails_that_cannot_be_are_named(programs, settings, words):
    """On one machine, each PE as a node of its own."""
    environment = {**os.environ, "HEDDLE_TEST_PES_PER_NODE": "1", "HEDDLE_NET_TRANSPORTS": "tcp", **settings}
    result = finish(start([BUILD / "bin" / "oshrun", "-n", 2, programs / "rails"], environment))
    assert result.status != 0, result
    assert all(word in result.err for word in words), result


def without(two_ways, interface, shape, settings, seconds):
    """A job that loses the interface of the last host in the middle."""
    lost = two_ways.hosts.all[-1]
    process = two_ways.start(shape, "./rails", seconds, settings={**RAILS, **settings})
    try:
        pids = [int(line.split()[1]) for line in
                itertools.islice(process.stdout, sum(map(int, shape.split("+"))))]
        time.sleep(0.7)
        begin = time.monotonic()
        lost.do("ip", "link", "set", interface, "down")
        if seconds > 100:
            while any(map(alive, pids)) and time.monotonic() < begin + LIMIT_S:
                time.sleep(0.02)
            assert not any(map(alive, pids))
        return finish(process, limit=LIMIT_S)
    finally:
        lost.do("ip", "link", "set", interface, "up")
        for host in two_ways.hosts.all:
            host.kill_all()


@pytest.mark.parametrize("order", ["reorder", pytest.param("rail", marks=pytest.mark.every)])
def test_a_lost_rail_ends_the_job_and_is_named(two_ways, order):
    result = without(two_ways, "eth1", "1+1", {"HEDDLE_ORDER": order}, 1000)
    assert result.status != 0, result
    assert "rail 1 (eth1) to PE" in result.err, result


@pytest.mark.parametrize("shape,order", [("2+1", "reorder"), pytest.param("2+2", "rail", marks=pytest.mark.every)])
def test_a_job_continues_without_a_rail_and_nothing_is_lost(two_ways, shape, order):
    settings = {"HEDDLE_ORDER": order, "HEDDLE_RAIL_LOSS": "continue"}
    result = without(two_ways, "eth1", shape, settings, 6)
    assert result.status == 0, result
    assert "rail 1 (eth1) to PE" in result.err and "going on without it" in result.err, result
