"""Ways to start a process in namespaces of its own, as containers do, or under a filter of system calls. Root is not
needed where the kernel lets users make user namespaces."""

import pathlib
import shlex
import shutil
import subprocess

FILTER = pathlib.Path(__file__).resolve().parent / "system_call_filter.c"
SANDBOX = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--dev", "/dev", "--ro-bind", "/usr", "/usr",
           "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin"]
WITHOUT_PROC = ["unshare", "-Urm", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
# FILTER stands for the program of that name, NAME for a host name that differs from process to process.
WAYS = {
    "user namespace": ["unshare", "-Ur"],
    "process namespace": ["unshare", "-Urpf", "--mount-proc"],
    "process namespace, /proc of another": ["unshare", "-Urpf"],
    "no /proc": WITHOUT_PROC,
    "bwrap": [*SANDBOX, "--proc", "/proc"],
    "bwrap, host name": [*SANDBOX, "--proc", "/proc", "--unshare-uts", "--hostname", "NAME"],
    "bwrap, no /proc": SANDBOX,
    "user namespace, filter": ["unshare", "-Ur", "FILTER"],
}
# Nothing is shared: no sockets of this machine, and what belongs to another user namespace in /proc.
APART = ["unshare", "-Ur", "FILTER", "unix"]


def compile_filter(folder):
    """The program `FILTER [unix] COMMAND`."""
    path = pathlib.Path(folder) / "system_call_filter"
    subprocess.run(["cc", "-O1", "-Wall", FILTER, "-o", path], check=True, timeout=120)
    return path


def missing(way):
    """What this machine lacks for a way, as words; empty when nothing."""
    for tool in ["unshare", *(["bwrap"] if "bwrap" in way else [])]:
        if not shutil.which(tool):
            return tool
    tried = subprocess.run([*(WAYS["no /proc"] if "no /proc" in way else ["unshare", "-Urpf", "--mount-proc"]), "true"],
                           capture_output=True, text=True, timeout=60)
    return f"namespaces without root ({tried.stderr.strip()})" if tried.returncode != 0 else ""


def command(words, filter_program, folders=()):
    """The words of a way, which a program and its arguments follow. folders: what the program needs to see."""
    words = [str(filter_program) if word == "FILTER" else word for word in words]
    if words[0] == "bwrap":
        for folder in folders:
            words += ["--bind", str(folder), str(folder)]
    if "NAME" not in words:
        return words
    return ["sh", "-c", "exec " + shlex.join(words).replace("NAME", "inside-$$") + ' "$@"', "sh"]
