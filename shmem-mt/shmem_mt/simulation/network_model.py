"""A network as the simulator knows it: the model file with its checks, and what is simulated on it.
shmem-mt/docs/simulator.md says what each parameter means; here are its name, which has the unit, its range and its
default."""

import difflib
import json
import math
import os
from dataclasses import dataclass

from shmem_mt import sources
from shmem_mt.errors import UserError

RULES = ("relaxed", "ordered", "reorder-buffer", "fence", "acknowledged", "two-sided", "two-sided-any")
PATTERNS = ("pair", "neighbour", "random")
MOST_NODES, MOST_CORES, MOST_OUTSTANDING, MOST_BYTES = 1_000_000, 1024, 4096, 1 << 28
MOST_RAILS = 16
MOST_MEMORY_BYTES = 8 << 30
MOST_EVENTS = 2e10  # an hour and more
_WORK = 1_000_000  # events that a simulation has at least, where its messages are not told
_BYTES = {"transfer": 40, "core": 64, "event": 40}  # of the engine's memory

_COST_NS, _RATE = (0, 1e9), (1e3, 1e14)
NUMBERS = {  # name -> (lowest, highest, default; None: it must be told)
    "hop_latency_ns": (*_COST_NS, None),
    "packet_bytes": (64, 1 << 24, None),
    "header_bytes": (0, 1 << 16, 0),
    "packet_header_bytes": (0, 1 << 16, 0),
    "link_burst_bytes": (0, 1 << 30, 0),
    "nic_message_ns": (*_COST_NS, 0),
    "nic_bytes_per_s": (*_RATE, None),
    "nic_latency_ns": (*_COST_NS, 0),
    "acknowledgement_ns": (*_COST_NS, 0),
    "small_core_ns": (*_COST_NS, None),
    "small_bytes_per_s": (*_RATE, None),
    "large_core_ns": (*_COST_NS, None),
    "large_startup_ns": (*_COST_NS, None),
    "large_bytes_per_s": (*_RATE, None),
    "target_message_ns": (*_COST_NS, 0),
    "ordered_core_ns": (*_COST_NS, 0),
    "fence_core_ns": (*_COST_NS, 0),
    "acknowledged_core_ns": (*_COST_NS, 0),
    "two_sided_core_ns": (*_COST_NS, 0),
    "reorder_message_ns": (*_COST_NS, 0),
    "match_ns": (*_COST_NS, 0),
    "any_source_ns": (*_COST_NS, 0),
    "eager_copy_bytes_per_s": (*_RATE, 1e14),
}
WHOLE = {
    "nodes_per_router": (1, 64, 1),
    "reorder_buffer_messages": (1, MOST_OUTSTANDING, 64),
    "rendezvous_bytes": (0, MOST_BYTES, 0),
    "batch_bytes": (0, 1 << 24, 0),
    "large_from_bytes": (0, MOST_BYTES, 0),
    "processors_per_node": (0, MOST_CORES, 0),
}
WORDS = {  # name -> (what it may be, default)
    "topology": (("direct", "torus"), None),
    "window": (("sliding", "burst"), "sliding"),
    "fence": (("ordered", "reorder-buffer", "acknowledged"), "acknowledged"),
}
_TEXTS = ("name", "description")
_LINKS = ("link_bytes_per_s", "parallel_links")
KEYS = (*_TEXTS, *WORDS, *_LINKS, *NUMBERS, *WHOLE)


@dataclass(frozen=True)
class Traffic:
    """What the cores of a simulation send."""

    nodes: int
    cores: int  # active, of each node
    size_bytes: int
    rule: str
    outstanding: int
    pattern: str
    seed: int = 1
    messages: int = 0  # of each core; 0: as many as it takes

    @property
    def senders(self):
        return (self.nodes // 2 if self.pattern == "pair" else self.nodes) * self.cores


def load(name_or_path):
    """The model of a shipped name or of a file, checked. Raises UserError."""
    shipped = os.path.join(folder(), name_or_path + ".json")
    path = shipped if os.path.exists(shipped) and os.sep not in name_or_path else name_or_path
    try:
        with open(path, encoding="utf-8") as file:
            values = json.load(file)
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(sorted(name[:-5] for name in os.listdir(folder()) if name.endswith(".json")))
        why = getattr(error, "strerror", None) or error
        raise UserError(f"--model {name_or_path}: {why}; it is a JSON file or a shipped model ({known})") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON ({error})") from error
    return checked(values, path)


def checked(values, path):
    """The model of these values, with all defaults. Raises UserError that names the key, its value and what would be
    right."""
    if not isinstance(values, dict):
        raise UserError(f"{path}: a model is a JSON object with the keys {', '.join(KEYS)}")
    for key in values:
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, 1, 0)
            raise UserError(f"{path}: no parameter is called {key}; did you mean {near[0]}?")
    model = {"name": _text(values, "name", path), "description": _text(values, "description", path, "")}
    for key, (allowed, default) in WORDS.items():
        value = values.get(key, default)
        if value not in allowed:
            raise UserError(f"{path}: {key} {_shown(values, key)}: it must be {' or '.join(allowed)}")
        model[key] = value
    for key, limits in NUMBERS.items():
        model[key] = _number(values, key, path, limits)
    for key, limits in WHOLE.items():
        model[key] = int(_number(values, key, path, limits, whole=True))
    _check_links(values, model, path)
    return model


def _check_links(values, model, path):
    if model["topology"] == "torus":
        model["link_bytes_per_s"] = _number(values, "link_bytes_per_s", path, (*_RATE, None))
        links = values.get("parallel_links", [1, 1, 1])
        if not isinstance(links, list) or len(links) != 3 or not all(_is_whole(n) and 1 <= n <= 16 for n in links):
            shown = _shown(values, "parallel_links")
            raise UserError(f"{path}: parallel_links {shown}: it must be three numbers from 1 to 16, for x, y and z")
        model["parallel_links"] = links
        return
    if "parallel_links" in values:
        raise UserError(
            f"{path}: parallel_links is of a torus; a direct network has a rate for each rail in link_bytes_per_s"
        )
    rails = values.get("link_bytes_per_s")
    if not isinstance(rails, list) or not 1 <= len(rails) <= MOST_RAILS:
        shown = _shown(values, "link_bytes_per_s")
        raise UserError(f"{path}: link_bytes_per_s {shown}: it must be a list of 1 to {MOST_RAILS} rates, of each rail")
    model["link_bytes_per_s"] = [
        _number({"link_bytes_per_s": r}, "link_bytes_per_s", path, (*_RATE, None)) for r in rails
    ]


def _text(values, key, path, default=None):
    value = values.get(key, default)
    if not isinstance(value, str) or (default is None and not 1 <= len(value) <= 40):
        raise UserError(f"{path}: {key} {_shown(values, key)}: it must be a text of 1 to 40 characters")
    return value


def _number(values, key, path, limits, whole=False):
    low, high, default = limits
    value = values.get(key, default)
    right = (_is_whole if whole else _is_number)(value)
    if not right or not low <= value <= high:
        kind = "a whole number" if whole else "a number"
        raise UserError(f"{path}: {key} {_shown(values, key)}: it must be {kind} from {low:g} to {high:g}")
    return value


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value):
    return _is_number(value) and value == int(value)


def _shown(values, key):
    return json.dumps(values[key])[:60] if key in values else "is missing"


def folder():
    """Where the engine and the shipped models lie."""
    return os.path.join(sources.root(), "simulator")


def cut_over_bytes(model):
    """From how many bytes on the large mechanism carries a message sooner than the small one; infinite when never."""
    if model["large_from_bytes"]:
        return model["large_from_bytes"]
    gap_ns = model["large_core_ns"] + model["large_startup_ns"] - model["small_core_ns"]
    gain_ns = 1e9 / model["small_bytes_per_s"] - 1e9 / model["large_bytes_per_s"]  # a byte
    if gap_ns < 0:
        return 0
    return math.floor(gap_ns / gain_ns) + 1 if gain_ns > 0 else math.inf


def mechanism(model, size_bytes):
    return "large" if size_bytes >= cut_over_bytes(model) else "small"


def check_traffic(model, traffic):
    """Raises UserError for what does not fit the model, or would take more time or memory than anybody has."""
    if model["topology"] == "direct" and (traffic.nodes, traffic.pattern) != (2, "pair"):
        raise UserError(
            f"--nodes {traffic.nodes} --pattern {traffic.pattern}: the model {model['name']} is direct, "
            "which is 2 nodes and the pattern pair"
        )
    if traffic.nodes < 2 or (traffic.pattern == "pair" and traffic.nodes % 2):
        raise UserError(f"--nodes {traffic.nodes}: there must be 2 at least, and for the pattern pair an even number")
    what = f"{traffic.nodes} nodes x {traffic.cores} cores, {traffic.outstanding} outstanding, {traffic.size_bytes} B"
    memory = _memory_bytes(model, traffic)
    if memory > MOST_MEMORY_BYTES:
        raise UserError(
            f"{what}: this would take about {memory / 2**30:.0f} GiB of memory, more than "
            f"{MOST_MEMORY_BYTES >> 30}; simulate fewer --nodes, --cores or --outstanding"
        )
    events = messages_of(model, traffic) * traffic.senders * _events_of_a_message(model, traffic)
    if events > MOST_EVENTS:
        raise UserError(
            f"{what}: this would take about {events:.0e} events, more than {MOST_EVENTS:.0e} (hours); "
            "simulate fewer --nodes or --cores, smaller --sizes, or fewer --messages"
        )


def endpoint(model, rule):
    """What of the engine's five endpoints carries out that rule."""
    return {"fence": model["fence"], "two-sided-any": "two-sided"}.get(rule, rule)


def _window(model, traffic):
    return 1 if endpoint(model, traffic.rule) == "acknowledged" else traffic.outstanding


def _packets(model, traffic):
    return -(-(traffic.size_bytes + model["header_bytes"]) // model["packet_bytes"])


def _events_of_a_message(model, traffic):
    """About, from above but for a strange shape of the grid."""
    routers = max(traffic.nodes / model["nodes_per_router"], 2)
    hops = 1 if model["topology"] == "direct" or traffic.pattern == "neighbour" else 0.75 * routers ** (1 / 3) + 1
    return 4 + _packets(model, traffic) * (hops + 2)


def _memory_bytes(model, traffic):
    transfers = traffic.senders * _window(model, traffic)
    return transfers * (_BYTES["transfer"] + _BYTES["event"] * _packets(model, traffic)) + (
        traffic.senders * _BYTES["core"]
    )


def messages_of(model, traffic):
    """How many messages each core sends: what was told, else enough for a steady state and for some work."""
    if traffic.messages:
        return traffic.messages
    enough = _WORK / (traffic.senders * _events_of_a_message(model, traffic))
    return max(4 * _window(model, traffic), 8, math.ceil(enough))


def scenario(model, traffic):
    """The engine's line for it (simulator/scenario.hpp)."""
    two_sided = endpoint(model, traffic.rule) == "two-sided"
    target_ns = model["target_message_ns"]
    if two_sided:
        target_ns += model["match_ns"] + (model["any_source_ns"] if traffic.rule == "two-sided-any" else 0)
    elif endpoint(model, traffic.rule) == "reorder-buffer":
        target_ns += model["reorder_message_ns"]
    processors = model["processors_per_node"]
    rails = model["link_bytes_per_s"] if model["topology"] == "direct" else [model["link_bytes_per_s"]]
    same = (
        "small_core_ns",
        "small_bytes_per_s",
        "large_core_ns",
        "large_startup_ns",
        "large_bytes_per_s",
        "rendezvous_bytes",
        "nic_message_ns",
        "nic_bytes_per_s",
        "nic_latency_ns",
        "packet_bytes",
        "header_bytes",
        "packet_header_bytes",
        "link_burst_bytes",
        "hop_latency_ns",
        "topology",
        "nodes_per_router",
        "window",
    )
    words = {name: model[name] for name in same}
    words.update(
        nodes=traffic.nodes,
        cores=traffic.cores,
        outstanding=traffic.outstanding,
        seed=traffic.seed,
        messages=messages_of(model, traffic),
        size_bytes=traffic.size_bytes,
        rule=endpoint(model, traffic.rule),
        pattern=traffic.pattern,
        mechanism=mechanism(model, traffic.size_bytes),
        rule_ns=model["two_sided_core_ns"] if two_sided else model.get(f"{traffic.rule}_core_ns", 0),
        batch_bytes=0 if two_sided else model["batch_bytes"],
        core_share=max(1.0, traffic.cores / processors) if processors else 1.0,
        target_ns=target_ns,
        copy_bytes_per_s=model["eager_copy_bytes_per_s"],
        reorder_buffer=model["reorder_buffer_messages"],
        ack_ns=model["acknowledgement_ns"],
        links=",".join(map(str, model.get("parallel_links", [1]))),
        bytes_per_s=",".join(f"{rate:.9g}" for rate in rails),
    )
    return " ".join(f"{name}={value}" for name, value in words.items())
