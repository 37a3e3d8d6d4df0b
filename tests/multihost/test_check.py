"""heddle-info --check over hosts: it finds nothing wrong where nothing is, and names the pair that fails."""

import re
import shutil

import pytest
from conftest import BUILD, LIMIT_S, finish, start


@pytest.fixture
def check(hosts):
    def run(*options, limit_s=120, **settings):
        variables = {"OMPI_MCA_plm_rsh_agent": hosts.agent, "HEDDLE_NET_TRANSPORTS": "tcp", **settings}
        return finish(start(hosts.all[0].within("env", *(f"{name}={value}" for name, value in variables.items()),
                                                BUILD / "bin/heddle-info", "--limit", limit_s, "--check", *options)),
                      LIMIT_S)
    return run


def named(hosts, *places):
    return ",".join(host.name + place for host, place in zip(hosts.all, places))


@pytest.mark.parametrize("places,pes", [(["", "", ""], 3), ([":2", ":1"], 3)])
def test_all_is_well(check, hosts, places, pes):
    result = check("--hosts", named(hosts, *places))
    # Of Open MPI's launcher: it and the ssh that it starts set the same group, and either may be late.
    errors = [line for line in result.err.splitlines() if not re.search(r"plm:rsh: Warning: setpgid\(", line)]
    assert result.status == 0 and not errors, result
    assert result.lines[0] == f"check: {pes} PEs on {len(places)} nodes", result
    assert f"  host {hosts.all[1].name}: PE {pes - 1 if len(places) == 2 else 1}" in result.lines, result


def test_a_host_with_another_library(check, hosts, tmp_path):
    library = (BUILD / "lib/libheddle.so").resolve()
    other = tmp_path / "libheddle.so"
    shutil.copy(library, other)
    with other.open("ab") as file:
        file.write(b"another build")
    hosts.all[1].do("mount", "--bind", other, library)
    try:
        result = check("--hosts", named(hosts, "", "", ""))
    finally:
        hosts.all[1].do("umount", library)
    assert result.status == 1, result
    assert f"FAILED: PE 1 (host {hosts.all[1].name}) has another libheddle.so" in result.err, result
    assert "FAILED: PE 2" not in result.err, result


def test_a_host_with_another_setting(check, hosts, tmp_path):
    """As from a file that a shell reads there."""
    agent = tmp_path / "agent"
    agent.write_text(f'#!/bin/sh\nhost=$1\nshift\n[ "$host" = {hosts.all[2].name} ] && set -- '
                     f'"export UCX_TCP_PREFER_DEFAULT=n; $*"\nexec {hosts.agent} "$host" "$@"\n')
    agent.chmod(0o755)
    result = check("--hosts", named(hosts, "", "", ""), OMPI_MCA_plm_rsh_agent=agent)
    assert result.status == 1, result
    assert "FAILED: the settings differ: UCX_TCP_PREFER_DEFAULT=n on PE 2 " in result.err, result


def test_two_hosts_that_do_not_reach_each_other(check, hosts):
    """Each of them reaches the first one."""
    one, other = hosts.all[1], hosts.all[2]
    one.do("ip", "route", "add", "blackhole", "10.77.0.3/32")
    other.do("ip", "route", "add", "blackhole", "10.77.0.2/32")
    try:
        result = check("--hosts", named(hosts, "", "", ""), limit_s=60)
    finally:
        one.do("ip", "route", "del", "blackhole", "10.77.0.3/32")
        other.do("ip", "route", "del", "blackhole", "10.77.0.2/32")
    assert result.status == 1 and "the check has failed" in result.err, result
    pairs = [f"[pe {pe}] network: PE {3 - pe} does not answer any more: no path" for pe in (1, 2)]
    assert any(pair in result.err for pair in pairs) and "PE 0 does not" not in result.err, result
