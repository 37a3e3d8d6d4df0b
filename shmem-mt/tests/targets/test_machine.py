"""Facts about the machine, and what they warn of."""

import json

from shmem_mt.targets import machine


def test_warnings_name_what_makes_figures_doubtful():
    assert not machine.warnings({"cores": 2, "load_at_start": 0.1, "governor": "performance", "steal_share": 0.0})
    told = machine.warnings(
        {"cores": 2, "load_at_start": 1.4, "governor": "powersave", "steal_share": 0.1, "cpu_quota": 1.5}
    )
    for words, text in zip(("a load of 1.4 on 2 cores", "powersave", "10.0 %", "1.5 cores"), told, strict=True):
        assert words in text


def test_facts_are_json():
    facts = {**machine.facts(), **machine.since(machine.counters())}
    assert json.loads(json.dumps(facts)) == facts
    for name in ("governor", "huge_pages", "numa_nodes", "cpu_quota", "mitigations", "steal_share"):
        assert name in facts
