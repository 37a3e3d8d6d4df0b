"""Numbers for people: three or four digits, an SI prefix and the unit."""

from shmem_mt.errors import UserError

_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_UNITS = {"messages/s": "/s", "iterations/s": "/s", "1/s": "/s", "bytes/s": "B/s", "bytes": "B", "s": "s"}
_PLAIN = {"%": "%", "x": "×"}  # no prefixes
_PLAIN |= {unit: unit for unit in ("MFLOPS", "Mflops", "Mop/s", "GUP/s")}  # as the originals print them


def quantity(value, unit):
    """Such as ``2.17 G/s``, ``115 ns``, ``36.1 GB/s``."""
    if unit in _PLAIN:
        return f"{significant(value)} {_PLAIN[unit]}"
    if value == 0:
        return f"0 {_UNITS.get(unit, unit)}"
    scale, prefix = next(((s, p) for s, p in _PREFIXES if abs(value) >= 0.9995 * s), _PREFIXES[-1])
    return f"{significant(value / scale)} {prefix}{_UNITS.get(unit, unit)}"


def significant(value, digits=3):
    """Plain decimal notation with that many significant digits, more when the integer part is longer."""
    if value == 0:
        return "0"
    decimals = digits - 1
    magnitude = abs(value)
    while magnitude >= 10 and decimals > 0:
        magnitude /= 10
        decimals -= 1
    while magnitude < 1 and decimals < 12:
        magnitude *= 10
        decimals += 1
    return f"{value:,.{decimals}f}"


def size(count):
    """A message size: ``8 B``, ``64 KiB``, ``4 MiB``."""
    for power, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= power and count % power == 0:
            return f"{count // power} {name}"
    return f"{count} B"


def duration(seconds):
    """Time left: ``3:05``."""
    whole = max(0, round(seconds))
    return f"{whole // 60}:{whole % 60:02d}"


# Of the metrics of points, which change is for the better. Every metric that a program prints is in one of the three.
HIGHER_IS_BETTER = {"bandwidth", "consumed_rate", "figure_of_merit", "overlap", "rate", "stream_bandwidth",
                    "throughput"}  # fmt: skip
HIGHER_IS_BETTER |= {"event-rate"}  # of the simulator
LOWER_IS_BETTER = {"latency", "cpu_time", "cpu_share", "wake_latency", "switches", "time", "slowdown", "memory"}
# What describes a run: a mini-app that computes faster communicates for more of its time.
NOT_JUDGED = {"communication", "imbalance", "poll_interval"}
NOT_JUDGED |= {"events", "reordering"}  # of the simulator


def sense(metric):
    """1 where more of that metric is better, -1 where less is, 0 where neither is. Raises UserError where it is none of
    the suite's."""
    for names, found in ((HIGHER_IS_BETTER, 1), (LOWER_IS_BETTER, -1), (NOT_JUDGED, 0)):
        if metric in names:
            return found
    raise UserError(f"the metric {metric!r} is none whose better direction is known (shmem_mt/units.py)")
