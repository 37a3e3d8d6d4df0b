"""HEDDLE_NET_DEVICES on hosts with two interfaces."""

import namespace_hosts as made_of
import pytest
from conftest import Oshrun

MEGABYTES = 20
INTERFACES = ["eth0", "eth1"]


@pytest.fixture(scope="module")
def two_ways(tmp_path_factory, programs):
    all_hosts = made_of.Hosts(tmp_path_factory.mktemp("two-ways"), 2, interfaces=len(INTERFACES))
    yield Oshrun(programs, all_hosts)
    all_hosts.close()


@pytest.mark.parametrize("named,other", [INTERFACES, INTERFACES[::-1]])
def test_the_interface_that_is_named_is_used_and_no_other(two_ways, named, other):
    """The launcher says a few words on either."""
    sender = two_ways.hosts.all[0]
    before = {name: sender.sent_bytes(name) for name in INTERFACES}
    result = two_ways.run("1+1", "./much", MEGABYTES, settings={"HEDDLE_NET_DEVICES": named})
    assert result.status == 0, result
    sent = {name: sender.sent_bytes(name) - before[name] for name in INTERFACES}
    assert sent[named] > MEGABYTES << 20 and sent[other] < 1 << 20, sent


def test_an_interface_that_is_not_there_is_named(two_ways):
    result = two_ways.run("1+1", "./much", settings={"HEDDLE_NET_DEVICES": "eth7"})
    assert result.status != 0, result
    assert "heddle [pe " in result.err and "HEDDLE_NET_DEVICES" in result.err and "eth7" in result.err, result
