"""How a job starts: what the PEs get, and what is said when it cannot start."""

import contextlib
import os
import resource
import shutil
import subprocess
import tempfile

import pytest
from conftest import build
from processes import alive


def refused(result, status, *parts):
    """One line, on stderr, that holds all the parts."""
    assert result.status == status, result
    assert result.out == "" and len(result.err.splitlines()) == 1 and result.err.startswith("oshrun: "), result
    for part in parts:
        assert part in result.err, result


@pytest.mark.parametrize("number", ["0", "-1", "4097", "99999999999999999999", "x", "4x", "", " 4", "2.5", "0x4"])
def test_bad_number_of_pes(oshrun, number):
    refused(oshrun.run("-n", number, "echo", "started"), 2, f"-n {number}: ", "whole number from 1 to 4096")


@pytest.mark.parametrize("arguments,parts", [
    ([], ["no number of PEs", "oshrun -n N program"]),
    (["echo", "hi"], ["no number of PEs"]),
    (["-n", "2"], ["no program"]),
    (["-n", "2", ""], ["no program"]),
    (["-n"], ["-n needs a value"]),
    (["-np"], ["-n p: ", "whole number"]),
    (["-np", "x", "true"], ["-n x: ", "whole number"]),
    (["-n", "2", "--timeout"], ["--timeout needs a value"]),
    (["-n", "2", "--frobnicate", "true"], ["unknown option --frobnicate", "--help"]),
    (["-n", "2", "-y", "true"], ["unknown option -y", "--help"]),
    (["-n", "2", "--hots", "a", "true"], ["unknown option --hots; did you mean --hosts?"]),
    (["-n", "2", "--outptu-dir=x", "true"], ["unknown option --outptu-dir=x; did you mean --output-dir?"]),
    (["-n", "2", "--bind-to", "core", "true"], ["unknown option --bind-to; did you mean --bind?"]),
    (["-n", "2", "-hosts", "a", "true"], ["unknown option -hosts; did you mean --hosts?"]),
    (["4", "true"], ["no number of PEs given; did you mean -n 4?"]),
    (["-n", "2", "--bind", "cores", "true"], ["must be core", "did you mean core?"]),
    (["-n", "2", "--stdin", "al", "true"], ["--stdin al: must be all, none or the number of a PE; did you mean all?"]),
    (["-n", "2", "--stdin", "2", "true"], ["--stdin 2: there is no such PE", "from 0 to 1"]),
    (["-n", "2", "--wdir", "absent", "true"], ["--wdir absent: No such file"]),
    (["-n", "2", "--prefix", "absent", "true"], ["--prefix absent: No such file"]),
    (["-n", "2", "-x", "HEDDLE_NOT_SET_HERE", "true"], ["--env HEDDLE_NOT_SET_HERE: must be NAME=VALUE: "]),
    (["-n", "4", "--ppn", "2", "true"], ["-n 4: --ppn 2 takes more than this host"]),
    (["-n", "2", "true", ":", "true"], ["no number of PEs given for each program"]),
    (["-n", "2", "true", ":"], ["no number of PEs given for each program"]),
    (["-n", "2", "true", ":", "-n", "2"], ["no program given before or behind a ':'"]),
    (["-n", "2", "true", ":", "-n", "2", "--timeout", "3", "true"], ["--timeout behind a ':'", "whole job"]),
    (["-n", "4000", "true", ":", "-n", "97", "true"], ["-n 4097: ", "from 1 to 4096"]),
    (["-n", "2", "--tag-output=3", "true"], ["--tag-output=3: this option takes no value"]),
    (["-n", "2", "--timeout", "0", "true"], ["--timeout 0: ", "above 0"]),
    (["-n", "2", "--timeout", "-3", "true"], ["--timeout -3: ", "above 0"]),
    (["-n", "2", "--timeout", "5s", "true"], ["--timeout 5s: ", "number of seconds"]),
    (["-n", "2", "--timeout", "nan", "true"], ["--timeout nan: "]),
    (["-n", "2", "--timeout", "inf", "true"], ["--timeout inf: "]),
    (["-n", "2", "--grace", "-1", "true"], ["--grace -1: ", "from 0"]),
    (["-n", "2", "--grace", "soon", "true"], ["--grace soon: ", "number of seconds"]),
    (["-n", "2", "--bind", "socket", "true"], ["--bind socket: must be core, numa or none"]),
    (["-n", "2", "-c", "0", "true"], ["--cores-per-pe 0: the number of cores must be a whole number from 1"]),
    (["-n", "2", "--env", "=VALUE", "true"], ["--env =VALUE: must be NAME=VALUE"]),
])
def test_bad_input(oshrun, arguments, parts):
    refused(oshrun.run(*arguments), 2, *parts)


def test_help_and_version(oshrun):
    result = oshrun.run("--help")
    assert result.status == 0 and result.err == ""
    for option in ("-n N", "-np N", "--np N", "--timeout", "--grace", "--bind", "--tag-output", "--env", "--version",
                   "1 MiB", "-x", "--wdir", "--prefix", "--stdin", "--output-dir", "--host,", "-H", "--ppn", "-N N",
                   "-c, --cores-per-pe N", "--bind core|numa|none", "--report-bindings"):
        assert option in result.out
    assert all(len(line) <= 120 for line in result.out.splitlines())
    result = oshrun.run("--version")
    assert result.status == 0 and result.out.startswith("oshrun (Heddle ") and result.err == ""


@pytest.mark.parametrize("words", [["-np", "3"], ["--np", "3"], ["--np=3"], ["-N", "3"], ["--ppn", "3"],
                                   ["-n", "3", "-N", "3"]])
def test_np_is_n(oshrun, words):
    result = oshrun.run(*words, "echo", "-np", "5")
    assert result.status == 0 and result.out.splitlines() == ["-np 5"] * 3, result


def test_several_programs_have_consecutive_pes(oshrun, shell, tmp_path):
    (tmp_path / "b").mkdir()
    shell("one", 'echo "one $HEDDLE_PE $A $* $(pwd)"\n')
    shell("b/two", 'echo "two $HEDDLE_PE $A $* $(pwd)"\n')
    result = oshrun.run("-n", 2, "-x", "A=x", "./one", "word", ":", "-np", 1, "-x", "A=y", "--wdir", "b", "./two", ":",
                        "-n", 1, "./one")
    assert result.status == 0, result
    assert sorted(result.out.splitlines()) == [f"one 0 x word {tmp_path}", f"one 1 x word {tmp_path}",
                                               f"one 3   {tmp_path}", f"two 2 y  {tmp_path}/b"]


def test_a_failure_names_the_program_of_its_part(oshrun, shell):
    result = oshrun.run("-n", 1, "sleep", 600, ":", "-n", 1, shell("fails", "exit 7\n"))
    assert result.status == 7 and "PE 1 (./fails, pid " in result.err, result
    refused(oshrun.run("-n", 1, "true", ":", "-n", 1, "./nothing"), 127, "cannot run './nothing'")


def test_job_of_several_programs(oshrun, tmp_path):
    """They are one job: each sees all PEs."""
    source = ("#include <shmem.h>\n#include <stdio.h>\nint main(void) { shmem_init();"
              "printf(NAME \" %d of %d\\n\", shmem_my_pe(), shmem_n_pes()); shmem_finalize(); return 0; }\n")
    (tmp_path / "hello.c").write_text(source)
    for name in "ab":
        subprocess.run([build() / "bin" / "oshcc", f'-DNAME="{name}"', "hello.c", "-o", name], cwd=tmp_path, check=True)
    result = oshrun.run("-n", 2, "./a", ":", "-n", 1, "./b")
    assert result.status == 0 and sorted(result.out.splitlines()) == ["a 0 of 3", "a 1 of 3", "b 2 of 3"], result


def test_working_directory(oshrun, shell, tmp_path):
    (tmp_path / "in").mkdir()
    shell("in/here", "pwd\n")
    assert oshrun.run("-n", 1, "--wdir", "in", "./here").out == f"{tmp_path}/in\n"
    assert oshrun.run("-n", 1, "--wdir", "in", "pwd").out == f"{tmp_path}/in\n"
    refused(oshrun.run("-n", 1, "--wdir", "in", "./not-here"), 127, "cannot run './not-here': No such file")


def test_prefix(oshrun, tmp_path, shell):
    (tmp_path / "bin").mkdir()
    shell("bin/tell", 'echo "$PATH"; echo "$LD_LIBRARY_PATH"\n')
    result = oshrun.run("-n", 1, "--prefix", ".", "-x", "LD_LIBRARY_PATH=/own", "tell")
    assert result.out.splitlines() == [f"{tmp_path}/bin:{os.environ['PATH']}", f"{tmp_path}/lib:/own"], result


def test_a_variable_by_its_name(oshrun, monkeypatch):
    monkeypatch.setenv("A", "b c")
    assert oshrun.run("-n", 1, "-x", "A", "sh", "-c", 'echo "$A"').out == "b c\n"


def test_verbose(oshrun):
    result = oshrun.run("-n", 2, "-v", "true")
    assert result.status == 0 and result.messages[0].startswith("oshrun: 2 PEs on this host, which offers "), result


def test_options_of_the_program_are_its_own(oshrun):
    assert oshrun.run("-n", 1, "echo", "-n", "3", "--help").out == "3 --help"
    assert oshrun.run("-n", 1, "--", "echo", "--timeout").out == "--timeout\n"
    assert oshrun.run("-n1", "--timeout=9", "printf", "%s|", "a b", "", "c").out == "a b||c|"


def test_more_pes_than_files(oshrun):
    result = oshrun.run("-n", 100, "true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)))
    refused(result, 2, "-n 100: ", "at most 38 PEs", "ulimit -Hn")
    for pes, status in ((38, 0), (39, 2)):  # the number that it names is right
        assert oshrun.run("-n", pes, "true", preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (100, 100))).status == status


ANOTHER_USER = 47_911  # has no processes


def as_another_user(processes):
    def change():
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
        os.setgid(ANOTHER_USER)
        os.setuid(ANOTHER_USER)
    return change


@pytest.fixture
def open_oshrun(oshrun):
    """oshrun where another user may run it."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to be another user whose processes are counted")
    folder = tempfile.mkdtemp(prefix="heddle-launch-", dir="/tmp")
    os.chmod(folder, 0o755)
    oshrun.path = shutil.copy(build() / "bin" / "oshrun", folder)
    yield oshrun
    shutil.rmtree(folder)


def test_more_pes_than_processes(open_oshrun):
    result = open_oshrun.run("-n", 20, "/bin/true", preexec_fn=as_another_user(10))
    refused(result, 2, "-n 20: ", "at most 9 PEs", "ulimit -u")


def test_fork_that_fails_in_the_middle_leaves_nothing(open_oshrun):
    sleepers = [subprocess.Popen(["/bin/sleep", "600"], preexec_fn=as_another_user(100))  # noqa: PLW1509
                for _ in range(6)]
    try:
        result = open_oshrun.run("-n", 10, "/bin/sleep", "600", preexec_fn=as_another_user(12))
        refused(result, 1, "cannot start PE 5 of 10: Resource temporarily unavailable", "ulimit -u")
        assert count_of_user(ANOTHER_USER) == 6
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


def count_of_user(uid):
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError):
            count += os.stat(f"/proc/{pid}").st_uid == uid and alive(pid)
    return count


def test_missing_program(oshrun):
    refused(oshrun.run("-n", 4, "./nothing"), 127, "cannot run './nothing': No such file or directory")
    refused(oshrun.run("-n", 4, "heddle-no-such-program"), 127, "'heddle-no-such-program': not found in PATH")
    refused(oshrun.run("-n", 4, "/etc/passwd/x"), 127, "Not a directory")


def test_program_here_but_not_in_path(oshrun, shell):
    shell("here", "true\n")
    refused(oshrun.run("-n", 2, "here"), 127, "not found in PATH; did you mean ./here?")


def test_program_that_cannot_run(oshrun, script):
    refused(oshrun.run("-n", 4, script("plain", "x", mode=0o644)), 126, "no permission to execute it")
    result = oshrun.run("-n", 4, script("text", "not a program\n"))
    refused(result, 126, "neither a program for this machine nor a script")
    refused(oshrun.run("-n", 4, script("lost", "#!/no/such/interpreter\n")), 127, "the interpreter that it names")
    refused(oshrun.run("-n", 4, "/tmp"), 126, "it is a directory")


def test_program_is_searched_in_the_path_of_the_pes(oshrun, shell, tmp_path):
    (tmp_path / "sub").mkdir()
    shell("sub/only-here", "echo found\n")
    assert oshrun.run("-n", 2, "--env", f"PATH={tmp_path}/sub:/bin", "only-here").out == "found\n" * 2


def test_environment(oshrun, python, monkeypatch):
    monkeypatch.setenv("INHERITED", "yes")
    monkeypatch.setenv("HEDDLE_PE", "77")
    program = python("show", "import os\nprint(*(os.environ.get(name) for name in "
                     "('HEDDLE_PE', 'INHERITED', 'A', 'B', 'EMPTY', 'NONE')), sep='|')\n")
    result = oshrun.run("-n", 3, "--env", "A=1", "--env", "B=x=y z", "--env", "A=2", "--env", "EMPTY=", program)
    assert sorted(result.out.splitlines()) == [f"{pe}|yes|2|x=y z||None" for pe in range(3)]


JOB_PAGE = """
import mmap, os, struct
fd = int(os.environ['HEDDLE_JOB_FD'])
page = mmap.mmap(fd, os.fstat(fd).st_size, mmap.MAP_SHARED, mmap.PROT_READ)
magic, pes, cores = struct.unpack_from('<QII', page)
cpus = [cpu for cpu in range(1024) if page[16 + cpu // 8] >> cpu % 8 & 1]
print(hex(magic), pes, cores, cpus, len(page) % 4096, any(page[168:]), any(page[160:168]))
"""


def test_job_page(oshrun, python):
    cpus = sorted(os.sched_getaffinity(0))
    shown = f"0x39656c6464656800 3 {len(cpus)} {cpus} 0 False True\n"
    assert oshrun.run("-n", 3, python("page", JOB_PAGE)).out == shown * 3


def test_bind(oshrun, python):
    program = python("where", "import os\nprint(os.environ['HEDDLE_PE'], sorted(os.sched_getaffinity(0)))\n")
    cores = sorted(os.sched_getaffinity(0))
    for arguments in ([], ["--bind", "none"]):
        assert sorted(oshrun.run("-n", 2, *arguments, program).out.splitlines()) == [f"0 {cores}", f"1 {cores}"]
    pes = len(cores) + 1
    assert sorted(oshrun.run("-n", pes, "--bind", "core", program).out.splitlines()) == \
        sorted(f"{pe} {[cores[pe % len(cores)]]}" for pe in range(pes))
    last = cores[-1]  # a launcher that may use one core binds to that one
    assert oshrun.run("-n", 2, "--bind", "core", program, preexec_fn=lambda: os.sched_setaffinity(0, {last})).out.count(
        str([last])) == 2


SHOWS_CORES = ("import os\nprint(os.environ['HEDDLE_PE'], *sorted(os.sched_getaffinity(0)), "
               "os.environ.get('OMP_NUM_THREADS'), os.environ.get('OMP_WAIT_POLICY'))\n")


@pytest.fixture
def shows_cores(python, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    return python("shows", SHOWS_CORES)


def words(cores):
    return " ".join(map(str, cores))


def test_threads_are_an_equal_share_of_the_usable_cores(oshrun, shows_cores):
    cores = sorted(os.sched_getaffinity(0))
    result = oshrun.run("-n", 1, shows_cores)
    assert (result.out, result.err) == (f"0 {words(cores)} {len(cores)} None\n", ""), result
    result = oshrun.run("-n", len(cores), shows_cores)
    assert sorted(result.out.splitlines()) == [f"{pe} {words(cores)} 1 None" for pe in range(len(cores))], result
    last = cores[-1]
    result = oshrun.run("-n", 1, shows_cores, preexec_fn=lambda: os.sched_setaffinity(0, {last}))
    assert (result.out, result.err) == (f"0 {last} 1 None\n", ""), result


def test_waiting_is_passive_with_more_pes_than_cores(oshrun, shows_cores):
    pes = len(os.sched_getaffinity(0)) + 1
    result = oshrun.run("-n", pes, shows_cores)
    assert all(line.endswith(" 1 passive") for line in result.out.splitlines()) and result.err == "", result


def test_more_threads_than_cores_are_told_once(oshrun, shows_cores):
    cores = len(os.sched_getaffinity(0))
    for words in (["-x", f"OMP_NUM_THREADS={cores + 1}"], ["-c", cores + 1]):
        result = oshrun.run("-n", 2, *words, shows_cores)
        assert all(line.endswith(f" {cores + 1} passive") for line in result.out.splitlines()), result
        assert len(result.messages) == 1 and f"with up to {cores + 1} threads each" in result.err, result
    result = oshrun.run("-n", 1, "-x", f"OMP_NUM_THREADS={cores}", shows_cores)
    assert result.out.endswith(f" {cores} None\n") and result.err == "", result


def test_cores_per_pe(oshrun, shows_cores):
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("needs two cores")
    result = oshrun.run("-n", 2, "-c", 1, shows_cores)
    got = [set(line.split()[1:-2]) for line in result.out.splitlines()]
    assert len(got) == 2 and all(len(each) == 1 for each in got) and got[0] != got[1], result
    assert len(oshrun.run("-n", 1, "-c", 2, shows_cores).out.split()) == 1 + 2 + 2
    result = oshrun.run("-n", 1, "-c", 1, "--bind", "none", shows_cores)
    assert result.out == f"0 {words(cores)} 1 None\n", result
    last = cores[-1]
    result = oshrun.run("-n", 1, "-c", 1, shows_cores, preexec_fn=lambda: os.sched_setaffinity(0, {last}))
    assert result.out == f"0 {last} 1 None\n", result


def test_reported_bindings_are_those_of_the_pes(oshrun, shows_cores):
    host = os.uname().nodename
    for words in (["--bind", "core"], ["-c", 1], ["--bind", "numa"]):
        result = oshrun.run("-n", 3, *words, "--report-bindings", shows_cores)
        for line in result.out.splitlines():
            pe, *cores, _, _ = line.split()
            ranges = [line.split("cores ")[1] for line in result.messages if f"PE {pe} on {host}: " in line]
            assert len(ranges) == 1, result
            told = [part.split("-") for part in ranges[0].split(",")]
            assert [str(cpu) for part in told for cpu in range(int(part[0]), int(part[-1]) + 1)] == cores, result
    result = oshrun.run("-n", 2, "--report-bindings", "true")
    assert len(result.messages) == 2 and all(line.endswith(", not bound") for line in result.messages), result


def test_openmp_starts_the_threads_of_its_share(oshrun, tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    (tmp_path / "omp.c").write_text("#include <omp.h>\n#include <stdio.h>\nint main(void) {\n#pragma omp parallel\n"
                                    "#pragma omp single\n    printf(\"%d\\n\", omp_get_num_threads());\n}\n")
    subprocess.run(["cc", "-fopenmp", "-o", "omp", "omp.c"], cwd=tmp_path, check=True)
    cores = len(os.sched_getaffinity(0))
    assert oshrun.run("-n", 2 * cores, "./omp").out == "1\n" * (2 * cores)
    assert oshrun.run("-n", 1, "./omp").out == f"{cores}\n"


def test_signals_of_the_pes_are_as_the_launcher_was_started(oshrun):
    """Blocked and ignored is what would be without the launcher: not what it blocks and ignores for itself."""
    masks = ["sh", "-c", "exec grep -E '^Sig(Blk|Ign)' /proc/self/status"]
    without = subprocess.run(masks, capture_output=True, text=True, check=True, restore_signals=True).stdout
    result = oshrun.run("-n", 1, *masks, restore_signals=True)
    assert result.out == without, result


def test_pes_stay_in_the_process_group(oshrun):
    process = oshrun.start("-n", 2, "sh", "-c", "exec cut -d ' ' -f 5 /proc/self/stat", process_group=0)
    assert oshrun.finish(process).out.split() == [str(process.pid)] * 2


def test_program_that_knows_nothing_of_heddle(oshrun):
    result = oshrun.run("-n", 4, "hostname")
    assert result.status == 0 and len(set(result.out.splitlines())) == 1 and len(result.out.splitlines()) == 4
    assert result.err == ""


def test_64_pes(oshrun, tmp_path):
    (tmp_path / "hello.c").write_text('#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n')
    subprocess.run(["cc", "-o", "hello", "hello.c"], cwd=tmp_path, check=True)
    result = oshrun.run("-n", 64, "./hello")
    assert result.status == 0 and result.out == "hello\n" * 64


def test_512_pes(oshrun):
    result = oshrun.run("-n", 512, "--tag-output", "true")
    assert (result.status, result.out, result.err) == (0, "", "")
