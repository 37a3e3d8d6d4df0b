"""What a point is called: in one line, and, of a mini-app, what run it belongs to."""

from shmem_mt import units
from shmem_mt.catalogue.catalogue import APP_SYNCS
from shmem_mt.statistics import FEWEST_STARTS

# The operation alone does not tell their points apart.
NAMED_BY_SYNC = {"requests", "completion", "overlap", "halo", "patterns"}
COMMUNICATION = "communication"  # the metric that points of mini-apps alone have
IMBALANCE = "imbalance"  # of a mini-app: how uneven the computing of its PEs is
FIGURE = "figure_of_merit"  # what the original of a mini-app prints of itself; the first one is its headline
MEMORY = "memory"  # of a job with mini-apps, and of what an iteration touches
_OF_POINTS = {"part", "timed", "last_caches_bytes"}  # params that differ within a run
_OF_RUNS = {"pes", "threads", "op", "context", *_OF_POINTS, "oversubscribed"}  # that say who ran a problem, and how
_OF_RUNS |= {"sync", "grid"}  # the grid of boxes follows from PEs and threads
_GROWN = {"edge", "words"}  # how large a problem is that grows with PEs and threads, which are no others then
_OF_RUNS |= {"fabric", "coalescing", "link_rate", "rails", "setting", "hosts", "partner"}


def describe(benchmark, params):
    """One line that tells a point from its neighbours."""
    parts = [benchmark, params["op"]]
    if "class" in params:
        parts.append(f"class {params['class']}")
    if "edge" in params and params["op"] != "exchange":
        parts.append(f"edge {params['edge']}")
    if "scale" in params:
        parts.append(f"{params['scale']} scaling of size {params['size']}")
    if params.get("size_bytes"):
        parts.append(units.size(params["size_bytes"]))
    if params.get("placement") == "static":
        parts.append("static")
    if params.get("team") == "strided":
        parts.append("every second PE")
    parts += [params[axis] for axis in ("touch", "owner") if axis in params]
    if params.get("cache") == "cold":
        parts.append("cold")
    if params.get("context", "default") not in ("default", "none"):
        parts.append(f"{params['context']} ctx")
    if benchmark in NAMED_BY_SYNC or (benchmark in APP_SYNCS and "sync" in params):
        parts.append(params["sync"])
    if params.get("level", "multiple") != "multiple":
        parts.append(f"level {params['level']}")
    if "policy" in params:
        parts.append(f"policy {params['policy']}")
    if computed_in(params):
        parts.append(computed_in(params))
    if "pe" in params:
        parts.append(f"{params['pe']} PE")
    if "part" in params:
        parts.append(params["part"])
    if params.get("scheme") == "window":
        parts.append("from a common start")
    if "rule" in params:
        parts += [f"{params['outstanding']} outstanding", params["mechanism"]]
    if "grid" in params:
        parts.append(f"grid {params['grid']}")
    if "wait_s" in params:
        parts.append(f"{params['wait_s']:g} s")
    if "waiters" in params:
        parts.append(f"beside {params['waiters']} waiters")
    if "batch" in params:
        parts.append(f"consumed, flag per {params['batch']}")
    parts.append(params["fabric"])
    if "coalescing" in params:
        parts.append(f"coalescing {params['coalescing']}")
    if "link_rate" in params:
        parts.append(f"links of {params['link_rate']}")
    if params.get("rails", 1) > 1:
        parts.append(f"{params['rails']} rails")
    if "setting" in params:
        parts.append(f"setting {params['setting']}")
    if "partner" in params:
        parts.append(f"partner {params['partner']}")
    parts.append(f"{params.get('pes', '?')} PEs" + (f" on {params['hosts']} hosts" if "hosts" in params else ""))
    if params.get("threads", 1) > 1:
        parts.append(f"{params['threads']} threads")
    if params.get("oversubscribed"):
        parts.append("oversubscribed")
    return ", ".join(parts)


def how_sure(result):
    """What its interval is, and of how many program starts: such as ``95 %, 8 starts`` and ``range of 3 starts``; and
    its modes, where it has several: ``two modes: 164 ns (40 %), 671 ns (60 %)``."""
    starts, modes = result["starts"], result.get("modes", ())
    text = f"range of {starts} starts" if starts > 1 else "1 start, no interval"
    if starts >= FEWEST_STARTS:
        text = f"95 %, {starts} starts"
    if len(modes) < 2:
        return text
    where = ", ".join(f"{units.quantity(at, result['unit'])} ({100 * share:.0f} %)" for at, share in modes)
    return f"{text}; {'two' if len(modes) == 2 else len(modes)} modes: {where}"


def tail(result):
    """Such as ``p99 1.20 µs, p99.9 4.00 µs, max 31.0 µs``; empty where no single operations were stamped."""
    durations = result.get("durations", {})
    names = {"p99": "p99", "p999": "p99.9", "max": "max"}
    return ", ".join(f"{names[k]} {units.quantity(durations[k], 's')}" for k in names if durations.get(k) is not None)


def computed_in(params):
    """Such as ``computing in memory``; empty where the computation beside a communication is that of all points, in
    registers."""
    kind = params.get("computation", "registers")
    return f"computing in {kind}" if kind != "registers" else ""


def switches(result):
    """Such as ``context switches 120 /s, 3.00 /s of them forced``; empty where none were counted."""
    counted = [result.get(f"{kind}_switches_per_s") for kind in ("voluntary", "involuntary")]
    if None in counted:
        return ""
    return f"context switches {units.significant(sum(counted))} /s, {units.significant(counted[1])} /s of them forced"


def pes_and_threads(params):
    """Such as ``2 PEs x 2 threads``."""
    threads = f" x {params['threads']} threads" if params["threads"] > 1 else ""
    return f"{params['pes']} PEs{threads}"


def pes_threads_and_load(params):
    """Such as ``2 PEs x 2 threads, oversubscribed``."""
    return pes_and_threads(params) + ", oversubscribed" * bool(params.get("oversubscribed"))


def run_of_app(params):
    """What tells runs of a mini-app apart, whatever is reported of them."""
    return tuple(sorted((name, str(value)) for name, value in params.items() if name not in _OF_POINTS))


def problem_of_app(params):
    """Such as ``class S, rows 1400``; of one that grows with PEs and threads ``scale weak, size small``."""
    hidden = _OF_RUNS | (_GROWN if params.get("scale") == "weak" else set())
    told = [f"{name.replace('_', ' ')} {value}" for name, value in params.items() if name not in hidden]
    return ", ".join(told)


def headline_of_app(figures):
    """Such as ``Total 6,500 MFLOPS``, of the points of a run's figures of merit; empty where there are none."""
    return next((f"{f['params']['part']} {units.quantity(f['median'], f['unit'])}" for f in figures), "")


def memory_of_app(points):
    """Such as ``memory 1.2 GiB, working set 38 MiB (fits the last caches of 64 MiB)``; empty where there are none."""
    told = {point["params"]["part"]: point for point in points}
    text = f"memory {units.quantity(told['job']['median'], 'bytes')}" if "job" in told else ""
    touched = told.get("working set")
    if touched:
        caches = touched["params"]["last_caches_bytes"]
        text += f", working set {units.quantity(touched['median'], 'bytes')}"
        if touched["median"] <= caches:
            text += f" (fits the last caches of {units.quantity(caches, 'bytes')})"
    return text


def form_of_app(params):
    """Such as ``blocking, private context`` and ``blocking, plan``."""
    context, sync = params.get("context", "default"), params.get("sync", "put_signal")
    return params["op"] + f", {context} context" * (context != "default") + f", {sync}" * (sync != "put_signal")
