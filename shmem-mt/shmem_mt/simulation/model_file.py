"""What a model file may hold: the parameters of a network, with their ranges and defaults, and what is said of a file
that is wrong. shmem-mt/docs/simulator.md says what each parameter means. A name has its unit.

model.schema.json beside this file is the same as a JSON schema, for editors and other programs;
`python -m shmem_mt.simulation.model_file` writes it anew."""

import difflib
import json
import os
from typing import Annotated, Literal

import pydantic
from pydantic import Field

from shmem_mt.errors import UserError

MOST_CORES, MOST_OUTSTANDING, MOST_BYTES, MOST_RAILS = 1024, 4096, 1 << 28, 16
SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.schema.json")

Cost = Annotated[float, Field(ge=0, le=1e9)]  # ns
Rate = Annotated[float, Field(ge=1e3, le=1e14)]  # bytes a second
Header = Annotated[float, Field(ge=0, le=1 << 16)]
Links = Annotated[int, Field(ge=1, le=16)]


class _Network(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    name: Annotated[str, Field(min_length=1, max_length=40)]
    description: str = ""
    window: Literal["sliding", "burst"] = "sliding"
    fence: Literal["ordered", "reorder-buffer", "acknowledged"] = "acknowledged"
    hop_latency_ns: Cost
    packet_bytes: Annotated[float, Field(ge=64, le=1 << 24)]
    header_bytes: Header = 0
    packet_header_bytes: Header = 0
    link_burst_bytes: Annotated[float, Field(ge=0, le=1 << 30)] = 0
    nic_message_ns: Cost = 0
    nic_bytes_per_s: Rate
    nic_latency_ns: Cost = 0
    acknowledgement_ns: Cost = 0
    small_core_ns: Cost
    small_bytes_per_s: Rate
    large_core_ns: Cost
    large_startup_ns: Cost
    large_bytes_per_s: Rate
    target_message_ns: Cost = 0
    ordered_core_ns: Cost = 0
    fence_core_ns: Cost = 0
    acknowledged_core_ns: Cost = 0
    two_sided_core_ns: Cost = 0
    reorder_message_ns: Cost = 0
    match_ns: Cost = 0
    any_source_ns: Cost = 0
    eager_copy_bytes_per_s: Rate = 1e14
    nodes_per_router: Annotated[int, Field(ge=1, le=64)] = 1
    reorder_buffer_messages: Annotated[int, Field(ge=1, le=MOST_OUTSTANDING)] = 64
    rendezvous_bytes: Annotated[int, Field(ge=0, le=MOST_BYTES)] = 0
    batch_bytes: Annotated[int, Field(ge=0, le=1 << 24)] = 0
    large_from_bytes: Annotated[int, Field(ge=0, le=MOST_BYTES)] = 0
    processors_per_node: Annotated[int, Field(ge=0, le=MOST_CORES)] = 0


class Torus(_Network):
    topology: Literal["torus"]
    link_bytes_per_s: Rate
    parallel_links: Annotated[
        list[Links], Field(min_length=3, max_length=3, description="three numbers from 1 to 16, for x, y and z")
    ] = [1, 1, 1]


class Direct(_Network):
    topology: Literal["direct"]
    link_bytes_per_s: Annotated[
        list[Rate],
        Field(min_length=1, max_length=MOST_RAILS, description=f"a list of 1 to {MOST_RAILS} rates, of each rail"),
    ]


_FILE = pydantic.TypeAdapter(Annotated[Torus | Direct, Field(discriminator="topology")])
_KINDS: dict[str, type[_Network]] = {"torus": Torus, "direct": Direct}
KEYS = tuple(dict.fromkeys([*Torus.model_fields, *Direct.model_fields]))


def checked(values, path):
    """The model of these values, a dict with all defaults. Raises UserError that names the key, its value and what
    would be right."""
    if not isinstance(values, dict):
        raise UserError(f"{path}: a model is a JSON object with the keys {', '.join(KEYS)}")
    try:
        return _FILE.validate_python(values).model_dump()
    except pydantic.ValidationError as error:
        found = sorted(error.errors(), key=lambda each: each["type"] != "extra_forbidden")  # a typo lacks a key, too
        raise UserError(f"{path}: {_problem(values, found[0])}") from error


def limits(name):
    """(lowest, highest) of a parameter that is a number."""
    wanted = Direct.model_json_schema()["properties"][name]
    return wanted["minimum"], wanted["maximum"]


def schema():
    """The JSON schema of a model file, as a text."""
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A network model of shmem-mt simulate"}
    return json.dumps({**about, **_FILE.json_schema()}, indent=2, sort_keys=True) + "\n"


def _problem(values, error):
    """What pydantic found, in words."""
    if error["type"].startswith("union_tag"):
        return f"topology {_shown(values, 'topology')}: it must be direct or torus"
    kind, key, *places = error["loc"]
    if error["type"] == "extra_forbidden":
        if key in KEYS:
            return f"{key} is of a torus; a direct network has a rate for each rail in link_bytes_per_s"
        return f"no parameter is called {key}; did you mean {difflib.get_close_matches(key, KEYS, 1, 0)[0]}?"
    wanted = _KINDS[kind].model_json_schema()["properties"][key]
    if not places:
        return f"{key} {_shown(values, key)}: it must be {_words(wanted)}"
    return f"{key}[{places[0]}] {_short(error['input'])}: it must be {_words(wanted['items'])}"


def _words(wanted):
    """What a part of the JSON schema asks for."""
    if "description" in wanted:
        return wanted["description"]
    if "enum" in wanted:
        return " or ".join(wanted["enum"])
    if wanted["type"] == "string":
        longest = wanted.get("maxLength")
        return f"a text of {wanted['minLength']} to {longest} characters" if longest else "a text"
    kind = {"number": "a number", "integer": "a whole number"}[wanted["type"]]
    return f"{kind} from {wanted['minimum']:g} to {wanted['maximum']:g}"


def _shown(values, key):
    return _short(values[key]) if key in values else "is missing"


def _short(value):
    return json.dumps(value)[:60]


if __name__ == "__main__":
    with open(SCHEMA, "w", encoding="utf-8") as file:
        file.write(schema())
