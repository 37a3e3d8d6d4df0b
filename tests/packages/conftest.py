"""Empty Debians, by debootstrap, in which packages are installed; each is made once, and copied for each run."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
PACKAGES = Path(os.environ["HEDDLE_PACKAGES"])
LIMIT_S = 3600


def run(*command, **options):
    """Runs a command that must succeed; returns what it printed."""
    done = subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=LIMIT_S, **options)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}"
    return done.stdout


def mirror():
    """The first mirror of Debian that this machine's apt knows."""
    text = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)")
    found = re.search(r"^(\S+?)/? bookworm main$", text, flags=re.M)
    return found[1] if found else pytest.skip("apt of this machine knows no mirror of Debian 12 (bookworm)")


class Chroot:
    def __init__(self, root):
        self.root = root

    def run(self, *command, user="root"):
        """Runs a command inside, as that user."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive",
                       "LC_ALL": "C.UTF-8", "HOME": "/root" if user == "root" else "/tmp", **PIP}
        return run("chroot", f"--userspec={user}", self.root, *command, env=environment)

    def files(self):
        """What is there outside of what programs and users write; links with where they lead."""
        skipped = ("/dev", "/tmp", "/var", "/root", "/home", "/run", "/etc/apt", "/packages", "/programs")
        kernels = ["(", "-path", f"{self.root}/proc", "-o", "-path", f"{self.root}/sys", ")"]
        text = run("find", self.root, *kernels, "-prune", "-o", "-printf", "/%P -> %l\n")
        return {line for line in text.splitlines()
                if not line.startswith(skipped) and "/__pycache__" not in line and "ld.so.cache" not in line}


# How this machine reaches the Python package index: pip inside needs it, too. The certificates have a place that
# Debian's own packages do not write to.
CERTIFICATES = Path(os.environ.get("PIP_CERT", "/etc/ssl/certs/ca-certificates.crt"))
PIP = {name: value for name, value in os.environ.items()
       if name in ("PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT") or name.lower() in ("http_proxy", "https_proxy", "no_proxy")}
if CERTIFICATES.exists():
    PIP["PIP_CERT"] = "/var/lib/index-certificates.crt"


def made(name, release):
    """An empty Debian, which is made once."""
    if os.geteuid() != 0:
        pytest.skip("debootstrap and chroot need root")
    if not shutil.which("debootstrap", path=os.environ["PATH"] + ":/usr/sbin"):
        pytest.skip("no debootstrap on this machine")
    empty = PACKAGES / name
    if not empty.exists():
        unfinished = empty.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        run("debootstrap", "--variant=minbase", release, unfinished, mirror(),
            env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"})
        unfinished.rename(empty)
    return empty


@pytest.fixture(scope="session")
def empty():
    return made("debian-12", "bookworm")


@contextlib.contextmanager
def copy_of(empty, root):
    """A copy of the empty Debian that can be worked in, with this machine's way to the network."""
    run("cp", "-a", empty, root)
    for name in ("resolv.conf", "hosts"):
        shutil.copy(Path("/etc") / name, root / "etc" / name)
    if "PIP_CERT" in PIP:
        shutil.copy(CERTIFICATES, root / PIP["PIP_CERT"][1:])
    mounted = []
    try:
        for kind, folder in (("proc", "proc"), ("sysfs", "sys")):  # UCX looks there for the network's devices
            run("mount", "-t", kind, "-o", "ro" if kind == "sysfs" else "rw", kind, root / folder)
            mounted.append(root / folder)
        yield Chroot(root)
    finally:
        for folder in reversed(mounted):
            run("umount", folder)
        shutil.rmtree(root)


@pytest.fixture(scope="session")
def debian(empty, tmp_path_factory):
    with copy_of(empty, tmp_path_factory.mktemp("chroot") / "debian") as chroot:
        yield chroot


@pytest.fixture
def fresh(empty, tmp_path):
    """Another one, for one test."""
    with copy_of(empty, tmp_path / "debian") as chroot:
        yield chroot


@pytest.fixture
def older(tmp_path):
    """The oldest Debian that mirrors have: glibc 2.31, gcc 10."""
    with copy_of(made("debian-11", "bullseye"), tmp_path / "debian") as chroot:
        yield chroot
