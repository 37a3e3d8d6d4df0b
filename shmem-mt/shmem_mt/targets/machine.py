"""Facts about the machine that a reader of the numbers needs. Everything is best effort: what cannot be found out is
None, never an error."""

import glob
import os
import platform
import re
import resource
import subprocess

BUSY = 0.25  # load a core at the start from which on others' work shows
OTHERS = 0.05  # share of the CPUs' time that other work takes, from which on it shows
STOLEN = 0.005  # share of the CPUs' time that a host takes away, from which on it shows
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
    memory = re.search(r"MemTotal:\s+(\d+) kB", _read("/proc/meminfo") or "")
    os_name = re.search(r'PRETTY_NAME="([^"]*)"', _read("/etc/os-release") or "")
    return {
        "cpu": _field(cpuinfo, "model name") or platform.processor() or platform.machine(),
        "cpu_family_model": _family(cpuinfo),
        "cores": len(os.sched_getaffinity(0)),  # that may be used
        "threads_per_core": threads_per_core(),
        "smt": None if threads_per_core() is None else threads_per_core() > 1,
        "virtual": "hypervisor" in (_field(cpuinfo, "flags") or "").split(),
        "caches": _caches(),
        "microcode": _field(cpuinfo, "microcode"),
        "numa_nodes": len(glob.glob("/sys/devices/system/node/node[0-9]*")) or None,
        "governor": _governors(),
        "boost": _read("/sys/devices/system/cpu/cpufreq/boost"),
        "huge_pages": _chosen(_read("/sys/kernel/mm/transparent_hugepage/enabled")),
        "mitigations": _mitigations(),
        "cpu_quota": _quota(),
        "memory_bytes": int(memory.group(1)) * 1024 if memory else None,
        "kernel": platform.release(),
        "os": os_name.group(1) if os_name else platform.system(),
        "load_at_start": os.getloadavg()[0],
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith(SETTING_PREFIXES)},
    }


def threads_per_core():
    siblings = _read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    return len(_expand(siblings)) if siblings else None


def counters():
    """What `since` takes the difference to, in seconds of all CPUs: all, those that the host took away, those without
    work, and those of this process and of the children that it has waited for."""
    fields = (_read("/proc/stat") or "").partition("\n")[0].split()[1:9]
    if len(fields) != 8:
        return None
    seconds = [int(field) / os.sysconf("SC_CLK_TCK") for field in fields]
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own = sum(each.ru_utime + each.ru_stime for each in used)
    return sum(seconds), seconds[7], seconds[3] + seconds[4], own


def since(before):
    """{"steal_share", "others_share"}: of the CPUs' time since `counters` what the host took away, and what work took
    that this process did not start; None where they cannot be known."""
    now = counters()
    if not before or not now or now[0] <= before[0]:
        return {"steal_share": None, "others_share": None}
    whole, stolen, without, own = (after - then for after, then in zip(now, before))
    return {"steal_share": stolen / whole, "others_share": max(0.0, whole - stolen - without - own) / whole}


def hand_over_s(program):
    """What that program (programs/probes/hand_over.cpp) prints, in seconds; None where it cannot tell."""
    try:
        return float(first_line([program], timeout_s=5) or "none")
    except ValueError:
        return None


def warnings(facts):
    """What makes the figures of this machine doubtful, as texts."""
    told = []
    load, cores = facts.get("load_at_start"), facts.get("cores") or 1
    if load and load > BUSY * cores:
        told.append(f"the machine was busy at the start: a load of {load:.2g} on {cores} cores")
    if (facts.get("others_share") or 0) > OTHERS:
        told.append(f"other work took {100 * facts['others_share']:.0f} % of the CPUs' time")
    if facts.get("governor") not in (None, "performance"):
        told.append(f"the frequency governor is {facts['governor']}, not performance")
    if (facts.get("steal_share") or 0) > STOLEN:
        told.append(f"the host took {100 * facts['steal_share']:.1f} % of the CPUs' time away")
    if facts.get("cpu_quota"):
        told.append(f"a control group limits the CPU time to {facts['cpu_quota']:g} cores")
    return told


def _governors():
    """Of all CPUs, such as ``performance, powersave``."""
    found = {_read(path) for path in glob.glob("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")}
    return ", ".join(sorted(filter(None, found))) or None


def _chosen(text):
    """The word in brackets, as in ``always [madvise] never``."""
    match = re.search(r"\[(\w+)\]", text or "")
    return match.group(1) if match else None


def _mitigations():
    """How many of the known weaknesses of the CPU the kernel works around; each costs system calls."""
    found = [_read(path) or "" for path in glob.glob("/sys/devices/system/cpu/vulnerabilities/*")]
    return sum(text.startswith("Mitigation") for text in found) if found else None


def _quota():
    """The cores that a control group (version 2) of this process allows, None for all. Every level may limit them."""
    own = re.search(r"^0::(/.*)$", _read("/proc/self/cgroup") or "", re.MULTILINE)
    folders, limits = (own.group(1).strip("/").split("/") if own else []), []
    for depth in range(len(folders) + 1):
        words = (_read(os.path.join("/sys/fs/cgroup", *folders[:depth], "cpu.max")) or "max").split()
        limits += [int(words[0]) / int(words[1])] if len(words) == 2 and words[0] != "max" else []
    return min(limits, default=None)


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
