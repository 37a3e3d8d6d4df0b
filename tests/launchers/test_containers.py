"""PEs of one host under launchers of others, each in namespaces of its own: one node, or a line that says why not."""

import containers
import namespace_hosts
import pytest
from conftest import BUILD, LAUNCHERS, OVER_TCP, write_script

STARTED_BY = ["hydra", "openmpi"]


@pytest.fixture(scope="module")
def words_of(here, tmp_path_factory):
    filter_program = containers.compile_filter(tmp_path_factory.mktemp("filter"))
    folders = [here.program.parent, filter_program.parent, BUILD, tmp_path_factory.getbasetemp().parent]

    def words(way):
        if way in containers.WAYS and (lacking := containers.missing(way)):
            pytest.skip(f"{way} needs {lacking}")
        return containers.command(containers.WAYS.get(way, containers.APART), filter_program, folders)
    return words


@pytest.mark.parametrize("pes", [2, 3, 4])
@pytest.mark.parametrize("way", containers.WAYS)
@pytest.mark.parametrize("launcher", STARTED_BY)
def test_memory_is_shared(here, words_of, launcher, way, pes):
    result = here.run(*LAUNCHERS[launcher], "-n", pes, *words_of(way), here.program)
    result.is_well(pes)
    assert "heddle" not in result.err, result


def says_that_they_are_apart(result, count, *words):
    lines = [line for line in result.err.splitlines() if "heddle" in line]
    assert len(lines) == 1 and "PE 0 and PE" in lines[0] and "are on one host" in lines[0], result
    assert all(word in lines[0] for word in words), result
    assert (f"({count} PEs are apart from others of their host)" in lines[0]) == (count > 1), result


@pytest.mark.parametrize("pes", [2, 4])
@pytest.mark.parametrize("launcher", STARTED_BY)
def test_memory_that_cannot_be_shared_is_told_once(here, words_of, launcher, pes):
    result = here.run(*LAUNCHERS[launcher], "-n", pes, *words_of("apart"), here.program, **OVER_TCP)
    result.is_well(pes, near=1)
    says_that_they_are_apart(result, pes - 1, "PE 0 cannot ", "cannot be opened (Permission denied)")


@pytest.mark.parametrize("pes", [2, 3])
def test_network_namespaces(here, tmp_path, pes):
    """As pods on one host: each PE has a network of its own, and process numbers."""
    hosts = namespace_hosts.Hosts(tmp_path, pes, one_kernel=True)
    try:
        cases = "".join(f"{pe}) pid={host.holder.pid} ;;\n" for pe, host in enumerate(hosts.all))
        script = write_script(tmp_path / "pod", f'case $PMI_RANK in\n{cases}esac\nexec nsenter --target=$pid --net '
                              f'unshare -Urpf --mount-proc {here.program}')
        result = here.run(*LAUNCHERS["hydra"], "-n", pes, script, **OVER_TCP)
    finally:
        hosts.close()
    result.is_well(pes, near=1)
    says_that_they_are_apart(result, pes - 1, "they do not share a network namespace, and /proc/1/fd/",
                             "docker run --network=host")


@pytest.mark.parametrize("launcher", STARTED_BY)
def test_a_pe_that_fails_ends_the_job(here, words_of, launcher):
    """And the others, which are the first processes of their namespaces."""
    result = here.run(*LAUNCHERS[launcher], "-n", 3, *words_of("process namespace"), here.program, "exit")
    assert result.status != 0 and len(result.processes) == 3, result
