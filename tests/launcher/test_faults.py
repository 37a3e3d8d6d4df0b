"""OpenSHMEM programs that fail: the job ends soon, says who and why, and leaves neither processes nor memory."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest
from conftest import PROMPT_S, build, wait_until
from processes import alive

SOURCE = r"""
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int me;
static long never;

/* Shows the test this process, as KIND.PE. */
static void show(const char *kind) {
    char name[64], new_name[64];
    snprintf(name, sizeof name, "%s.%d", kind, me);
    snprintf(new_name, sizeof new_name, "new.%s.%d", kind, me);
    FILE *file = fopen(new_name, "w");
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
    rename(new_name, name);
}

/* And the inode of the job's memory. */
static void up(void) {
    char name[64];
    struct stat memory;
    const char *fd = getenv("HEDDLE_JOB_FD");
    me = atoi(getenv("HEDDLE_PE"));
    if (fd && fstat(atoi(fd), &memory) == 0) {
        snprintf(name, sizeof name, "inode.%d", me);
        FILE *file = fopen(name, "w");
        fprintf(file, "%lu\n", (unsigned long)memory.st_ino);
        fclose(file);
        rename(name, "inode");
    }
    show("pid");
}

/* A child, a child of it, and a program that it executes: all live until they are ended. */
static void make_family(void) {
    if (fork() == 0) {
        if (fork() == 0) {
            show("pid.grandchild");
            sleep(600);
        }
        if (fork() == 0) {
            show("program");
            execlp("sleep", "sleep", "600", (char *)0);
        }
        show("pid.child");
        sleep(600);
    }
    sleep(600);
}

static void spin(void) {
    for (volatile long i = 0;; ++i) {
    }
}

static void act(const char *what) {
    if (!strcmp(what, "barrier")) shmem_barrier_all();
    else if (!strcmp(what, "finalize")) { shmem_finalize(); exit(0); }
    else if (!strcmp(what, "linger")) { shmem_finalize(); sleep(600); }
    else if (!strcmp(what, "until")) shmem_long_wait_until(&never, SHMEM_CMP_NE, 0);
    else if (!strcmp(what, "spin")) spin();
    else if (!strcmp(what, "sleep")) sleep(600);
    else if (!strcmp(what, "family")) make_family();
    else if (!strcmp(what, "exit")) exit(0);
    else if (!strcmp(what, "_exit")) _exit(0);
    else if (!strcmp(what, "exit3")) exit(3);
    else if (!strcmp(what, "abort")) abort();
    else if (!strcmp(what, "segv")) *(volatile int *)(size_t)8 = 1;
    else if (!strcmp(what, "kill")) raise(SIGKILL);
    else if (!strcmp(what, "fatal")) shmem_long_p((long *)(size_t)64, 1, 0);
    else if (!strncmp(what, "global", 6)) { printf("PE %d leaves", me); shmem_global_exit(atoi(what + 6)); }
    fprintf(stderr, "PE %d: %s ended\n", me, what);
    exit(99);
}

/* PE i does what argument i + 1 says, the last argument holds for all others; "later-" first lets the others get there;
   "noinit-" does it without shmem_init. */
int main(int argc, char **argv) {
    up();
    const char *what = argv[me + 1 < argc ? me + 1 : argc - 1];
    const int init = strncmp(what, "noinit-", 7) != 0;
    if (init) shmem_init();
    else what += 7;
    if (!strncmp(what, "later-", 6)) {
        usleep(300000);
        what += 6;
    }
    act(what);
    return 98;
}
"""


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    compiler = build() / "bin" / "oshcc"
    if not compiler.exists():
        pytest.skip(f"{compiler} does not exist yet")
    folder = tmp_path_factory.mktemp("faults")
    (folder / "fault.c").write_text(SOURCE)
    subprocess.run([compiler, "-O1", "-o", folder / "fault", folder / "fault.c"], check=True)
    return folder / "fault"


@pytest.fixture
def fault(compiled, tmp_path, oshrun):
    """The program; afterwards nothing may be left of the job in memory."""
    shared_before = set(os.listdir("/dev/shm"))
    (tmp_path / "fault").symlink_to(compiled)
    yield "./fault"
    for process in oshrun.started:
        process.wait(PROMPT_S)
    inode = (tmp_path / "inode").read_text().strip()
    assert int(inode) > 0
    assert wait_until(lambda: not holders(inode), 2), f"memory of the job is still held: {holders(inode)}"
    # Other programs of the machine come and go there; what nobody maps is left over.
    def left():
        return set(os.listdir("/dev/shm")) - shared_before - mapped_names()
    assert wait_until(lambda: not left(), 3), f"left in /dev/shm: {left()}"


def mapped_names():
    """Names in /dev/shm that some process maps."""
    names = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            names.update(re.findall(r" /dev/shm/(.*)", pathlib.Path(f"/proc/{pid}/maps").read_text()))
    return names


def holders(inode):
    """Processes that map or have open the memory with this inode."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
            if any("memfd:heddle" in line and line.split()[4] == inode for line in maps.splitlines()):
                found.append((int(pid), "maps"))
            for fd in os.listdir(f"/proc/{pid}/fd"):
                if "memfd:heddle" in os.readlink(f"/proc/{pid}/fd/{fd}") and \
                        os.stat(f"/proc/{pid}/fd/{fd}").st_ino == int(inode):
                    found.append((int(pid), fd))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass
    return found


def assert_gone(oshrun, count):
    assert not [pid for pid in oshrun.pids(count) if alive(pid)]


def test_memory_has_no_name(oshrun, fault, tmp_path):
    """Also shows that the check behind all tests here finds a holder where there is one."""
    process = oshrun.start("-n", 2, fault, "later-sleep")
    oshrun.pids(2)
    time.sleep(0.3)
    ways = {way for _, way in holders((tmp_path / "inode").read_text().strip())}
    assert "maps" in ways and len(ways) >= 2
    for pid in oshrun.pids(2):
        assert "/dev/shm/" not in pathlib.Path(f"/proc/{pid}/maps").read_text()
    process.terminate()
    oshrun.finish(process)


@pytest.mark.parametrize("others", ["barrier", "until", "spin"])
@pytest.mark.parametrize("how,status,text", [
    ("exit3", 3, "exited with status 3"),
    ("abort", 134, "was killed by signal 6 (Aborted)"),
    ("segv", 139, "was killed by signal 11 (Segmentation fault)"),
    ("kill", 137, "was killed by signal 9 (Killed)"),
])
def test_failing_pe(oshrun, fault, how, status, text, others):
    result = oshrun.run("-n", 4, fault, others, "later-" + how, others)
    assert result.status == status and result.seconds < 0.3 + PROMPT_S, result
    assert len(result.messages) == 1
    assert re.fullmatch(rf"oshrun: PE 1 \(\./fault, pid \d+\) {re.escape(text)}; ending the other 3 PEs",
                        result.messages[0].replace(", core dumped", "")), result
    assert_gone(oshrun, 4)


def test_pe_killed_while_the_others_are_in_a_barrier(oshrun, fault):
    process = oshrun.start("-n", 4, fault, "barrier", "sleep", "barrier")
    oshrun.pids(4)
    time.sleep(0.5)
    begin = time.monotonic()
    os.kill(int((oshrun.folder / "pid.1").read_text()), signal.SIGKILL)
    result = oshrun.finish(process)
    assert time.monotonic() - begin < PROMPT_S
    assert result.status == 137 and "PE 1 (" in result.messages[0], result
    assert_gone(oshrun, 4)


def test_exit_past_finalize(oshrun, fault):
    result = oshrun.run("-n", 3, fault, "barrier", "barrier", "later-_exit")
    assert result.status == 1 and len(result.messages) == 1
    assert "PE 2 (./fault, pid " in result.messages[0] and "did not call shmem_finalize" in result.messages[0], result
    assert_gone(oshrun, 3)


def test_exit_without_finalize_below_a_script(oshrun, fault):
    """The script hides the status; the record does not."""
    result = oshrun.run("-n", 2, "bash", "-c", f"{fault} barrier later-segv; true")
    assert result.status == 1 and "did not call shmem_finalize" in result.messages[0], result
    assert_gone(oshrun, 2)


def test_exit_without_init(oshrun, fault):
    result = oshrun.run("-n", 3, fault, "barrier", "noinit-later-exit", "barrier")
    assert result.status == 1 and len(result.messages) == 1, result
    assert re.search(r"PE 1 \(\./fault, pid \d+\) exited with status 0 without calling shmem_init, where PE [02] waits",
                     result.messages[0]), result
    assert_gone(oshrun, 3)


def test_fatal_error_of_the_library(oshrun, fault):
    result = oshrun.run("-n", 3, fault, "barrier", "later-fatal", "barrier")
    assert result.status == 1 and result.messages == [], result
    assert "heddle [pe 1] shmem_long_p: " in result.err
    assert_gone(oshrun, 3)


@pytest.mark.parametrize("status", [0, 7, 255, 256 + 5])
def test_global_exit(oshrun, fault, status):
    result = oshrun.run("-n", 4, fault, "barrier", "until", f"later-global{status}", "spin")
    assert result.status == status & 0xff and result.seconds < 0.3 + PROMPT_S, result
    assert result.out == "PE 2 leaves"
    if status == 0:
        assert result.err == ""
    else:
        assert re.fullmatch(rf"oshrun: PE 2 \(\./fault, pid \d+\) called shmem_global_exit\({status}\); "
                            r"ending the other 3 PEs", result.err.strip()), result
    assert_gone(oshrun, 4)


def test_killed_launcher_leaves_no_forked_child(oshrun, fault):
    """Children that a PE forked die with oshrun, as it does. What they execute is another program, and lives on."""
    process = oshrun.start("-n", 2, fault, "family")
    family = oshrun.pids(6)
    executed = oshrun.pids(2, pattern="program.*")
    def is_executed(pid):
        return pathlib.Path(f"/proc/{pid}/comm").read_text() == "sleep\n"
    assert wait_until(lambda: all(map(is_executed, executed)))  # each writes its number before
    assert all(alive(pid) for pid in family)
    process.kill()
    process.wait()
    try:
        assert wait_until(lambda: not any(alive(pid) for pid in family)), "forked children outlive the launcher"
        assert all(alive(pid) for pid in executed)
    finally:
        for pid in executed:
            os.kill(pid, signal.SIGKILL)


def test_good_end(oshrun, fault):
    result = oshrun.run("-n", 4, fault, "finalize")
    assert (result.status, result.out, result.err) == (0, "", ""), result


def test_timeout_tells_where_pes_wait(oshrun, fault):
    result = oshrun.run("-n", 3, "--timeout", "2.5", fault, "barrier", "until", "spin")
    assert result.status == 124 and result.seconds < 2.5 + PROMPT_S, result
    _, first, second, third = result.messages[:4]
    called = r" \(called at fault\+0x[0-9a-f]+\)"
    found = re.fullmatch(rf"oshrun: PE 0 \(pid (\d+)\): in shmem_barrier_all #\d+{called} since (\d\.\d) s", first)
    assert found and 1 <= float(found[2]) <= 2.5, result
    assert int(found[1]) == int((oshrun.folder / "pid.0").read_text())
    found = re.fullmatch(rf"oshrun: PE 1 \(pid \d+\): in shmem_long_wait_until\(never != 0, is 0\){called} "
                         r"since (\d\.\d) s", second)
    assert found and 1 <= float(found[1]) <= 2.5, result
    assert re.fullmatch(r"oshrun: PE 2 \(pid \d+\): running, not waiting in Heddle", third), result
    assert result.messages[4:] == ["oshrun: PE 0 waits for PE 1"], result
    assert_gone(oshrun, 3)


def test_timeout_in_init(oshrun, fault):
    result = oshrun.run("-n", 2, "--timeout", "1.5", fault, "barrier", "noinit-sleep")
    _, first, second = result.messages
    assert re.fullmatch(r"oshrun: PE 0 \(pid \d+\): in shmem_init( \(called at .*\))? since \d\.\d s", first), result
    assert re.fullmatch(r"oshrun: PE 1 \(pid \d+\): has not called shmem_init", second), result


def test_timeout_after_finalize(oshrun, fault):
    result = oshrun.run("-n", 2, "--timeout", "1.5", fault, "finalize", "linger")
    assert result.status == 124 and result.messages[1] == "oshrun: PE 0: has ended", result
    assert re.fullmatch(r"oshrun: PE 1 \(pid \d+\): has called shmem_finalize and runs on", result.messages[2]), result


@pytest.mark.parametrize("what", ["barrier", "until", "spin", "linger"])
@pytest.mark.parametrize("below", ["", "bash"])
def test_killed_launcher_leaves_no_pe(oshrun, fault, below, what):
    """Below a script only the lifeline reaches the PEs."""
    others = "linger" if what == "linger" else "sleep"
    command = ["bash", "-c", f"{fault} {others} {what}; true"] if below else [fault, others, what]
    process = oshrun.start("-n", 4, *command)
    pids = oshrun.pids(4)
    time.sleep(0.6)
    assert all(alive(pid) for pid in pids)
    process.kill()
    process.wait()
    assert wait_until(lambda: not any(alive(pid) for pid in pids), PROMPT_S), "PEs outlive their launcher"


def test_signal_to_the_launcher(oshrun, fault):
    process = oshrun.start("-n", 3, "bash", "-c", f"{fault} sleep barrier; true")
    oshrun.pids(3)
    time.sleep(0.3)
    begin = time.monotonic()
    process.terminate()
    result = oshrun.finish(process)
    assert time.monotonic() - begin < PROMPT_S
    assert result.status == 143 and result.messages == [], result
    assert_gone(oshrun, 3)


def test_damaged_job_page(oshrun, fault, python, tmp_path):
    """A wild store into the request to exit ends the job and is called what it is."""
    program = python("vandal", "import mmap, os, struct, time\nfd = int(os.environ['HEDDLE_JOB_FD'])\n"
                     "open('inode', 'w').write(str(os.fstat(fd).st_ino))\npage = mmap.mmap(fd, 4096)\n"
                     "assert struct.unpack_from('<Q', page)[0] == 0x39656c6464656800\n"
                     "struct.pack_into('<Q', page, 152, 0x4141414141414141)\ntime.sleep(600)\n")
    result = oshrun.run("-n", 2, program)
    assert result.status == 1 and result.seconds < PROMPT_S
    assert result.messages == ["oshrun: a PE has written over the job's shared page; ending the job"]
