"""Every mini-app between two hosts: the same verdicts as on one."""

import pytest
from conftest import app_verdicts
from shmem_mt import sources
from shmem_mt.catalogue import catalogue
from shmem_mt.targets import fabrics, hosts
from shmem_mt.targets.libraries import Heddle

APPS = [b for b in catalogue.BENCHMARKS if sources.is_app(b.program)]


@pytest.fixture(scope="module")
def two_hosts():
    if hosts.missing():
        pytest.skip(f"hosts need {hosts.missing()}")
    with hosts.made(2) as made:
        yield made


@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_every_form_passes(implementation, two_hosts, app):
    if not isinstance(implementation, Heddle):
        pytest.skip("others' launchers are told nothing about these hosts, or hang behind their programs")
    every = ("--ops", ",".join(app.ops), "--size", "tiny", "--sizes", "512")
    found = app_verdicts(implementation, app.program, 3, 2, *every, fabric=fabrics.NAMESPACES, hosts=two_hosts)
    assert found and set(found) <= set(app.ops)
    assert {verdict["verdict"] for verdict in found.values()} == {"pass"}
