"""`shmem-mt simulate`: messages on a modelled network, over nodes, cores, sizes and rules of order, as points of a run
folder."""

import shlex
import statistics
import time
from dataclasses import replace
from itertools import product

from shmem_mt import __version__, units
from shmem_mt.errors import UserError
from shmem_mt.runner.results import RunFolder
from shmem_mt.simulation import model_file, network_model
from shmem_mt.simulation.native_engine import Engine
from shmem_mt.simulation.network_model import Traffic
from shmem_mt.targets import fabrics, machine

BENCHMARK = "simulation"
VALIDATION = "simulation-validation"  # rates measured and predicted, of a calibrated model
DEFAULTS: dict[str, list] = {
    "nodes": [2],
    "cores": [1, 4, 16, 64],
    "sizes": [8, 512, 4096, 65536],
    "rules": list(network_model.RULES),
}
_HIGHEST = {"nodes": network_model.MOST_NODES, "cores": model_file.MOST_CORES, "sizes": model_file.MOST_BYTES}
_METRICS = (  # of results, of the engine's answer, unit, factor, params.part
    ("rate", "rate", "messages/s", 1, None),
    ("bandwidth", "bandwidth", "bytes/s", 1, None),
    ("latency", "latency_mean_s", "s", 1, "mean"),
    ("latency", "latency_p50_s", "s", 1, "p50"),
    ("latency", "latency_p95_s", "s", 1, "p95"),
    ("latency", "latency_p99_s", "s", 1, "p99"),
    ("reordering", "overtaken_share", "%", 100, "share"),
    ("reordering", "overtaken_distance", "messages", 1, "distance"),
    ("reordering", "overtaken_farthest", "messages", 1, "farthest"),
    ("reordering", "most_buffered", "messages", 1, "buffered"),
    ("events", "events", "events", 1, None),
    ("event-rate", "events_per_s", "events/s", 1, None),
    ("memory", "peak_memory_bytes", "bytes", 1, None),
)


SEEDS = 10  # of a point: as many as have an interval of 95 % and not too wide a one
ALIKE = 3  # seeds that give the same figures are enough: nothing is drawn that matters
EVENTS = 2e8  # of the seeds of one point, where one seed has no more
_CLOCKS = ("wall_s", "cpu_s", "events_per_s", "peak_memory_bytes")  # what is not simulated of an answer


def simulate(options):
    """Simulates what the options ask for, into a run folder. Returns the folder."""
    model = network_model.load(options.model or "gemini")
    wanted = _wanted(model, options)
    folder = open_folder(options, model)
    with Engine() as engine:
        for number, traffic in enumerate(wanted, 1):
            answers = simulate_seeds(engine, model, traffic)
            for seed, answer in enumerate(answers):
                add_answer(folder, model, traffic, answer, seed)
            print(_line(number, len(wanted), traffic, answers), flush=True)
    return folder


def simulate_seeds(engine, model, traffic):
    """The answers for the traffic's seed and those after it. Each seed is what a start is of a measured point."""
    most = min(SEEDS, max(1, int(EVENTS / network_model.events_of(model, traffic))))
    answers: list[dict] = []
    while len(answers) < most:
        answers.append(engine.simulate(model, replace(traffic, seed=traffic.seed + len(answers))))
        if len(answers) == ALIKE and all(_simulated(answer) == _simulated(answers[0]) for answer in answers):
            break
    return answers


def _simulated(answer):
    return {name: value for name, value in answer.items() if name not in _CLOCKS}


def _wanted(model, options):
    """All the traffic, checked before anything is simulated. Raises UserError."""
    chosen = {name: getattr(options, name) or default for name, default in DEFAULTS.items()}
    for name, highest in _HIGHEST.items():
        above = [value for value in chosen[name] if value > highest]
        if above:
            raise UserError(f"--{name} {above[0]}: the simulator takes up to {highest}")
    for rule in chosen["rules"]:
        if rule not in network_model.RULES:
            raise UserError(f"no rule is called {rule}; there are {', '.join(network_model.RULES)}")
    pattern = options.pattern or ("pair" if model["topology"] == "direct" else "random")
    wanted = [
        Traffic(nodes, cores, size, rule, options.outstanding, pattern, options.seed, options.messages or 0)
        for nodes, size, cores, rule in product(*(chosen[name] for name in ("nodes", "sizes", "cores", "rules")))
    ]
    for traffic in wanted:
        network_model.check_traffic(model, traffic)
    return wanted


def open_folder(options, model):
    """The run folder with its command and machine.json. Raises UserError."""
    folder = RunFolder.open(options.out or time.strftime("shmem-mt-simulation-%Y%m%d-%H%M%S"))
    with open(folder.path("command.txt"), "a", encoding="utf-8") as file:
        file.write(time.strftime("%Y-%m-%dT%H:%M:%S%z ") + shlex.join(["shmem-mt", *options.arguments]) + "\n")
    settings = {"seed": options.seed, "cut-over": _cut_over(model)}
    described = {"label": model["name"], "version": model["description"], "standard": "simulated"}
    contents = {"machine": machine.facts(), "implementations": [described], "settings": settings}
    folder.write_json("machine.json", {**contents, "shmem_mt": __version__})
    return folder


def _cut_over(model):
    size = network_model.cut_over_bytes(model)
    return "none" if size > model_file.MOST_BYTES else f"{size} B"


def traffic_params(model, traffic):
    """What results say of it."""
    return {
        "op": "put",
        "rule": traffic.rule,
        "size_bytes": traffic.size_bytes,
        "nodes": traffic.nodes,
        "cores": traffic.cores,
        "outstanding": traffic.outstanding,
        "pattern": traffic.pattern,
        "mechanism": network_model.mechanism(model, traffic.size_bytes),
        "messages": network_model.messages_of(model, traffic),
        "seed": traffic.seed,
        "fabric": fabrics.SIMULATED.name,
    }


def add_answer(folder, model, traffic, answer, number):
    """The points of one simulation, of the seed with this number, counted from the traffic's. They are valid when every
    message has arrived once, and in order where the rule says so."""
    valid = answer["sent"] == answer["delivered"]
    if network_model.endpoint(model, traffic.rule) != "relaxed":
        valid = valid and answer["released_out_of_order"] == 0
    params = traffic_params(model, traffic)
    for metric, name, unit, factor, part in _METRICS:
        point = {"benchmark": BENCHMARK, "metric": metric, "unit": unit, "samples": [answer[name] * factor]}
        own = {**params, "part": part} if part else params
        folder.add_point({**point, "params": own, "valid": valid, "label": model["name"], "round": number})


def _line(number, count, traffic, answers):
    rates = [answer["rate"] for answer in answers]
    rate = units.quantity(statistics.median(rates), "messages/s")
    if len(rates) == 1:
        seeds = "1 seed, which tells no spread"
    else:
        seeds = f"{len(rates)} seeds, {min(rates) / max(rates):.1%} least of most"
    what = f"{traffic.rule}, {units.size(traffic.size_bytes)}, {traffic.nodes} nodes x {traffic.cores} cores"
    overtaken = 100 * statistics.median(answer["overtaken_share"] for answer in answers)
    events, took = sum(answer["events"] for answer in answers), sum(answer["wall_s"] for answer in answers)
    return (
        f"[{number}/{count}] {what}: {rate} ({seeds}), {overtaken:.1f} % overtaken "
        f"({events:.3g} events in {took:.1f} s)"
    )
