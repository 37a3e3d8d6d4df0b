"""Facts of hosts: how they are compared, and told."""

import json
import os
import subprocess

from shmem_mt import sources
from shmem_mt.targets import host_facts


def host(name, **facts):
    return {"name": name, "cpu": "X", "cores": 8, "kernel": "6.1", "memory_bytes": 2**34, "governor": None, **facts}


def test_what_differs_is_named_with_the_hosts_that_have_it():
    assert host_facts.differing([host("a"), host("b")]) == host_facts.differing([]) == {}
    mixed = [host("a"), host("b", kernel="6.2", cores=4), host("c", kernel=None)]
    assert host_facts.differing(mixed) == {
        "cores": {"8": ["a", "c"], "4": ["b"]},
        "kernel": {"6.1": ["a"], "6.2": ["b"], "unknown": ["c"]},
    }
    told = host_facts.warnings([*(host(f"n{n}") for n in range(9)), host("z", memory_bytes=2**33)])
    assert told == ["hosts differ: memory 16.0 GiB on n0, n1 and 7 more; 8.0 GiB on z"]


def test_hosts_of_one_kind_differ_a_little_in_memory():
    assert not host_facts.differing([host("a"), host("b", memory_bytes=2**34 + 2**26)])
    assert host_facts.differing([host("a"), host("b", memory_bytes=2**34 + 2**28)]).keys() == {"memory_bytes"}
    assert host_facts.differing([host("a", memory_bytes=None), host("b")]).keys() == {"memory_bytes"}


def test_the_program_tells_of_this_host(tmp_path):
    program = str(tmp_path / "host_facts")
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", sources.root()]
    subprocess.run(["c++", *flags, sources.probe("host_facts"), "-o", program], check=True)
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    facts = json.loads(said)
    assert said.count("\n") == 1 and facts["event"] == "host"
    assert (facts["name"], facts["kernel"]) == (os.uname().nodename, os.uname().release)
    assert facts["cores"] == os.cpu_count() and facts["boot"] and facts["cpu"]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert facts["memory_bytes"] == pages
