"""How long program starts take, judged by those that have ended: what the time left of a run is made of."""

COMPILE_S = 6.0  # of one program; the CPU time of four of the suite's with g++ 12 -O2 was 3.8 to 7.7 s


class Forecast:
    """Seconds of starts that have not run yet. What alike starts took over what the plan thought of them corrects the
    plan's estimates: a machine, a library or a program may be twice as slow as planned."""

    def __init__(self):
        self._took = {}  # (label, start) -> (seconds, how many)
        self._share = {}  # what starts have in common -> (seconds that they took, that were planned)

    def learn(self, label, start, seconds):
        """A start has ended."""
        total, count = self._took.get((label, start), (0.0, 0))
        self._took[label, start] = total + seconds, count + 1
        for group in _groups(label, start):
            took, planned = self._share.get(group, (0.0, 0.0))
            self._share[group] = took + seconds, planned + start.estimate_s

    def seconds(self, label, start):
        """What that start takes: the mean of what it took, or its estimate corrected by starts like it."""
        total, count = self._took.get((label, start), (0.0, 0))
        if count:
            return total / count
        for group in _groups(label, start):
            took, planned = self._share.get(group, (0.0, 0.0))
            if planned > 0:
                return start.estimate_s * took / planned
        return start.estimate_s


def _groups(label, start):
    """What starts have in common, from the most to the least alike."""
    place = (start.program, start.fabric.name)
    return ((label, *place, start.pes, start.threads), (label, *place), place, (label,), ())
