"""A process between the driver and a command that the driver runs: when it ends, nothing of the command is left.

The driver runs `command(arguments)` in place of the arguments. That is this file, as a program of its own:

    supervisor.py DRIVER COMMAND...    DRIVER: the number of the process that starts it

It is a child subreaper: processes that the command leaves behind become its children, whatever session or process group
they have made. SIGTERM ends it, from the driver, or from the kernel when the thread that started it has ended: the
command gets SIGTERM, and TERM_GRACE_S later SIGKILL. When the command has ended, in whatever way, what it left behind
has REST_GRACE_S, and gets SIGKILL then. The supervisor ends as the command did, when it has no child, so no descendant,
any more. Where it is killed itself, the kernel kills the command.

It stands between the driver and every program that is measured: its own part imports only what is there quickly.
"""

import ctypes
import os
import signal
import sys
import time

TERM_GRACE_S = 5  # for the launcher, from SIGTERM to SIGKILL
REST_GRACE_S = 1  # for what it leaves behind: daemons on other hosts tidy up when it has ended
KILL_GRACE_S = 10  # from SIGKILL to the end of all: the kernel may hold a process in a call to a device
_SLACK_S = 20  # for a supervisor that gets no core
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_running: set = set()  # processes of run()


def command(arguments):
    """What runs these arguments under a supervisor, for subprocess.Popen with start_new_session. The standard streams
    are those of the arguments."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), *map(str, arguments)]


def end(process):
    """Ends a process that was started by `command`, with all below it."""
    import subprocess

    if process.poll() is None:
        process.terminate()
        try:
            process.wait(TERM_GRACE_S + REST_GRACE_S + KILL_GRACE_S + _SLACK_S)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def run(arguments, timeout_s):
    """subprocess.run of the arguments under a supervisor; its stdout and stderr are text. Raises OSError and
    subprocess.TimeoutExpired."""
    import subprocess

    with subprocess.Popen(
        command(arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        _running.add(process)
        try:
            stdout, stderr = process.communicate(timeout=timeout_s)
        finally:
            end(process)
            _running.discard(process)
    return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)


def end_running():
    """Ends what other threads wait for in `run`."""
    for process in list(_running):
        process.terminate()


def _main(driver, arguments):
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *_ENDING})
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a parent may have left it ignored: no child would be waited for
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != driver:  # it had ended before it could be told of
        return 1
    launcher = os.fork()
    if not launcher:
        _become(arguments, before)
    nothing = os.open(os.devnull, os.O_RDWR)
    for pipe in (0, 1):  # the command's, which is alone to hold them
        os.dup2(nothing, pipe)
    return _end_as(_status_of(launcher, arguments[0]))


def _become(arguments, mask):
    """In the child: runs the command, as if the driver had started it."""
    try:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()  # a launcher that signals its process group signals no supervisor
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execvp(arguments[0], arguments)
    except OSError as error:
        _say(f"cannot start {arguments[0]}: {error.strerror}")
    finally:
        os._exit(127)


def _status_of(launcher, name):
    """Waits for the launcher's end, or brings it about; ends all others. The launcher's wait status."""
    statuses: dict[int, int] = {}
    while launcher not in statuses:
        if signal.sigwait({signal.SIGCHLD, *_ENDING}) != signal.SIGCHLD:
            os.kill(launcher, signal.SIGTERM)
            break
        _reap(statuses)
    deadline = time.monotonic() + TERM_GRACE_S
    while launcher not in statuses and time.monotonic() < deadline:
        signal.sigtimedwait({signal.SIGCHLD}, max(0.0, deadline - time.monotonic()))
        _reap(statuses)
    kill_at = time.monotonic() + (REST_GRACE_S if launcher in statuses else 0)
    while _reap(statuses):
        if time.monotonic() > kill_at + KILL_GRACE_S:
            _say(f"some processes of {name} do not end by SIGKILL")
            break
        if time.monotonic() >= kill_at:
            _kill_children()
        signal.sigtimedwait({signal.SIGCHLD}, 0.02)
    return statuses.get(launcher, signal.SIGKILL)


def _reap(statuses):
    """Notes the status of each child that has ended. False: there is no child left."""
    try:
        while True:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                return True
            statuses.setdefault(child, status)  # the number of the launcher may come again
    except ChildProcessError:
        return False


def _kill_children():
    """SIGKILL to every child. What they leave behind is a child at the next call."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            os.waitid(os.P_PID, int(name), os.WEXITED | os.WNOHANG | os.WNOWAIT)  # fails for all but own children
            os.kill(int(name), signal.SIGKILL)
        except OSError:
            continue


def _end_as(status):
    """The exit status for that wait status; does not return where a signal ended the launcher."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        _prctl(_PR_SET_DUMPABLE, 0)  # the launcher's core is enough
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    return os.WEXITSTATUS(status)


def _prctl(option, value):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, *map(ctypes.c_ulong, (value, 0, 0, 0))):
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def _say(text):
    os.write(2, f"shmem-mt: {text}\n".encode(errors="replace"))


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1]), sys.argv[2:]))
