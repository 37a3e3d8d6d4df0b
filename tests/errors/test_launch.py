"""Init where a launcher's variables say that there are several processes, and offer no way to find them."""

import os
import pty
import re
import socket
import subprocess

import pytest
from conftest import BUILD, OSHRUN, PROGRAMS, TIMEOUT_S, execute

INIT = PROGRAMS / "init_only"
STEP = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_NTASKS": "4"}
INTERACTIVE_STEP = "4294967290"
SEVERAL = [
    ({**STEP, "SLURM_STEP_NUM_TASKS": "4"}, "srun", "SLURM_STEP_NUM_TASKS=4", "srun --mpi=pmix"),
    ({"PMI_SIZE": "2", "PMI_RANK": "1"}, "a launcher that speaks PMI", "PMI_SIZE=2", "oshrun"),
    ({"PMI_SIZE": "2", "PMI_RANK": "1", "PMI_FD": "77"}, "a launcher that speaks PMI", "PMI_SIZE=2", "oshrun"),
    ({"OMPI_COMM_WORLD_SIZE": "3"}, "Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE=3", "oshrun"),
    ({"PALS_LOCAL_SIZE": "2", "PALS_RANKID": "0"}, "PALS", "PALS_LOCAL_SIZE=2", "mpiexec --pmi=pmi"),
    ({"PALS_RANKID": "1"}, "PALS", "PALS_RANKID=1", "mpiexec --pmi=pmi"),
    ({"MPI_LOCALNRANKS": "2"}, "MPICH's or Intel MPI's mpiexec", "MPI_LOCALNRANKS=2", "oshrun"),
    ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "node1", "MASTER_PORT": "29500"},
     "torchrun, or a launcher like it,", "WORLD_SIZE=2", "HEDDLE_LAUNCH=env"),
    ({"JSM_NAMESPACE_SIZE": "2", "JSM_NAMESPACE_RANK": "0"}, "jsrun", "JSM_NAMESPACE_SIZE=2", "oshrun"),
    ({"ALPS_APP_PE": "3"}, "aprun", "ALPS_APP_PE=3", "oshrun"),
    ({"MV2_COMM_WORLD_SIZE": "2"}, "MVAPICH's mpirun_rsh", "MV2_COMM_WORLD_SIZE=2", "oshrun"),
    ({"FLUX_JOB_SIZE": "256"}, "flux", "FLUX_JOB_SIZE=256", "flux run -o pmi=simple"),
]
ONE = [
    {**STEP, "SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "1"},  # srun -n 1
    {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_NPROCS": "4"},  # the command of salloc, and a batch script
    {**STEP, "SLURM_STEP_ID": INTERACTIVE_STEP, "SLURM_STEP_NUM_TASKS": "1"},  # salloc's shell on a node
    {**STEP, "SLURM_STEP_ID": INTERACTIVE_STEP, "SLURM_STEP_NUM_TASKS": "4"},
    {"PMI_SIZE": "1", "PMI_RANK": "0"}, {"OMPI_COMM_WORLD_SIZE": "1"}, {"FLUX_JOB_SIZE": "1"},
    {"PALS_RANKID": "0", "PALS_LOCAL_SIZE": "1"}, {"MPI_LOCALNRANKS": "1"},
    {"RANK": "1", "WORLD_SIZE": "2"},  # of a program that has nothing to do with this one
    {"PMI_SIZE": "two"}, {"PMI_SIZE": ""}, {"PMI_SIZE": "-2"},
]


@pytest.mark.parametrize("variables,launcher,variable,cure", SEVERAL)
def test_one_of_several_is_not_alone(variables, launcher, variable, cure):
    result = execute([INIT, "init"], **variables)
    result.is_fatal(rf"heddle shmem_init: {launcher} has started this process as one of several \({variable}\), and "
                    rf"does not tell how to find the others: right would be .*{re.escape(cure)}.*, or "
                    r"HEDDLE_LAUNCH=alone for a job of one PE for each process")


@pytest.mark.parametrize("variables", ONE)
def test_one_is_a_job_of_one(variables):
    result = execute([INIT, "inside"], **variables)
    assert (result.status, result.out, result.err) == (0, "1 PEs inside\n", ""), result


@pytest.mark.parametrize("variables", [several[0] for several in SEVERAL])
def test_who_asks_to_be_alone_is(variables):
    result = execute([INIT, "inside"], HEDDLE_LAUNCH="alone", **variables)
    assert (result.status, result.out, result.err) == (0, "1 PEs inside\n", ""), result


@pytest.mark.parametrize("variables", [several[0] for several in SEVERAL])
def test_a_program_that_a_pe_starts_is_a_job_of_one(variables):
    """The variables are around the whole job of oshrun, as in `srun -n 4 oshrun ...`."""
    result = execute([OSHRUN, "-n", 2, INIT, "system"], **variables)
    assert (result.status, result.out) == (0, "1 PEs inside\n" * 2), result


@pytest.mark.parametrize("variables", [several[0] for several in SEVERAL])
def test_processes_of_a_launcher_that_a_pe_starts_are_not_alone(variables, tmp_path):
    """The PE starts its own name with an argument: here a script in the place of the launcher."""
    script = tmp_path / "launcher"
    script.write_text("#!/bin/sh\n" + "".join(f"export {name}={value}\n" for name, value in variables.items()) +
                      f'exec "{INIT}" "$@"\n')
    script.chmod(0o755)
    result = execute([OSHRUN, "-n", 1, "bash", "-c", f'exec -a "{script}" "{INIT}" system'])
    assert result.status == 1 and "as one of several" in result.err, result


@pytest.mark.parametrize("pes", [2, 3])
@pytest.mark.parametrize("lost", [["env", "-i"], ["env", "-u", "HEDDLE_JOB_FD"]])
def test_a_pe_that_has_lost_its_environment_is_not_alone(lost, pes):
    result = execute([OSHRUN, "-n", pes, *lost, INIT, "inside"])
    assert result.status == 1 and "PEs inside" not in result.out, result
    assert f"oshrun has started this process as one of {pes}, and the variables by which" in result.err, result


# Waits in the folder $1 until both PEs are there, and loses the descriptors.
CLOSE = 'touch "$1/$HEDDLE_PE"; until [ -e "$1/0" -a -e "$1/1" ]; do sleep 0.01; done; ' \
        'for fd in 3 4 5 6 7 8 9; do eval "exec $fd>&-"; done; '


def test_a_pe_that_has_lost_its_descriptors_too_is_not_alone(tmp_path):
    """As by sudo: the processes above it tell."""
    result = execute([OSHRUN, "-n", 2, "sh", "-c", f'{CLOSE} env -i "{INIT}" inside', "sh", tmp_path])
    assert result.status == 1 and "PEs inside" not in result.out, result
    assert re.search(r"heddle shmem_init: oshrun \(process \d+\) has started this process as one of several, and the "
                     r"variables by which it tells so were lost on the way here \(sudo, env -i\?\): right would be a "
                     r"way that keeps them, or HEDDLE_LAUNCH=alone", result.err), result


def test_a_process_between_whose_mappings_may_not_be_read_is_named(tmp_path):
    """From a user namespace: it may be a PE, of whose programs each is a job of one."""
    tried = subprocess.run(["unshare", "-Ur", "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"user namespaces: {tried.stderr.strip()}")
    result = execute([OSHRUN, "-n", 2, "sh", "-c", f'{CLOSE} unshare -Ur env -i "{INIT}" inside; exit $?', "sh",
                      tmp_path])
    assert result.status == 1 and "PEs inside" not in result.out, result
    assert re.search(r"were lost on the way here \(sudo, env -i\?\), unless a PE is between the two: the mappings of "
                     r"sh \(process \d+\) may not be read: right would be a way that keeps them", result.err), result


def test_a_parent_that_proc_hides_is_told():
    """As behind `sudo -u` where /proc shows a user's own processes alone."""
    as_nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups"
    parent = "sh -c '\"$@\"; exit $?' sh \"$@\"; exit $?"
    words = ["unshare", "-mpf", "sh", "-c", f"mount -t proc -o hidepid=2 proc /proc && {parent}", "sh",
             *as_nobody.split()]
    tried = subprocess.run([*words, "test", "-x", INIT], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"another user in a namespace: {tried.stderr.strip()}")
    result = execute([*words, "env", "-i", INIT, "inside"])
    line = r"heddle launcher: /proc hides the process that has started this one \(\d+\), and a launcher above it: " \
           r"this is a job of one PE \(HEDDLE_LAUNCH=alone silences this\)\n"
    assert (result.status, result.out) == (0, "1 PEs inside\n") and re.fullmatch(line, result.err), result
    assert execute([*words, "env", "-i", "HEDDLE_LAUNCH=alone", INIT, "inside"]).err == ""


@pytest.mark.parametrize("words", [
    [OSHRUN, "-n", 1, "env", "-i", INIT, "inside"],
    [OSHRUN, "-n", 2, "env", "-i", "HEDDLE_LAUNCH=alone", INIT, "inside"],
    [OSHRUN, "-n", 2, "bash", "-c", f"exec -a 'env -i {INIT} inside; true' {INIT} system"],  # started by a PE
])
def test_who_is_alone_without_an_environment(words):
    result = execute(words)
    assert (result.status, result.out) == (0, "1 PEs inside\n" * words[2]) and "variables" not in result.err, result


def test_who_may_be_one_of_several_says_so():
    """A single child of a launcher's process: others may follow, or are on other hosts."""
    close = 'for fd in 3 4 5 6 7 8 9; do eval "exec $fd>&-"; done; env -i '
    result = execute([OSHRUN, "-n", 1, "sh", "-c", f'{close} "{INIT}" inside'])
    assert (result.status, result.out) == (0, "1 PEs inside\n"), result
    line = r"heddle launcher: oshrun \(process \d+\) has started this process, perhaps as one of several, and the " \
           r"variables .* it is a job of one PE \(HEDDLE_LAUNCH=alone silences this\)\n"
    assert re.fullmatch(line, result.err), result
    assert execute([OSHRUN, "-n", 1, "sh", "-c", f'{close} HEDDLE_LAUNCH=alone "{INIT}" inside']).err == ""


@pytest.mark.parametrize("name", ["PMIX_RANK", "PMIX_NAMESPACE"])
def test_half_of_pmix_is_not_alone(name):
    missing = "PMIX_NAMESPACE" if name == "PMIX_RANK" else "PMIX_RANK"
    for settings in ({name: "1"}, {"HEDDLE_LAUNCH": "pmix", name: "1"}):
        result = execute([INIT, "inside"], **settings)
        assert result.status == 1 and f"heddle shmem_init: {missing} is not set: right would be" in result.err, result
    assert execute([INIT, "inside"], HEDDLE_LAUNCH="pmix").status == 1


def test_a_pmix_server_that_never_answers_is_waited_for_no_longer():
    """It listens, and takes no connection, as where the launcher is stopped."""
    if not (BUILD / "lib/libheddle_pmix.so").exists():
        pytest.skip("a build without PMIx")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        uri = f"server.0;tcp4://127.0.0.1:{listener.getsockname()[1]}"
        result = execute([INIT, "inside"], HEDDLE_LAUNCH_TIMEOUT_S="1", PMIX_NAMESPACE="job", PMIX_RANK="1",
                         PMIX_SERVER_URI41=uri)
    line = r"heddle launcher: the launcher's PMIx server has not answered PE 1 on host .* within 1 s " \
           r"\(HEDDLE_LAUNCH_TIMEOUT_S\): has the launcher stopped\?\n"
    assert result.status == 1 and re.fullmatch(line, result.err), result


SAYS = "oshrun: {} has started this oshrun as one of several, and each starts a job of its own; right for one job " \
       "would be oshrun alone (HEDDLE_LAUNCH=alone silences this)\n"


@pytest.mark.parametrize("variables,launcher,variable,cure", SEVERAL)
def test_oshrun_says_that_it_is_started_several_times(variables, launcher, variable, cure):
    """Once, by the first; an ensemble of jobs is started in this way on purpose."""
    ranks = ["SLURM_PROCID", "PMI_RANK", "PALS_RANKID", "RANK", "ALPS_APP_PE"]
    first = {**variables, **{name: "0" for name in ranks if name in variables}}
    result = execute([OSHRUN, "-n", 1, INIT, "inside"], **first)
    if variable.split("=")[0] not in ranks:
        assert (result.status, result.err) == (0, SAYS.format(f"{launcher} ({variable})")), result
    for settings in ({**first, "HEDDLE_LAUNCH": "alone"}, {**first, "OMPI_COMM_WORLD_RANK": "1"}):
        assert execute([OSHRUN, "-n", 1, INIT, "inside"], **settings).err == ""


@pytest.mark.parametrize("rank,said", [(0, ""), (1, SAYS.format("a launcher that speaks PMIx (PMIX_RANK=1)")), (2, "")])
def test_oshrun_says_so_under_prterun(rank, said):
    """Which tells its processes their ranks, and not how many they are."""
    result = execute([OSHRUN, "-n", 1, INIT, "inside"], PMIX_NAMESPACE="prterun-1@1", PMIX_RANK=str(rank))
    assert (result.status, result.err) == (0, said), result


def test_oshrun_in_oshrun():
    result = execute([OSHRUN, "-n", 2, OSHRUN, "-n", 1, INIT, "inside"])
    assert (result.status, result.out) == (0, "1 PEs inside\n" * 2), result
    assert result.err == SAYS.format("another oshrun (-n 2)"), result
    assert "one of several" not in execute([OSHRUN, "-n", 1, OSHRUN, "-n", 2, INIT, "inside"]).err


def test_setting_is_one_of_its_words():
    result = execute([INIT, "init"], HEDDLE_LAUNCH="alon")
    assert "=alon is malformed: right would be auto|alone|pmix|pmi|pmi2|env; did you mean alone?" in result.err, result


def on_terminal(command, variables):
    """What a command says on a terminal of its own, and its status."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(variables)
        os.execvp(command[0], command)
    said = b""
    while True:
        try:
            more = os.read(terminal, 4096)
        except OSError:  # all have closed it
            break
        if not more:
            break
        said += more
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode()


def test_interactive_shell_of_a_step():
    """`srun -n 4 --pty bash`: what is typed there is a job of one, and a script in its place is not."""
    variables = {**STEP, "SLURM_STEP_NUM_TASKS": "4"}
    status, said = on_terminal(["bash", "--norc", "-i", "-c", f"set -m; '{INIT}' inside; exit $?"], variables)
    assert status == 0 and "1 PEs inside" in said, said
    status, said = on_terminal(["sh", "-c", f"'{INIT}' inside; exit $?"], variables)
    assert status == 1 and "as one of several" in said, said
    status, said = on_terminal([str(INIT), "inside"], variables)
    assert status == 1 and "as one of several" in said, said


@pytest.fixture(scope="module")
def with_mpi(tmp_path_factory):
    """A program that has a library with MPI's name in it, and initializes twice."""
    folder = tmp_path_factory.mktemp("mpi")
    (folder / "mpi.c").write_text("int MPI_Init(int* argc, char*** argv) { return argc == 0 || argv == 0; }\n")
    (folder / "main.c").write_text("#include <shmem.h>\nint MPI_Init(int*, char***);\n"
                                   "int main(int argc, char** argv) {\n    MPI_Init(&argc, &argv);\n"
                                   "    shmem_init();\n    shmem_finalize();\n"
                                   "    shmem_init();\n    shmem_finalize();\n}\n")
    for words in (["-shared", "-fPIC", "mpi.c", "-o", "libmpi_of_test.so"],
                  ["main.c", "-L.", "-lmpi_of_test", f"-Wl,-rpath,{folder}", "-o", "main"]):
        subprocess.run([BUILD / "bin/oshcc", *words], cwd=folder, check=True, timeout=TIMEOUT_S)
    return folder / "main"


def test_mpi_under_oshrun_is_said_to_be_alone(with_mpi):
    result = execute([OSHRUN, "-n", 3, with_mpi])
    line = ("heddle [pe 0] shmem_init: the program has MPI, too, which oshrun does not start: each PE is an MPI job of "
            "one process; right would be mpirun -n 3, for both (HEDDLE_MPI_WARNING=no silences this)\n")
    assert (result.status, result.out, result.err) == (0, "", line), result


@pytest.mark.parametrize("pes,settings", [(1, {}), (3, {"HEDDLE_MPI_WARNING": "no"})])
def test_mpi_is_not_spoken_of(with_mpi, pes, settings):
    result = execute([OSHRUN, "-n", pes, with_mpi], **settings)
    assert (result.status, result.out, result.err) == (0, "", ""), result
    assert execute([with_mpi]).err == ""
