"""A direct model of the network that an ordering study measured: a handful of costs and rates, fitted to most of its
points, tested on those held back.

Each parameter stands for one effect: a message's time there and back, what it costs the core under each rule, what a
transfer costs, rates of bytes, the start of the large mechanism. First values come from the points that an effect
dominates; then Levenberg and Marquardt's method moves them all, as logarithms, so that the logarithms of predicted and
measured rates agree, far-off points counting less (Huber). A weak pull towards the first values decides what the points
do not.
"""

import math
import random

import numpy

from shmem_mt import units
from shmem_mt.errors import UserError
from shmem_mt.runner.results import load_machine, load_results
from shmem_mt.simulation import network_model
from shmem_mt.simulation.native_engine import Engine
from shmem_mt.simulation.network_model import Traffic
from shmem_mt.simulation.simulate import VALIDATION, open_folder
from shmem_mt.targets import fabrics, hosts

STUDY = "ordering"
RULES = {  # of the study -> of the simulator
    "relaxed": "relaxed",
    "ordered": "ordered",
    "reorder-buffer": "reorder-buffer",
    "fence": "fence",
    "quiet": "acknowledged",
    "two-sided": "two-sided",
    "two-sided-any": "two-sided-any",
}
BOUND = 0.15  # of the error that a prediction may have
FEWEST = 10  # points
BATCH_BYTES = 60000  # what the library gathers at most
LINK_BURST_BYTES = 1024 * int(hosts.BURST.removesuffix("kb"))
_PULL = 0.02  # of a parameter towards its first value, for each e-fold
_FAR = 0.15  # residuals beyond count less
_DIFFERENCE, _LONGEST, _LEAST_GAIN = 0.02, 0.7, 3e-4  # of logarithms; of the cost
_TRIAL_STEPS, _STEPS, _DAMPINGS = 12, 30, 6
_MESSAGES = 16  # of a core, at least
_BURST_BYTES = 16 << 20  # a burst of more takes as long for each byte
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


class Point:
    """A measured rate, and what is to be simulated for it."""

    def __init__(self, result):
        params = result["params"]
        try:
            rule, size, window = RULES[params["rule"]], params["size_bytes"], params["outstanding"]
            self.rails = params.get("rails", 1)
            cores = max(1, params["pes"] * params["threads"] // 2)
            numbers = (size, window, self.rails, cores)
            if not all(isinstance(n, int) and 1 <= n <= network_model.MOST_BYTES for n in numbers):
                raise ValueError("its size, outstanding, rails, threads and pes must be whole numbers from 1")
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"a point of {STUDY} cannot be simulated: {error!r} in {params}") from error
        self.outstanding = window
        self.rate, self.interval = result["median"], result["interval"]
        self.label = result["label"]
        self.mechanism = params.get("mechanism", "batch")
        self.batched = self.mechanism != "eager" and params.get("coalescing") != "off"
        window = min(window, max(8, _BURST_BYTES // size))
        messages = 2 * (_MESSAGES if rule == "acknowledged" else -(-_MESSAGES // window) * window)  # half of them count
        self.traffic = Traffic(2, cores, size, rule, window, "pair", 1, messages)

    def describe(self):
        traffic = self.traffic
        return (
            f"{traffic.rule}, {units.size(traffic.size_bytes)}, {traffic.cores} cores, {self.outstanding} "
            f"outstanding, {self.rails} rails, {self.mechanism}"
        )


def calibrate(options):
    """Writes model.json and the validation into a run folder. Returns (the folder, status): 1 when the model misses
    held-back points by more than BOUND in the median, else 0."""
    points, link_rates, notes = usable(load_results(options.calibrate))
    cores = load_machine(options.calibrate).get("machine", {}).get("cores", 0)
    drawn = random.Random(options.seed).sample(range(len(points)), held_back(len(points), options.hold_back))
    training = [point for index, point in enumerate(points) if index not in set(drawn)]
    held = [points[index] for index in sorted(drawn)]
    with Engine() as engine:
        fit = Fit(engine, training, link_rates, cores)
        fit.run()
        model, predicted = fit.final(), [fit.predict(point) for point in held]
        training_errors = [abs(fit.predict(point) / point.rate - 1) for point in training]
    folder = open_folder(options, model)
    folder.write_json("model.json", {name: value for name, value in model.items() if value is not None})
    summary = validate(held, predicted)
    summary.update(
        points=len(points),
        trained_on=len(training),
        median_training_error=float(numpy.median(training_errors)),
        parameters=fit.named_values(),
        seed=options.seed,
        notes=notes,
    )
    folder.write_json("validation.json", summary)
    for point, rate in zip(held, predicted):
        _add_points(folder, model, point, rate)
    print("\n".join(notes + _report(summary)))
    return folder, int(bool(held) and summary["median_error"] > BOUND)


def usable(results):
    """(the points of one network, its rails' rates in bytes a second or None, what was left out and why). Raises
    UserError."""
    groups: dict[tuple[str, str], list[Point]] = {}  # network and its links' rate -> points
    notes, crowded = [], 0
    for result in results:
        params = result["params"]
        if result["benchmark"] != STUDY or result["metric"] != "rate" or result["valid"] is False:
            continue
        if params.get("oversubscribed"):
            crowded += 1
        elif params["fabric"] != fabrics.ON_NODE.name and params.get("rule") in RULES and result["median"] > 0:
            where = (params["fabric"], params.get("link_rate", ""))
            groups.setdefault(where, []).append(Point(result))
    if not groups:
        raise UserError(
            f"this run has no valid rates of the benchmark {STUDY} over a network, under the rules {', '.join(RULES)}"
        )
    where = max(groups, key=lambda key: len(groups[key]))
    notes += [f"left out: {crowded} points of more threads than cores"] if crowded else []
    notes += [f"left out: {len(own)} points over {' '.join(key)}" for key, own in groups.items() if key != where]
    points = _of_one_library(groups[where], notes)
    if len(points) < FEWEST:
        raise UserError(f"{len(points)} points over {' '.join(where)} are too few to calibrate with; {FEWEST} at least")
    return points, _link_rates(where[1]), notes


def _of_one_library(points, notes):
    """Of the one-sided rules and of the two-sided ones, the library with the most points."""
    kept = []
    for two_sided in (False, True):
        own = [point for point in points if point.traffic.rule.startswith("two-sided") == two_sided]
        labels = [point.label for point in own]
        best = max(dict.fromkeys(labels), key=labels.count, default=None)
        kept += [point for point in own if point.label == best]
        notes += [
            f"left out: {labels.count(other)} points of {other}" for other in dict.fromkeys(labels) if other != best
        ]
    return kept


def _link_rates(text):
    """Bytes a second of each rail, of texts such as ``100mbit`` or ``1gbit,500mbit``; None without."""
    scale = {"k": 1e3, "m": 1e6, "g": 1e9}
    try:
        return [float(item[:-4]) * scale[item[-4]] / 8 for item in text.split(",")] if text else None
    except (KeyError, ValueError, IndexError) as error:
        raise UserError(f"params.link_rate {text!r} is no list of rates such as 100mbit") from error


def held_back(count, share):
    """How many points: at least one where any are to be held back, and so that FEWEST / 2 are left."""
    return min(max(1, round(count * share)), count - FEWEST // 2) if share > 0 else 0


class Fit:
    """The model while it is fitted."""

    def __init__(self, engine, training, link_rates, processors):
        self.engine, self.training, self.link_rates = engine, training, link_rates
        self.rails = max(point.rails for point in training)
        self.large = any(point.mechanism == "rendezvous" for point in training)
        self.base = self._first_model(processors)
        self.names = self._parameters()
        self.first = numpy.log([self._first_value(name) for name in self.names])
        self.values = self.first.copy()

    def run(self):
        """A message's cost to the core may be what bounds the rate, or not show at all: both are tried."""
        trials = []
        for share in (1, 0.1, 0.1):
            self.first[self.names.index("small_core_ns")] += math.log(share)
            trials.append((*self._descend(self.first, _TRIAL_STEPS), self.first.copy()))
        values, _, self.first = min(trials, key=lambda trial: trial[1])
        self.values, _ = self._descend(values, _STEPS)

    def _descend(self, values, steps):
        """(values, cost) after that many steps, or when they gain little."""
        damping = 0.1
        residuals, cost = self._residuals(values)
        for _ in range(steps):
            jacobian = numpy.column_stack([self._slope(values, residuals, i) for i in range(len(values))])
            weights = numpy.sqrt(numpy.minimum(1, _FAR / numpy.maximum(abs(residuals), 1e-12)))
            for _ in range(_DAMPINGS):
                system = numpy.vstack([jacobian * weights[:, None], math.sqrt(damping) * numpy.eye(len(values))])
                right = numpy.concatenate([-residuals * weights, numpy.zeros(len(values))])
                trial = values + numpy.clip(numpy.linalg.lstsq(system, right, rcond=None)[0], -_LONGEST, _LONGEST)
                new_residuals, new_cost = self._residuals(trial)
                if new_cost < cost:
                    break
                damping *= 5
            else:
                break
            gain, values, residuals, cost = cost - new_cost, trial, new_residuals, new_cost
            damping = max(damping / 5, 1e-6)
            if gain < _LEAST_GAIN * cost:
                break
        return values, cost

    def final(self):
        return self._model(self.values)

    def named_values(self):
        return {name: float(value) for name, value in zip(self.names, numpy.exp(self.values))}

    def predict(self, point, values=None):
        model = self._model(self.values if values is None else values)
        model["link_bytes_per_s"] = model["link_bytes_per_s"][: point.rails]
        if not point.batched:
            model["batch_bytes"] = 0
        return self.engine.simulate(model, point.traffic)["rate"]

    def _residuals(self, values):
        """Of the points, then the pulls; and the cost that is to become least."""
        apart = [self._apart(point, values) for point in self.training]
        residuals = numpy.array([*apart, *(_PULL * (values - self.first))])
        size = abs(residuals)
        return residuals, float(numpy.sum(numpy.where(size < _FAR, size**2, 2 * _FAR * size - _FAR**2)))

    def _apart(self, point, values):
        return math.log(self.predict(point, values) / point.rate)

    def _slope(self, values, residuals, index):
        moved = values.copy()
        moved[index] += _DIFFERENCE
        apart = [
            self._apart(point, moved) if _touches(self.names[index], point) else old
            for point, old in zip(self.training, residuals)
        ]
        return (numpy.array([*apart, *(_PULL * (moved - self.first))]) - residuals) / _DIFFERENCE

    def _parameters(self):
        rules = {point.traffic.rule for point in self.training}
        names = [*_EVERY, "link_share" if self.link_rates else "link_bytes_per_s"]
        names += [name for rule, own in _OWN.items() if rule in rules for name in own]
        names += ["large_startup_ns", "large_bytes_per_s"] if self.large else []
        return names + (["nic_bytes_per_s"] if self.rails > 1 else [])

    def _model(self, values):
        model = dict(self.base)
        for name, value in zip(self.names, numpy.exp(values)):
            low, high, *_ = _LINK_LIMITS.get(name) or network_model.NUMBERS[name]
            model[name] = float(min(max(value, low), high))
        model["large_core_ns"] = model["small_core_ns"]
        share = model.pop("link_share", None)
        if share is None:
            model["link_bytes_per_s"] = [model["link_bytes_per_s"]] * self.rails
        else:
            model["link_bytes_per_s"] = [share * rate for rate in (self.link_rates * self.rails)[: self.rails]]
        return model

    def _first_model(self, processors):
        large = [point.traffic.size_bytes for point in self.training if point.mechanism == "rendezvous"]
        values = {
            "name": "calibrated",
            "description": f"direct, fitted to {len(self.training)} points of an ordering study",
            "topology": "direct",
            "link_bytes_per_s": [1e9] * min(self.rails, network_model.MOST_RAILS),
            "packet_bytes": 1 << 16,
            "batch_bytes": BATCH_BYTES,
            "reorder_buffer_messages": network_model.MOST_OUTSTANDING,
            "link_burst_bytes": LINK_BURST_BYTES if self.link_rates else 0,
            "window": "burst",
            "fence": _fence_endpoint(self.training),
            "nic_bytes_per_s": 1e13,
            "large_from_bytes": min(large, default=network_model.MOST_BYTES),
            "rendezvous_bytes": min(large, default=0),
            "processors_per_node": processors // 2,
            "hop_latency_ns": 1,
            "small_core_ns": 1,
            "small_bytes_per_s": 1e9,
            "large_core_ns": 1,
            "large_startup_ns": 1,
            "large_bytes_per_s": 1e13,
        }
        return network_model.checked(values, "the model")

    def _first_value(self, name):
        small = min(point.traffic.size_bytes for point in self.training)
        rates = [point.rate / point.traffic.cores for point in self.training if point.traffic.size_bytes == small]
        slowest, quickest = min(rates), max(rates)
        fewest = min(point.rails for point in self.training)
        fastest = max(p.rate * p.traffic.size_bytes / fewest for p in self.training if p.rails == fewest)
        round_trip_ns, message_ns = 1e9 / slowest, 1e9 / quickest
        alone = [point.rate for point in self.training if point.traffic.size_bytes == small and not point.batched]
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
            "large_bytes_per_s": 8 * fastest * self.rails,
            "nic_bytes_per_s": 8 * fastest * self.rails,
            "eager_copy_bytes_per_s": 4 * fastest,
        }.get(name, max(message_ns / 4, 1.0))


def _touches(name, point):
    """Whether that parameter can matter to what is predicted for the point."""
    rule = point.traffic.rule
    owners = [owner for owner, own in _OWN.items() if name in own]
    if owners:
        return rule == owners[0] or (rule, owners[0]) == ("two-sided-any", "two-sided")
    large = point.mechanism == "rendezvous"
    return large if name.startswith("large") else not large if name == "small_bytes_per_s" else True


def _fence_endpoint(points):
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


def validate(held, predicted):
    """What the held-back points say of the model."""
    rows = []
    for point, rate in zip(held, predicted):
        error = abs(rate / point.rate - 1)
        rows.append(
            {
                "point": point.describe(),
                "measured": point.rate,
                "predicted": rate,
                "error": error,
                "measured_interval": point.interval,
            }
        )
    errors = [row["error"] for row in rows]
    return {
        "bound": BOUND,
        "held_back": len(rows),
        "within_bound": sum(error <= BOUND for error in errors),
        "unsure": sum(row["error"] > BOUND and _is_unsure(row) for row in rows),
        "median_error": float(numpy.median(errors)) if errors else None,
        "worst_error": max(errors, default=None),
        "validation": rows,
    }


def _is_unsure(row):
    """Whether the measurement's own 95 % interval reaches farther than the bound."""
    low, high = row["measured_interval"]
    return max(high - row["measured"], row["measured"] - low) > BOUND * row["measured"]


def _add_points(folder, model, point, predicted):
    traffic = point.traffic
    params = {
        "op": "put",
        "rule": traffic.rule,
        "size_bytes": traffic.size_bytes,
        "cores": traffic.cores,
        "outstanding": point.outstanding,
        "rails": point.rails,
        "mechanism": point.mechanism,
        "fabric": fabrics.SIMULATED.name,
    }
    for part, rate in (("measured", point.rate), ("predicted", predicted)):
        whole = {"benchmark": VALIDATION, "metric": "rate", "unit": "messages/s", "samples": [rate], "valid": True}
        folder.add_point({**whole, "params": {**params, "part": part}, "label": model["name"], "round": 0})


def _report(summary):
    lines = [f"fitted to {summary['trained_on']} points (median error {summary['median_training_error']:.1%})"]
    lines += [f"  {name} = {value:.4g}" for name, value in summary["parameters"].items()]
    for row in summary["validation"]:
        over = "  MORE THAN THE BOUND" if row["error"] > BOUND else ""
        lines.append(
            f"{row['point']}: measured {units.quantity(row['measured'], 'messages/s')}, predicted "
            f"{units.quantity(row['predicted'], 'messages/s')}, error {row['error']:.1%}{over}"
        )
    if not summary["held_back"]:
        return [*lines, "no point was held back: nothing is known of the model's predictions"]
    lines.append(
        f"{summary['within_bound']} of {summary['held_back']} held-back points within {BOUND:.0%}; median error "
        f"{summary['median_error']:.1%}, worst {summary['worst_error']:.1%}"
    )
    if summary["worst_error"] > BOUND:
        lines.append(
            f"THE MODEL MISSES {summary['held_back'] - summary['within_bound']} POINTS BY MORE THAN {BOUND:.0%}; of "
            f"{summary['unsure']} the measured interval is as wide"
        )
    return lines
