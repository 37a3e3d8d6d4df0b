"""Launch templates: what they are refused for, what they become, and which library one starts."""

import pytest
from shmem_mt import __version__
from shmem_mt.errors import UserError
from shmem_mt.targets import fabrics, libraries, openshmem, places
from shmem_mt.targets.launch_template import PLACEHOLDERS, LaunchTemplate

TWO = places.named("--hosts", ["a:4", "b:4"])
SRUN = "srun -N{nodes} -n{pes} -c{threads} {program}"


def words(text, pes=3, threads=2, where=TWO):
    return LaunchTemplate(text).words(pes, threads, where, ["prog", "--ops", "a b"])


def test_a_template_becomes_a_command():
    assert words(SRUN) == ["srun", "-N2", "-n3", "-c2", "prog", "--ops", "a b"]
    every = "l {pes} {threads} {nodes} {per_node} {hosts} {host_names} {program} end"
    told = ["3", "2", "2", "2", "a:2,b:1", "a,b"]
    assert words(every) == ["l", *told, "prog", "--ops", "a b", "end"]
    assert set(PLACEHOLDERS) == LaunchTemplate(every).used
    assert words("l -n {pes} -x '{{}}' sh -c 'exec {program}'")[3:] == ["-x", "{}", "sh", "-c", "exec prog --ops 'a b'"]


def test_hosts_without_pes_are_not_counted():
    assert words(SRUN, pes=1)[1] == "-N1"
    assert words("l {nodes} {per_node} {pes} {program}", 8, 1, places.unnamed(3))[1:4] == ["3", "3", "8"]


@pytest.mark.parametrize(
    "text,said",
    [
        ("srun -n{pe} {program}", "{pe} is no placeholder; there are {pes}, {threads}, {nodes}, {per_node}, {hosts}"),
        ("srun -n{pes} ./a.out", "{program} is missing, the program with its arguments"),
        ("srun {program}", "{pes} is missing, all PEs"),
        ("", "{pes} is missing"),
        ("srun -n{pes {program}", "'-n{pes'"),
        ("srun -n{} {program}", "{} in '-n{}' is no placeholder"),
        ("srun -n{pes:3} {program}", "{pes} in '-n{pes:3}' is no placeholder"),
        ("srun -n{pes!r} {program}", "is no placeholder"),
        ("srun -n{pes.real} {program}", "is no placeholder"),
        ("srun '-n{pes} {program}", "No closing quotation"),
    ],
)
def test_what_is_no_template_is_said(shmem_mt, text, said):
    with pytest.raises(UserError):
        LaunchTemplate(text)
    status, _, stderr = shmem_mt("run", "--launch", text)
    assert status == 2 and said.partition("'-n{pes'")[0] in stderr and stderr.startswith("shmem-mt: --launch ")
    assert stderr.count("\n") == 1


def test_what_hosts_must_tell_is_said():
    of_nodes, of_names = LaunchTemplate(SRUN), LaunchTemplate("mpirun -H {hosts} -n {pes} {program}")
    assert not of_nodes.lacks(TWO) and not of_names.lacks(TWO) and not of_nodes.lacks(places.unnamed(2))
    assert of_nodes.lacks(None) == "{nodes} needs --nodes, --hosts or --hostfile"
    assert of_names.lacks(None) == of_names.lacks(places.unnamed(2)) == "{hosts} needs --hosts or --hostfile"
    assert not LaunchTemplate("l -n {pes} {program}").lacks(None)


def wrapper(tmp_path, vendor):
    """A compiler wrapper whose headers say that of their vendor."""
    path = tmp_path / "oshcc-x"
    path.write_text(f'#!/bin/sh\ncase "$*" in *-dM*) echo \'#define SHMEM_VENDOR_STRING "{vendor}"\' ;; esac\n')
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    "vendor,library",
    [
        (f"Heddle {__version__}", libraries.Heddle),
        ("http://www.open-mpi.org/", libraries.OpenMpi),
        ("Vendor X", libraries.Implementation),
        ("", libraries.Implementation),
    ],
)
def test_headers_name_the_library_that_a_template_starts(tmp_path, vendor, library):
    template = LaunchTemplate("sh -n{pes} {program}")
    (found,) = openshmem.resolve([wrapper(tmp_path, vendor)], [template], [])
    assert type(found) is library and found.describe()["oshrun"] == template.text
    assert found.label == (library.name or "oshcc-x")
    found.binaries["latency"] = "latency"
    assert found.launch_command("latency", 2, 1, ["-x"]) == ["sh", "-n2", "latency", "-x"]


def test_settings_reach_pes_in_their_environment():
    def command(library, fabric, **told):
        made = library("A", "oshcc", ["l"], "1", "cc", template=LaunchTemplate("l {pes} {program}"))
        made.binaries["p"] = "p"
        return made.launch_command("p", 2, 1, [], fabric, **told)

    told = command(libraries.Heddle, fabrics.HOSTS, coalescing="off", setting="channels:2", hosts=TWO)
    assert told == ["l", "2", "env", "HEDDLE_NET_COALESCE=0", "HEDDLE_NET_CHANNELS=2", "p"]
    told = command(libraries.OpenMpi, fabrics.TCP)
    assert {"env", "UCX_TLS=tcp,self", "OMPI_MCA_pml=ucx"} <= set(told)
    assert command(libraries.OpenMpi, fabrics.HOSTS, hosts=TWO) == ["l", "2", "p"]
    assert command(libraries.Implementation, fabrics.HOSTS, hosts=TWO) == ["l", "2", "p"]


def test_templates_and_launchers_go_in_pairs_with_wrappers():
    template = LaunchTemplate("sh -n{pes} {program}")
    for oshccs, launchers in ((["true"], ["true", template]), (["true", "true"], [template]), ([], [template] * 2)):
        with pytest.raises(UserError, match="they go in pairs"):
            openshmem.resolve(oshccs, launchers, None)
    with pytest.raises(UserError, match="--launch no-such-launcher: no such program"):
        openshmem.resolve(["true"], [LaunchTemplate("no-such-launcher {pes} {program}")], None)


def test_who_can_be_measured_between_hosts():
    def made(library, template=None):
        return library("A", "oshcc", ["l"], "1", "cc", template=template)

    template = LaunchTemplate("l {pes} {program}")
    for library in (*libraries.KNOWN, libraries.Implementation):
        other = library is libraries.Implementation
        assert bool(made(library).unable(fabrics.HOSTS)) == other
        assert not made(library, template).unable(fabrics.HOSTS)
        assert "namespaces" in made(library, template).unable(fabrics.NAMESPACES)
    assert "give --launch" in made(libraries.Implementation).unable(fabrics.HOSTS)
