"""The limits of the machine that a run has measured beside its points, as lines in the charts of what they bound."""

from shmem_mt.report.charts.model import Limit
from shmem_mt.statistics import median_interval
from shmem_mt.targets import fabrics

# By slug: what a word from another core needs at least is that its line is handed over once.
_BOUNDED_BY_HAND_OVER = ("latency-8-bytes", "latency-by-size", "idle-waiters", "barrier", "collectives-barriers")


def add(charts, fabric, machines):
    """To the charts of a fabric. `machines` are the contents of machine.json of the runs, of one machine."""
    found = [seconds for contents in machines for seconds in contents.get("machine", {}).get("hand_over_s") or ()]
    if fabric != fabrics.ON_NODE.name or not found:
        return
    median, low, high = median_interval([[seconds] for seconds in found])
    handed = {"median": median, "interval": [low, high], "starts": len(found), "unit": "s"}
    for chart in charts:
        if chart.slug.removesuffix(fabrics.suffix(fabric)) in _BOUNDED_BY_HAND_OVER:
            chart.limits.append(Limit("limit of what is handed over: a line, core to core", handed))
