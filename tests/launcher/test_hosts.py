"""oshrun --hosts and --hostfile: what is refused, and what the launcher that starts the PEs is told. The launchers are
scripts here that print their arguments; tests/multihost has the real one."""

import os

import pytest

PRINTER = """#!/bin/sh
for word in "$@"; do printf '%s\\n' "$word"; done
echo "A=$A"
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
                if not name.startswith(("HEDDLE_", "SHMEM_", "SMA_", "UCX_"))}
        return {**kept, "PATH": str(folder), **variables}
    return make


def words_behind(result, name):
    lines = result.out.splitlines()
    return [lines[at + 1] for at, line in enumerate(lines) if line == name]


@pytest.mark.parametrize("there,taken", [(["prterun", "mpirun", "srun"], "prterun"), (["mpirun", "srun"], "mpirun"),
                                         (["srun"], "srun")])
def test_the_first_launcher_in_path_is_taken_and_named(oshrun, path_with, there, taken):
    result = oshrun.run("--hosts", "a", "-n", "1", "./program", env=path_with(*there))
    assert result.status == 6 and not result.messages, result
    result = oshrun.run("-v", "--hosts", "a", "-n", "1", "./program", env=path_with(*there))
    assert result.status == 6, result
    assert len(result.messages) == 1 and result.messages[0].endswith(f"/{taken} starts the PEs"), result


def test_no_launcher(oshrun, path_with):
    result = oshrun.run("--hosts", "a", "-n", "1", "./program", env=path_with())
    assert result.status == 1 and "none is in PATH" in result.err, result


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
    told = {"--mpi=pmix", "--nodelist=a*3,b*1", "--distribution=arbitrary", "--cpu-bind=none", "--label"}
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
    environment = path_with(launcher)
    environment.pop("OMP_NUM_THREADS", None)
    result = oshrun.run("--hosts", "a:2", "-n", "2", "-c", "2", "--report-bindings", "./program", env=environment)
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
    (["--hosts", "a", "--timeout", "2.5", "-n", "1", "p"], "timeout 2.5 oshrun --hosts"),
    (["--hosts", "a", "--grace", "3", "-n", "1", "p"], "--grace is for jobs on this machine"),
    (["--hosts", "a", "p"], "no number of PEs given"),
    (["--hosts", "a", "-n", "1"], "no program given"),
    (["--hostfile", "absent", "-n", "1", "p"], "--hostfile absent: No such file"),
])
def test_what_is_refused(oshrun, path_with, arguments, message):
    result = oshrun.run(*arguments, env=path_with("mpirun"))
    assert result.status == 2 and result.out == "", result
    assert len(result.messages) == 1 and message in result.messages[0], result
