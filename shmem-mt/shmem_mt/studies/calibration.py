"""A direct model of the network that an ordering study measured: fitted to its points (network_fit.py), and tested on
levels that a fit did not see.

A level is one value of one parameter: a message size, a window, a number of rails or of cores. Neighbours of a point
tell much about it, so points drawn one by one would be no test. For each parameter some levels are held back whole, the
model is fitted to the rest and predicts them. The model that is written is fitted to all points.
"""

import random
from collections import namedtuple

import numpy

from shmem_mt import units
from shmem_mt.errors import UserError
from shmem_mt.runner.results import load_machine, load_results
from shmem_mt.simulation import model_file
from shmem_mt.simulation.native_engine import Engine
from shmem_mt.simulation.network_model import Traffic
from shmem_mt.simulation.simulate import VALIDATION, open_folder
from shmem_mt.studies.network_fit import Fit, StudySetup
from shmem_mt.targets import fabrics

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
_MESSAGES = 16  # of a core, at least
_BURST_BYTES = 16 << 20  # a burst of more takes as long for each byte

# What a fit did not see: the parameter's name and its levels as words, the points of the fit, those to predict.
Fold = namedtuple("Fold", "name levels training held")


class Point:
    """A measured rate, and what is to be simulated for it."""

    def __init__(self, result):
        params = result["params"]
        try:
            rule, size, window = RULES[params["rule"]], params["size_bytes"], params["outstanding"]
            self.rails = params.get("rails", 1)
            cores = max(1, params["pes"] * params["threads"] // 2)
            numbers = (size, window, self.rails, cores)
            if not all(isinstance(n, int) and 1 <= n <= model_file.MOST_BYTES for n in numbers):
                raise ValueError("its size, outstanding, rails, threads and pes must be whole numbers from 1")
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"a point of {STUDY} cannot be simulated: {error!r} in {params}") from error
        self.outstanding = window
        self.rate, self.interval = result["median"], result["interval"]
        self.label = result["label"]
        self.mechanism = params.get("mechanism", "batch")
        self.is_large = self.mechanism == "rendezvous"
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
    setup = StudySetup.of(points, link_rates, cores)
    folds = hold_back(points, options.hold_back, options.seed)
    with Engine() as engine:
        fit = Fit(engine, points, setup)
        fit.run()
        predictions = [prediction for fold in folds for prediction in _predictions(engine, fold, setup)]
        errors = [abs(fit.predict(point) / point.rate - 1) for point in points]
    model = fit.final()
    folder = open_folder(options, model)
    folder.write_json("model.json", {name: value for name, value in model.items() if value is not None})
    summary = validate(predictions)
    summary.update(
        points=len(points),
        median_fit_error=float(numpy.median(errors)),
        parameters=fit.parameters(),
        seed=options.seed,
        notes=notes,
    )
    folder.write_json("validation.json", summary)
    for _, point, rate in predictions:
        _add_points(folder, model, point, rate)
    print("\n".join(notes + _report(summary)))
    return folder, int(bool(predictions) and summary["median_error"] > BOUND)


def usable(results):
    """(the points of one network, its rails' rates in bytes a second or None, what was left out and why). Raises
    UserError."""
    groups: dict[tuple[str, str], list[Point]] = {}  # network and its links' rate -> points
    notes, crowded, sliced = [], 0, 0
    for result in results:
        params = result["params"]
        if result["benchmark"] != STUDY or result["metric"] != "rate" or result["valid"] is False:
            continue
        if params.get("oversubscribed"):
            crowded += 1
        elif "slice_bytes" in params:
            sliced += 1
        elif params["fabric"] != fabrics.ON_NODE.name and params.get("rule") in RULES and result["median"] > 0:
            where = (params["fabric"], params.get("link_rate", ""))
            groups.setdefault(where, []).append(Point(result))
    if not groups:
        raise UserError(
            f"this run has no valid rates of the benchmark {STUDY} over a network, under the rules {', '.join(RULES)}"
        )
    where = max(groups, key=lambda key: len(groups[key]))
    notes += [f"left out: {crowded} points of more threads than cores"] if crowded else []
    notes += [f"left out: {sliced} points of messages in slices"] if sliced else []
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


def hold_back(points, share, seed):
    """The folds: of each parameter that share of its levels, one at least. Of sizes and windows inner levels are drawn,
    which a fit has to interpolate; of rails and cores it is the highest, which are to follow from fewer. A point that
    two folds would predict is of the first; one whose rule or mechanism the others lack is of none."""
    draw, folds, taken = random.Random(seed), [], set()
    for name, level_of, inner in (
        ("size", lambda point: point.traffic.size_bytes, True),
        ("outstanding", lambda point: point.outstanding, True),
        ("rails", lambda point: point.rails, False),
        ("cores", lambda point: point.traffic.cores, False),
    ):
        levels = sorted(set(map(level_of, points)))
        candidates = levels[1:-1] if inner else levels[1:]
        count = min(max(1, round(share * len(levels))), len(candidates)) if share > 0 else 0
        chosen = draw.sample(candidates, count) if inner else candidates[-count:]
        training = [point for point in points if level_of(point) not in chosen]
        told = {(point.traffic.rule, point.is_large) for point in training}
        held = [
            point
            for point in points
            if level_of(point) in chosen and point not in taken and (point.traffic.rule, point.is_large) in told
        ]
        if count and held and len(training) >= FEWEST // 2:
            texts = map(units.size, sorted(chosen)) if name == "size" else map(str, sorted(chosen))
            folds.append(Fold(name, ", ".join(texts), training, held))
            taken.update(held)
    return folds


def _predictions(engine, fold, setup):
    """(fold, point, rate) of each point that the fold holds back."""
    fit = Fit(engine, fold.training, setup)
    fit.run()
    return [(fold, point, fit.predict(point)) for point in fold.held]


def validate(predictions):
    """What the held-back points say of the model."""
    rows = []
    for fold, point, rate in predictions:
        rows.append(
            {
                "held_out": f"{fold.name} {fold.levels}",
                "point": point.describe(),
                "measured": point.rate,
                "predicted": rate,
                "error": abs(rate / point.rate - 1),
                "measured_interval": point.interval,
            }
        )
    levels = [
        {"held_out": held_out, **_errors([row for row in rows if row["held_out"] == held_out])}
        for held_out in dict.fromkeys(row["held_out"] for row in rows)
    ]
    return {"bound": BOUND, **_errors(rows), "levels": levels, "validation": rows}


def _errors(rows):
    errors = [row["error"] for row in rows]
    return {
        "held_back": len(rows),
        "within_bound": sum(error <= BOUND for error in errors),
        "unsure": sum(row["error"] > BOUND and _is_unsure(row) for row in rows),
        "median_error": float(numpy.median(errors)) if errors else None,
        "worst_error": max(errors, default=None),
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
    lines = [f"fitted to {summary['points']} points (median error {summary['median_fit_error']:.1%})"]
    for name, found in summary["parameters"].items():
        error = f"+- {found['standard_error']:.0%}" if found["identified"] else "THE POINTS DO NOT TELL IT"
        lines.append(f"  {name} = {found['value']:.4g} ({error})")
    for row in summary["validation"]:
        over = "  MORE THAN THE BOUND" if row["error"] > BOUND else ""
        lines.append(
            f"{row['point']}: measured {units.quantity(row['measured'], 'messages/s')}, predicted "
            f"{units.quantity(row['predicted'], 'messages/s')}, error {row['error']:.1%}{over}"
        )
    if not summary["held_back"]:
        return [*lines, "no level was held back: nothing is known of the model's predictions"]
    for level in summary["levels"]:
        lines.append(
            f"without {level['held_out']}: {level['within_bound']} of {level['held_back']} points within {BOUND:.0%}; "
            f"median error {level['median_error']:.1%}, worst {level['worst_error']:.1%}"
        )
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
