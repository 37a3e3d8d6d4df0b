"""A direct model of a network, fitted to measured rates by least squares.

Each parameter stands for one effect: a message's time there and back, what it costs the core under each rule, what a
transfer costs, rates of bytes, the start of the large mechanism. First values come from the points that an effect
dominates. Then scipy.optimize.least_squares moves the logarithms of all of them, so that the logarithms of predicted
and measured rates agree, far-off points counting less (Huber). A weak pull towards the first values decides what the
points do not.
"""

import functools
import math
from dataclasses import dataclass

import numpy
from scipy import optimize

from shmem_mt.simulation import model_file, network_model
from shmem_mt.targets import hosts

BATCH_BYTES = 60000  # what the library gathers at most
LINK_BURST_BYTES = 1024 * int(hosts.BURST.removesuffix("kb"))
UNKNOWN = math.log(2)  # a standard error of this factor and more: the points do not tell the parameter
_PULL = 0.02  # of a parameter towards its first value, for each e-fold
_FAR = 0.15  # residuals beyond count less
# Differences of logarithms. Messages and batches are whole, so rates are rough as functions of costs: wide differences
# see the slope behind the steps, narrow ones then find the place.
_DIFFERENCES = (0.5, 0.2, 0.1, 0.05, 0.02)
_LEAST_GAIN, _LEAST_MOVE, _MOST_STEPS = 3e-4, 1e-3, 20  # of the cost; of the logarithms; with one difference
_VAGUE, _LEAST_VARIANCE = 10, 1e-8  # of logarithms
_LOWEST = 1e-3  # ns, bytes: in place of 0, which has no logarithm
_SIMULATIONS = 1 << 15  # that are remembered
_OWN = {  # parameters that only points of a rule tell about
    "ordered": ("ordered_core_ns",),
    "fence": ("fence_core_ns",),
    "acknowledged": ("acknowledged_core_ns",),
    "reorder-buffer": ("reorder_message_ns",),
    "two-sided": ("two_sided_core_ns", "match_ns", "eager_copy_bytes_per_s"),
    "two-sided-any": ("any_source_ns",),
}
_EVERY = (
    "hop_latency_ns",
    "small_core_ns",
    "small_bytes_per_s",
    "nic_message_ns",
    "header_bytes",
    "packet_header_bytes",
)
_LINK_LIMITS = {
    "link_share": (0.01, 10),
    "link_bytes_per_s": (1e3, 1e14),
}  # share: of the rate that the links were given


@dataclass(frozen=True)
class StudySetup:
    """What is known of a study without its rates."""

    link_rates: list | None  # of each rail, bytes a second
    rails: int  # the most
    processors: int  # of the machine, which is both nodes
    large_from_bytes: int | None  # the least that the library sends by its large mechanism

    @classmethod
    def of(cls, points, link_rates, processors):
        large = [point.traffic.size_bytes for point in points if point.is_large]
        return cls(link_rates, max(point.rails for point in points), processors, min(large, default=None))


class Fit:
    """The model while it is fitted. Of values only their logarithms are dealt with, less those of the first values."""

    def __init__(self, engine, training, setup):
        self.training, self.setup = training, setup
        self.base = self._first_model()
        self.names = self._parameters()
        limits = numpy.log([self._limits(name) for name in self.names]).T
        self.first = numpy.clip(numpy.log([self._first_value(name) for name in self.names]), *limits)
        self.limits = limits
        self.moved = numpy.zeros(len(self.names))
        self.found = optimize.OptimizeResult()
        # A parameter that does not matter to a point leaves its scenario as it was.
        self._rate = functools.lru_cache(_SIMULATIONS)(lambda scenario: engine.answer(scenario)["rate"])

    def run(self):
        """A message's cost to the core may be what bounds the rate, or not show at all: both are tried."""
        trials = []
        for share in (1, 0.1, 0.1):
            self.first[self.names.index("small_core_ns")] += math.log(share)
            self.first = numpy.clip(self.first, *self.limits)
            trials.append((self._least_squares(), self.first.copy()))
        self.found, self.first = min(trials, key=lambda each: each[0].cost)
        self.moved = self.found.x

    def _least_squares(self):
        found = optimize.OptimizeResult(x=numpy.zeros(len(self.names)))
        for difference in _DIFFERENCES:
            found = optimize.least_squares(
                self._residuals,
                found.x,
                functools.partial(self._jacobian, difference=difference),
                bounds=self.limits - self.first,
                loss="huber",
                f_scale=_FAR,
                ftol=_LEAST_GAIN,
                xtol=_LEAST_MOVE,
                max_nfev=_MOST_STEPS,
            )
        return found

    def final(self):
        return self._model(self.moved)

    def parameters(self):
        """{name: its value, its standard error as a share of it, and whether the points tell it at all}."""
        values = numpy.exp(self.first + self.moved)
        return {
            name: {"value": float(value), "standard_error": float(error), "identified": bool(error < UNKNOWN)}
            for name, value, error in zip(self.names, values, self._standard_errors())
        }

    def _standard_errors(self):
        """Of the logarithms: the roots of the diagonal of s^2 (J^T J)^-1. J has a row for each point and none for the
        pulls. A direction that no point tells has an error of _VAGUE in place of an infinite one."""
        points = len(self.training)
        jacobian, apart = self.found.jac[:points], numpy.clip(self.found.fun[:points], -_FAR, _FAR)
        variance = max(apart @ apart / max(1, points - len(self.names)), _LEAST_VARIANCE)
        vague = numpy.eye(len(self.names)) / _VAGUE**2
        return numpy.sqrt(numpy.diag(numpy.linalg.inv(jacobian.T @ jacobian / variance + vague)))

    def predict(self, point, moved=None):
        model = self._model(self.moved if moved is None else moved)
        model["link_bytes_per_s"] = model["link_bytes_per_s"][: point.rails]
        if not point.batched:
            model["batch_bytes"] = 0
        return self._rate(network_model.scenario(model, point.traffic))

    def _residuals(self, moved):
        """Of the points, then the pulls."""
        apart = [math.log(self.predict(point, moved) / point.rate) for point in self.training]
        return numpy.array([*apart, *(_PULL * moved)])

    def _jacobian(self, moved, difference):
        """Least_squares' own differences are relative to a value, which is near 0 here. A rate changes by no larger
        share than a cost does; what is steeper is a jump between whole batches, and says nothing of a slope."""
        here = self._residuals(moved)
        steps = difference * numpy.eye(len(moved))
        slopes = numpy.column_stack([(self._residuals(moved + step) - here) / difference for step in steps])
        return numpy.clip(slopes, -1, 1)

    def _parameters(self):
        rules = {point.traffic.rule for point in self.training}
        names = [*_EVERY, "link_share" if self.setup.link_rates else "link_bytes_per_s"]
        names += [name for rule, own in _OWN.items() if rule in rules for name in own]
        names += ["large_startup_ns", "large_bytes_per_s"] if any(point.is_large for point in self.training) else []
        return names + (["nic_bytes_per_s"] if any(point.rails > 1 for point in self.training) else [])

    def _limits(self, name):
        low, high = _LINK_LIMITS.get(name) or model_file.limits(name)
        return max(low, _LOWEST), high

    def _model(self, moved):
        model = {**self.base, **dict(zip(self.names, map(float, numpy.exp(self.first + moved))))}
        model["large_core_ns"] = model["small_core_ns"]
        share, rails = model.pop("link_share", None), self.setup.rails
        if share is None:
            model["link_bytes_per_s"] = [model["link_bytes_per_s"]] * rails
        else:
            model["link_bytes_per_s"] = [share * rate for rate in (self.setup.link_rates * rails)[:rails]]
        return model

    def _first_model(self):
        values = {
            "name": "calibrated",
            "description": f"direct, fitted to {len(self.training)} points of an ordering study",
            "topology": "direct",
            "link_bytes_per_s": [1e9] * min(self.setup.rails, model_file.MOST_RAILS),
            "packet_bytes": 1 << 16,
            "batch_bytes": BATCH_BYTES,
            "reorder_buffer_messages": model_file.MOST_OUTSTANDING,
            "link_burst_bytes": LINK_BURST_BYTES if self.setup.link_rates else 0,
            "window": "burst",
            "fence": fence_endpoint(self.training),
            "nic_bytes_per_s": 1e13,
            "large_from_bytes": self.setup.large_from_bytes or model_file.MOST_BYTES,
            "rendezvous_bytes": self.setup.large_from_bytes or 0,
            "processors_per_node": self.setup.processors // 2,
            "hop_latency_ns": 1,
            "small_core_ns": 1,
            "small_bytes_per_s": 1e9,
            "large_core_ns": 1,
            "large_startup_ns": 1,
            "large_bytes_per_s": 1e13,
        }
        return model_file.checked(values, "the model")

    def _first_value(self, name):
        small = min(point.traffic.size_bytes for point in self.training)
        rates = [point.rate / point.traffic.cores for point in self.training if point.traffic.size_bytes == small]
        slowest, quickest = min(rates), max(rates)
        fewest = min(point.rails for point in self.training)
        fastest = max(p.rate * p.traffic.size_bytes / fewest for p in self.training if p.rails == fewest)
        round_trip_ns, message_ns = 1e9 / slowest, 1e9 / quickest
        alone = [point.rate for point in self.training if point.traffic.size_bytes == small and not point.batched]
        rails = max(point.rails for point in self.training)
        return {
            "hop_latency_ns": max(round_trip_ns - message_ns, message_ns) / 2.5,
            "small_core_ns": message_ns,
            "small_bytes_per_s": 8 * fastest,
            "nic_message_ns": 1e9 / max(alone) if alone else round_trip_ns / 20,
            "header_bytes": 16.0,
            "packet_header_bytes": 60.0,
            "link_share": 0.95,
            "link_bytes_per_s": fastest,
            "large_startup_ns": round_trip_ns / 2,
            "large_bytes_per_s": 8 * fastest * rails,
            "nic_bytes_per_s": 8 * fastest * rails,
            "eager_copy_bytes_per_s": 4 * fastest,
        }.get(name, max(message_ns / 4, 1.0))


def fence_endpoint(points):
    """What a fence costs: a round trip, as quiet does; all rails but one; or neither. What its rates are nearest to, of
    points that are alike but for the rule."""
    rates = {}
    for point in points:
        t = point.traffic
        rates[t.rule, t.size_bytes, t.cores, point.outstanding, point.rails, point.mechanism] = point.rate
    apart: dict[str, list[float]] = {"reorder-buffer": [], "acknowledged": [], "ordered": []}
    for (rule, *what), rate in rates.items():
        others = [rates.get((other, *what)) for other in ("relaxed", "acknowledged", "ordered")]
        if rule == "fence" and all(others):
            for distances, other in zip(apart.values(), others):
                distances.append(abs(math.log(rate / other)))
    return min(apart, key=lambda endpoint: sum(apart[endpoint]))
