"""A network as the simulator knows it: a model by its name, what is simulated on it, and what the engine is told.
model_file.py has the parameters."""

import json
import math
import os
from dataclasses import dataclass

from shmem_mt import sources
from shmem_mt.errors import UserError
from shmem_mt.simulation.model_file import checked

RULES = ("relaxed", "ordered", "reorder-buffer", "fence", "acknowledged", "two-sided", "two-sided-any")
PATTERNS = ("pair", "neighbour", "random")
MOST_NODES = 1_000_000
MOST_MEMORY_BYTES = 8 << 30
MOST_EVENTS = 2e10  # an hour and more
_WORK = 1_000_000  # events that a simulation has at least, where its messages are not told
_BYTES = {"transfer": 40, "core": 64, "event": 40}  # of the engine's memory


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
    events = events_of(model, traffic)
    if events > MOST_EVENTS:
        raise UserError(
            f"{what}: this would take about {events:.0e} events, more than {MOST_EVENTS:.0e} (hours); "
            "simulate fewer --nodes or --cores, smaller --sizes, or fewer --messages"
        )


def events_of(model, traffic):
    """About how many events the simulation has."""
    return messages_of(model, traffic) * traffic.senders * _events_of_a_message(model, traffic)


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
