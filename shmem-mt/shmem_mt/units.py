"""Numbers for people: three or four digits, an SI prefix and the unit."""

_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_UNITS = {"messages/s": "/s", "iterations/s": "/s", "bytes/s": "B/s", "bytes": "B", "s": "s"}
_PLAIN = {"%": "%", "x": "×"}  # no prefixes
_PLAIN |= {unit: unit for unit in ("MFLOPS", "Mflops", "Mop/s", "GUP/s")}  # as the originals print them


def quantity(value, unit):
    """Such as ``2.17 G/s``, ``115 ns``, ``36.1 GB/s``."""
    if unit in _PLAIN:
        return f"{significant(value)} {_PLAIN[unit]}"
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


LOWER_IS_BETTER = {"latency", "cpu_time", "cpu_share", "wake_latency", "switches", "time", "slowdown", "memory"}
