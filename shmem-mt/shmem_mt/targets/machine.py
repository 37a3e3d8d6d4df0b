"""Facts about the machine that a reader of the numbers needs. Everything is best effort: what cannot be found out is
None, never an error."""

import glob
import os
import platform
import re
import subprocess

SETTING_PREFIXES = ("SHMEM_", "SMA_", "HEDDLE_", "OMPI_", "UCX_", "PMIX_", "OMP_", "MALLOC_")


def first_line(arguments, timeout_s=20):
    """The first line that a command prints, None when it cannot be run."""
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=timeout_s, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0].strip() if lines else None


def facts():
    """A dict of strings and numbers; `cores` is always there."""
    cpuinfo = _read("/proc/cpuinfo") or ""
    siblings = _read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    threads_per_core = len(_expand(siblings)) if siblings else None
    memory = re.search(r"MemTotal:\s+(\d+) kB", _read("/proc/meminfo") or "")
    os_name = re.search(r'PRETTY_NAME="([^"]*)"', _read("/etc/os-release") or "")
    return {
        "cpu": _field(cpuinfo, "model name") or platform.processor() or platform.machine(),
        "cpu_family_model": _family(cpuinfo),
        "cores": os.cpu_count() or 1,
        "threads_per_core": threads_per_core,
        "smt": None if threads_per_core is None else threads_per_core > 1,
        "virtual": "hypervisor" in (_field(cpuinfo, "flags") or "").split(),
        "caches": _caches(),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "memory_bytes": int(memory.group(1)) * 1024 if memory else None,
        "kernel": platform.release(),
        "os": os_name.group(1) if os_name else platform.system(),
        "load_at_start": os.getloadavg()[0],
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith(SETTING_PREFIXES)},
    }


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None


def _field(cpuinfo, name):
    match = re.search(rf"^{name}\s*: (.*)$", cpuinfo, re.MULTILINE)
    return match.group(1) if match else None


def _family(cpuinfo):
    family, model = _field(cpuinfo, "cpu family"), _field(cpuinfo, "model")
    return f"family {family}, model {model}" if family and model else None


def _expand(cpu_list):
    """The CPUs in a kernel list such as 0-3,8."""
    cpus: list[int] = []
    for part in cpu_list.split(","):
        low, _, high = part.partition("-")
        cpus += range(int(low), int(high or low) + 1)
    return cpus


def _caches():
    caches = {}
    for index in sorted(glob.glob("/sys/devices/system/cpu/cpu0/cache/index*")):
        level, kind, size = (_read(os.path.join(index, name)) for name in ("level", "type", "size"))
        if level and size and kind != "Instruction":
            caches[f"L{level}"] = size
    return caches
