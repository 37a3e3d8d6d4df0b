"""oshrun --hosts and --hostfile, and the hosts of a job scheduler: what is refused, and what the launcher that starts
the PEs is told. The launchers are scripts here that print their arguments; tests/multihost has the real one."""

import os
import signal
import subprocess
import time

import pytest
from conftest import alive, wait_until

PRINTER = """#!/bin/sh
case $1,${0##*/} in
    --version,mpirun) echo "mpirun (Open MPI) 4.1.4"; exit ;;
    --version,mpiexec*) echo "HYDRA build details:"; exit ;;
    --version,* | version,flux) exit ;;
    --mpi=list,srun) echo "MPI plugin types are..."; echo "${MPI_TYPES-none pmi2 pmix}"; exit ;;
    resource,flux) echo "16 n[1-2]"; exit ;;
esac
for word in "$@"; do printf '%s\\n' "$word"; done
echo "A=$A"
echo "HEDDLE_CHAOS=$HEDDLE_CHAOS" >chaos
exit 6
"""


@pytest.fixture
def path_with(tmp_path):
    """An environment whose PATH has just these programs, which print their arguments and end with status 6."""
    def make(*names, **variables):
        folder = tmp_path / "launchers"
        folder.mkdir(exist_ok=True)
        for name in names:
            (folder / name).write_text(PRINTER)
            (folder / name).chmod(0o755)
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("HEDDLE_", "SHMEM_", "SMA_", "UCX_", "SLURM_", "FLUX_", "OMP_"))}
        return {**kept, "PATH": str(folder), **variables}
    return make


def words_behind(result, name):
    lines = result.out.splitlines()
    return [lines[at + 1] for at, line in enumerate(lines) if line == name]


@pytest.mark.parametrize("there,taken", [(["prterun", "mpirun", "srun"], "prterun"), (["mpirun", "srun"], "mpirun"),
                                         (["srun", "mpiexec"], "srun"), (["mpiexec"], "mpiexec"),
                                         (["mpiexec.hydra", "mpiexec"], "mpiexec.hydra")])
def test_the_first_launcher_in_path_is_taken_and_named(oshrun, path_with, there, taken):
    result = oshrun.run("--hosts", "a", "-n", "1", "./program", env=path_with(*there))
    assert result.status == 6 and not result.messages, result
    result = oshrun.run("-v", "--hosts", "a", "-n", "1", "./program", env=path_with(*there))
    assert result.status == 6, result
    assert len(result.messages) == 1 and result.messages[0].endswith(f"/{taken} starts the PEs"), result


def test_no_launcher(oshrun, path_with):
    result = oshrun.run("--hosts", "a", "-n", "1", "./program", env=path_with())
    assert result.status == 1 and "none that works is in PATH; install one: apt-get install openmpi-bin" in result.err
    assert len(result.messages) == 1, result


def test_a_launcher_that_does_not_work_is_left_out(oshrun, path_with, tmp_path):
    """Here: one that fails, one that is of no known kind, and a srun without a protocol."""
    environment = path_with("prterun", "mpirun", "srun", "mpiexec", "flux", MPI_TYPES="none openmpi")
    (tmp_path / "launchers/prterun").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "launchers/mpirun").write_text("#!/bin/sh\necho another\n")
    result = oshrun.run("-v", "--hosts", "a", "-n", "1", "./program", env=environment)
    assert result.status == 6 and result.messages[0].endswith("/mpiexec starts the PEs"), result
    (tmp_path / "launchers/mpiexec").unlink()
    result = oshrun.run("-v", "--hosts", "a", "-n", "1", "./program", env=environment)
    assert result.status == 1 and result.out == "" and len(result.messages) == 1, result
    for words in ("/prterun: --version fails", "/mpirun: it is neither", "/srun: it has neither pmix nor pmi2",
                  "/flux: there is no instance"):
        assert words in result.err, result


def test_what_hydra_is_told(oshrun, path_with):
    result = oshrun.run("--hosts", "a:3,b:2", "-n", "3", "-c", "2", "--tag-output", "./one", ":", "-n", "1", "./two",
                        env=path_with("mpiexec.hydra"))
    threads = ["env", "OMP_NUM_THREADS=2"]
    assert result.out.splitlines()[:-1] == ["-hosts", "a:3,b:1", "-bind-to", "core:2", "-prepend-rank", "-n", "3",
                                            *threads, "./one", ":", "-n", "1", *threads, "./two"], result
    result = oshrun.run("--hosts", "a", "-n", "1", "--stdin", "all", "./one", env=path_with("mpiexec.hydra"))
    assert result.status == 2 and "gives input to PE 0" in result.err, result


@pytest.mark.parametrize("name,option", [("mpirun", "-x"), ("prterun", "-x"), ("srun", None), ("mpiexec.hydra", None),
                                         ("flux", None)])
def test_the_seed_of_chaos_goes_on(oshrun, path_with, name, option):
    result = oshrun.run("--hosts", "a:2", "-n", 2, "--chaos=17", "./program", env=path_with(name, FLUX_URI="local"))
    assert result.status == 6 and (oshrun.folder / "chaos").read_text() == "HEDDLE_CHAOS=17\n", result
    assert result.err == ("oshrun: chaos seed 17 (HEDDLE_CHAOS=17); this job again: "
                          f"{oshrun.path} --chaos=17 --hosts a:2 -n 2 ./program\n"), result
    assert not option or "HEDDLE_CHAOS" in words_behind(result, option), result
    assert "--chaos" not in result.out, result


def slurm(path_with, **variables):
    told = {f"SLURM_{name}": value for name, value in variables.items()}
    return path_with("mpirun", "srun", SLURM_JOB_ID="7", **told)


def test_all_of_an_allocation_by_slurm_is_used(oshrun, path_with):
    environment = slurm(path_with, JOB_NODELIST="n[1-3,7]", TASKS_PER_NODE="2(x3),1", CPUS_PER_TASK="4")
    result = oshrun.run("-v", "./program", "word", env=environment)
    lines = result.out.splitlines()
    assert result.messages[0].endswith("/srun starts the PEs"), result
    assert {"--nodelist=n1,n1,n2,n2,n3,n3,n7", "--cpus-per-task=4", "--cpu-bind=cores"} <= set(lines), result
    assert words_behind(result, "-n") == ["7"] and lines[-3:-1] == ["./program", "word"], result
    result = oshrun.run("-n", "3", "./program", env=environment)
    assert "--nodelist=n1,n1,n2" in result.out.splitlines() and "--cpus-per-task" not in result.out, result
    result = oshrun.run("-n", "8", "./program", env=environment)
    assert result.status == 2 and "the hosts of the allocation by Slurm have room for 7" in result.err, result
    result = oshrun.run("--ppn", "1", "./program", env=environment)
    assert "--nodelist=n1,n2,n3,n7" in result.out.splitlines(), result
    result = oshrun.run("--hosts", "a:2", "-n", "2", "./program", env=environment)
    assert words_behind(result, "--host") == ["a:2"], result


def test_srun_without_pmix_speaks_pmi2(oshrun, path_with):
    environment = slurm(path_with, JOB_NODELIST="a", TASKS_PER_NODE="2", CPUS_PER_TASK="1")
    environment["MPI_TYPES"] = "none pmi2"
    result = oshrun.run("./program", env=environment)
    assert "--mpi=pmi2" in result.out.splitlines(), result


@pytest.mark.parametrize("how", ["name", "variable"])
def test_an_allocation_of_this_host_needs_no_launcher(oshrun, path_with, how):
    name = os.uname().nodename.split(".")[0] if how == "name" else "alias7"
    environment = slurm(path_with, JOB_NODELIST=name, TASKS_PER_NODE="3")
    environment |= {"PATH": os.environ["PATH"]} | ({"SLURMD_NODENAME": name} if how == "variable" else {})
    result = oshrun.run("--timeout", "500", "sh", "-c", "echo $HEDDLE_PE", env=environment)
    assert result.status == 0 and sorted(result.out.split()) == ["0", "1", "2"], result
    result = oshrun.run("-n", "5", "true", env=environment)
    assert result.status == 0 and result.err == "", result


def test_a_malformed_allocation_is_named(oshrun, path_with):
    result = oshrun.run("./program", env=slurm(path_with, JOB_NODELIST="n[1-2", TASKS_PER_NODE="1"))
    assert result.status == 2 and "SLURM_JOB_NODELIST=n[1-2 is no list of hosts; name the hosts" in result.err, result


def test_all_of_an_instance_of_flux_is_used(oshrun, path_with):
    environment = path_with("flux", "mpirun", FLUX_URI="local:///x")
    result = oshrun.run("-v", "-c", "4", "./program", env=environment)
    lines = result.out.splitlines()
    assert result.messages[0].endswith("/flux starts the PEs"), result
    assert lines[0] == "run" and {"--requires=host:n1,n2", "--cores-per-task=4"} <= set(lines), result
    assert words_behind(result, "-n") == ["4"], result


@pytest.mark.parametrize("reads,told", [([], ["--input=0"]), (["--stdin", 1], ["--input=1"]), (["--stdin", "all"], []),
                                        (["--stdin", "none"], ["--input=/dev/null"])])
def test_input_reaches_flux(oshrun, path_with, reads, told):
    """Which gives it to all where it is told nothing."""
    result = oshrun.run(*reads, "./program", env=path_with("flux", FLUX_URI="local:///x"))
    assert [line for line in result.out.splitlines() if line.startswith("--input")] == told, result


@pytest.mark.parametrize("launcher,tag", [("mpirun", "--tag-output"), ("prterun", "tag")])
def test_what_mpirun_is_told(oshrun, path_with, launcher, tag):
    env = path_with(launcher, SHMEM_SYMMETRIC_SIZE="1m", HEDDLE_CHECK="1", OTHER="x")
    result = oshrun.run("--hosts", "a:3,b:2,c", "-n", "4", "--env", "A=b;c d", "--bind", "core", "--tag-output",
                        "./program", "--its", "own words", env=env)
    lines = result.out.splitlines()
    assert words_behind(result, "-n") == ["4"], result
    assert words_behind(result, "--host") == ["a:3,b:1"], result
    assert words_behind(result, "--bind-to") == ["core"], result
    assert {"SHMEM_SYMMETRIC_SIZE", "HEDDLE_CHECK", "A"} <= set(words_behind(result, "-x")), result
    assert "OTHER" not in lines and tag in lines, result
    assert lines[-4:] == ["./program", "--its", "own words", "A=b;c d"], result
    assert ("--allow-run-as-root" in lines) == (os.geteuid() == 0), result


def test_what_srun_is_told(oshrun, path_with):
    result = oshrun.run("--hosts", "a:3,b:2,c", "-n", "4", "--env", "A=b", "--tag-output", "./program", "word",
                        env=path_with("srun"))
    lines = result.out.splitlines()
    told = {"--mpi=pmix", "--nodelist=a,a,a,b", "--distribution=arbitrary", "--cpu-bind=none", "--label",
            "--kill-on-bad-exit", "--quit-on-interrupt"}
    assert told <= set(lines), result
    assert lines[-3:] == ["./program", "word", "A=b"], result


def test_programs_files_and_input_reach_mpirun(oshrun, path_with, tmp_path):
    result = oshrun.run("-H", "a:3,b:2,c", "--stdin", "all", "--wdir", ".", "-n", "4", "./one", ":", "-n", "1", "-x",
                        "A=b c", "./two", "word", env=path_with("mpirun"))
    lines = result.out.splitlines()
    assert words_behind(result, "-n") == ["4", "1"] and words_behind(result, "--host") == ["a:3,b:2"], result
    assert words_behind(result, "--stdin") == ["all"] and words_behind(result, "--wdir") == [str(tmp_path)], result
    assert lines[-9:] == ["./one", ":", "-n", "1", "env", "A=b c", "./two", "word", "A="], result
    result = oshrun.run("--host", "a", "-n", "1", "--output-dir", "out", "./one", "word", env=path_with("mpirun"))
    assert words_behind(result, "/bin/sh") == ["-c"] and result.out.splitlines()[-4:-1] == ["out", "./one", "word"]


def test_pes_per_host(oshrun, path_with):
    result = oshrun.run("--hosts", "a,b:3,c", "--ppn", "2", "./program", env=path_with("mpirun"))
    assert words_behind(result, "-n") == ["7"] and words_behind(result, "--host") == ["a:2,b:3,c:2"], result
    result = oshrun.run("--hosts", "a,b", "-N", "2", "-n", "3", "./program", env=path_with("mpirun"))
    assert words_behind(result, "-n") == ["3"] and words_behind(result, "--host") == ["a:2,b:1"], result


@pytest.mark.parametrize("launcher,expected", [
    ("mpirun", ["--bind-to core", "--map-by slot:PE=2", "-x OMP_NUM_THREADS", "--report-bindings"]),
    ("prterun", ["--bind-to core", "--map-by slot:PE=2", "-x OMP_NUM_THREADS", "--display bind"]),
    ("srun", ["--cpu-bind=verbose,cores", "--cpus-per-task=2"]),
])
def test_cores_on_several_hosts(oshrun, path_with, launcher, expected):
    result = oshrun.run("--hosts", "a:2", "-n", "2", "-c", "2", "--report-bindings", "./program",
                        env=path_with(launcher))
    text = " ".join(result.out.split())
    assert all(words in text for words in expected) and result.err == "", result
    result = oshrun.run("--hosts", "a:2", "-n", "2", "--bind", "numa", "./program", env=path_with(launcher))
    assert ("--cpu-bind=ldoms" if launcher == "srun" else "--bind-to numa") in " ".join(result.out.split()), result


def test_srun_runs_one_program(oshrun, path_with):
    result = oshrun.run("--hosts", "a:2", "-n", "1", "p", ":", "-n", "1", "q", env=path_with("srun"))
    assert result.status == 2 and "need prterun or mpirun" in result.err, result


def test_nothing_is_bound_unless_asked(oshrun, path_with):
    result = oshrun.run("--hosts", "a", "-n", "1", "./program", env=path_with("mpirun"))
    assert words_behind(result, "--bind-to") == ["none"], result


def test_a_host_file(oshrun, path_with, tmp_path):
    (tmp_path / "list").write_text("# the cluster\n\n  a   # one\nb:2\r\nc slots=3\n")
    result = oshrun.run("--hostfile", "list", "-n", "6", "./program", env=path_with("mpirun"))
    assert words_behind(result, "--host") == ["a:1,b:2,c:3"], result


@pytest.mark.parametrize("text,message", [
    ("a:0", "line 1: 'a:0' must be a host"),
    ("a\nb slots=x", "line 2: 'b slots=x' must be a host"),
    ("a b", "line 1: 'a b' must be a host"),
    ("# nothing\n", "it names no host"),
])
def test_a_host_file_that_is_wrong(oshrun, path_with, tmp_path, text, message):
    (tmp_path / "list").write_text(text)
    result = oshrun.run("--hostfile", "list", "-n", "1", "./program", env=path_with("mpirun"))
    assert result.status == 2 and result.out == "" and message in result.err, result


@pytest.mark.parametrize("arguments,message", [
    (["--hosts", "a:0", "-n", "1", "p"], "--hosts a:0: 'a:0' must be a host"),
    (["--hosts", "a,,b", "-n", "1", "p"], "'' must be a host"),
    (["--hosts", "", "-n", "1", "p"], "'' must be a host"),
    (["--hosts", "a:2x", "-n", "1", "p"], "'a:2x' must be a host"),
    (["--hosts", "-x", "-n", "1", "p"], "'-x' must be a host"),
    (["--hosts", "a:2,b", "-n", "4", "p"], "-n 4: the hosts named have room for 3"),
    (["--hosts", "a", "--hosts", "b", "-n", "1", "p"], "the hosts are given twice"),
    (["--hosts", "a", "p"], "no number of PEs given"),
    (["--hosts", "a", "-n", "1"], "no program given"),
    (["--hostfile", "absent", "-n", "1", "p"], "--hostfile absent: No such file"),
])
def test_what_is_refused(oshrun, path_with, arguments, message):
    result = oshrun.run(*arguments, env=path_with("mpirun"))
    assert result.status == 2 and result.out == "", result
    assert len(result.messages) == 1 and message in result.messages[0], result


def launcher_that(path_with, tmp_path, text):
    """An environment whose mpirun does this."""
    environment = path_with("mpirun")
    (tmp_path / "launchers/mpirun").write_text(
        f'#!/bin/sh\nPATH={os.environ["PATH"]}\n[ "$1" = --version ] && echo "Open MPI" && exit\n{text}\n')
    return environment


def test_the_timeout_of_several_hosts(oshrun, path_with, tmp_path):
    """The launcher gets SIGTERM, and has time for its hosts; the status is that of one host."""
    environment = launcher_that(path_with, tmp_path, "trap 'echo ends; exit 9' TERM\nwhile :; do sleep 0.1; done")
    result = oshrun.run("--hosts", "a", "--timeout", "1.5", "-n", "1", "./program", env=environment)
    assert result.status == 124 and result.out == "ends\n" and result.seconds >= 1.5, result
    assert result.messages == ["oshrun: the job has not ended within 1.5 s (--timeout); ending it. Its PEs:"], result
    result = oshrun.run("--hosts", "a", "--timeout", "0.5", "--chaos=9", "-n", "1", "./program", env=environment)
    assert result.status == 124 and result.messages[0].endswith("ending it (HEDDLE_CHAOS=9). Its PEs:"), result


def test_the_deadline_reaches_the_pes(oshrun, path_with, tmp_path):
    """Its seconds, and the time at which oshrun's clock shows their end; also through a launcher that passes on the
    variables alone that it is told."""
    begin = time.time()
    environment = launcher_that(path_with, tmp_path, 'echo "$HEDDLE_DEADLINE"\necho "$@"')
    result = oshrun.run("--hosts", "a", "--timeout", "500", "-n", "1", "./program", env=environment)
    timeout_ns, end_ns = map(int, result.out.splitlines()[0].split(":"))
    assert timeout_ns == 500 * 10**9 and begin + 500 <= end_ns / 1e9 <= time.time() + 500, result
    assert "-x HEDDLE_DEADLINE" in result.out and "-x HEDDLE_HANDED_OVER " in result.out, result
    result = oshrun.run("--hosts", "a", "-n", "1", "./program", env=environment)
    assert result.out.splitlines()[0] == "", result


def test_the_grace_of_several_hosts(oshrun, path_with, tmp_path):
    """Open MPI's own period, in whole seconds; where there is none, a line says what is not kept, or it is refused."""
    environment = launcher_that(path_with, tmp_path, 'echo "$OMPI_MCA_odls_base_sigkill_timeout" '
                                                     '"$PRTE_MCA_odls_base_sigkill_timeout"')
    grace = ["--hosts", "a", "--grace", "2.5", "-n", "1", "./program"]
    result = oshrun.run(*grace, env=environment)
    assert (result.status, result.out, result.err) == (0, "3 3\n", ""), result
    (tmp_path / "launchers/mpirun").unlink()
    result = oshrun.run(*grace, env=path_with("mpiexec.hydra"))
    assert result.status == 6, result
    assert result.messages[0].endswith("/mpiexec.hydra ends the PEs by SIGKILL when one of them fails; --grace is for "
                                       "other ends"), result
    (tmp_path / "launchers/mpiexec.hydra").unlink()
    for name in ["srun", "flux"]:
        result = oshrun.run(*grace, env=path_with(name, FLUX_URI="local:///x"))
        assert result.status == 2 and result.out == "" and len(result.messages) == 1, result
        assert "--grace on several hosts needs prterun, mpirun or hydra's mpiexec; " in result.err, result
        assert f"/{name} has none" in result.err, result
        (tmp_path / "launchers" / name).unlink()


@pytest.mark.parametrize("end", ["timeout", "signal"])
def test_a_launcher_without_a_period_has_that_of_grace(oshrun, path_with, tmp_path, end):
    """One that does not end by SIGTERM ends by SIGKILL, as a PE does on one host."""
    text = "trap '' TERM\necho $$ >ready\nwhile :; do sleep 0.1; done"
    environment = path_with("mpiexec.hydra")
    (tmp_path / "launchers/mpiexec.hydra").write_text(
        f'#!/bin/sh\nPATH={os.environ["PATH"]}\n[ "$1" = --version ] && echo "HYDRA" && exit\n{text}\n')
    limit = ["--timeout", "0.5"] if end == "timeout" else []
    process = oshrun.start("--hosts", "a", "--grace", "0.3", *limit, "-n", "1", "./program", env=environment,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert wait_until(lambda: (tmp_path / "ready").exists() and (tmp_path / "ready").read_text() != "")
    if end == "signal":
        process.send_signal(signal.SIGTERM)
    assert oshrun.finish(process).status == (124 if end == "timeout" else 128 + signal.SIGTERM)
    assert not alive(int((tmp_path / "ready").read_text()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_launcher_whose_pes_ignore_a_signal_gets_sigterm(oshrun, path_with, tmp_path, number):
    """Which ends its PEs in any case; SIGKILL would leave them (srun)."""
    environment = path_with("mpiexec.hydra")
    (tmp_path / "launchers/mpiexec.hydra").write_text(
        f'#!/bin/sh\nPATH={os.environ["PATH"]}\n[ "$1" = --version ] && echo "HYDRA" && exit\n'
        "trap '' INT HUP QUIT\ntrap 'echo ends its PEs; exit' TERM\necho $$ >ready\nwhile :; do sleep 0.1; done\n")
    process = oshrun.start("--hosts", "a", "--grace", "0.3", "-n", "1", "./program", env=environment)
    assert wait_until(lambda: (tmp_path / "ready").exists() and (tmp_path / "ready").read_text() != "")
    process.send_signal(number)
    result = oshrun.finish(process)
    assert (result.status, result.out) == (128 + number, "ends its PEs\n"), result


def test_a_launcher_that_does_not_end_is_killed(oshrun, path_with, tmp_path):
    environment = launcher_that(path_with, tmp_path, "trap '' TERM\nsleep 1000 &\necho $! >pid.1\nwait; wait")
    result = oshrun.run("--hosts", "a", "--timeout", "0.5", "-n", "1", "./program", env=environment,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert result.status == 124, result
    left = int((tmp_path / "pid.1").read_text())
    os.kill(left, signal.SIGKILL)
    assert wait_until(lambda: not alive(left))


def test_a_job_on_several_hosts_that_ends_in_time(oshrun, path_with, tmp_path):
    """Its launcher's status, also of one that is killed, and its input."""
    environment = launcher_that(path_with, tmp_path, "cat; exit 7")
    result = oshrun.run("--hosts", "a", "--timeout", "500", "-n", "1", "./program", env=environment, text="a line\n")
    assert (result.status, result.out, result.err) == (7, "a line\n", ""), result
    environment = launcher_that(path_with, tmp_path, "kill -9 $$")
    assert oshrun.run("--hosts", "a", "-n", "1", "./program", env=environment).status == 128 + signal.SIGKILL


def test_signals_reach_the_launcher(oshrun, path_with, tmp_path):
    text = "trap 'echo one' USR1\ntrap 'echo end; exit 3' TERM\necho $$ >ready\nwhile :; do sleep 0.1; done"
    process = oshrun.start("--hosts", "a", "-n", "1", "./program", env=launcher_that(path_with, tmp_path, text))
    assert wait_until((tmp_path / "ready").exists)
    process.send_signal(signal.SIGUSR1)
    assert process.stdout.readline() == b"one\n"
    process.send_signal(signal.SIGTERM)
    result = oshrun.finish(process)
    assert (result.status, result.out) == (128 + signal.SIGTERM, "end\n"), result


def test_the_death_of_oshrun_ends_the_launcher(oshrun, path_with, tmp_path):
    text = "trap 'echo gone >end; exit' TERM\necho $$ >ready\nwhile :; do sleep 0.1; done"
    process = oshrun.start("--hosts", "a", "-n", "1", "./program", env=launcher_that(path_with, tmp_path, text))
    assert wait_until((tmp_path / "ready").exists)
    process.kill()
    assert wait_until((tmp_path / "end").exists)
