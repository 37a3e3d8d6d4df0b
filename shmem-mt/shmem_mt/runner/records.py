"""What the files of a run folder hold, as types that what is read is checked by.

`python3 -m shmem_mt.runner.records` prints them as a JSON schema, which run_folder.schema.json beside this file is: a
property a file, and JSON lines as an array. What a type does not name is kept as it is, for later versions name more.
"""

import json
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError, WithJsonSchema, with_config
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict  # pydantic wants it of Python 3.11

from shmem_mt.targets import fabrics

_SHOWN = 60  # characters of a wrong value in a message


def _check_params(params):
    if not isinstance(params.get("op"), str):
        raise PydanticCustomError("suite", "params is not an object with an op")
    if not fabrics.named(params.get("fabric", fabrics.ON_NODE.name)):
        raise PydanticCustomError("suite", "params.fabric {fabric} is no fabric", {"fabric": repr(params["fabric"])})
    return params


# The descriptions stand in the schema, and in messages behind "not".
Text = Annotated[str, Field(description="text")]
TextOrNull = Annotated[str | None, Field(description="text or null")]
Number = Annotated[float, Field(description="a number")]
NumberOrNull = Annotated[float | None, Field(description="a number or null")]
Numbers = Annotated[list[float], Field(description="a list of numbers")]
Count = Annotated[int, Field(ge=0, description="a whole number from 0 on")]
CountOrNull = Annotated[int | None, Field(ge=0, description="a whole number or null")]
Counts = Annotated[list[Annotated[int, Field(ge=0)]], Field(description="a list of whole numbers")]
Flag = Annotated[bool, Field(description="true or false")]
FlagOrNull = Annotated[bool | None, Field(description="true, false or null")]
Object = Annotated[dict[str, Any], Field(description="an object")]
Texts = Annotated[list[str], Field(description="a list of texts")]
_two = Field(min_length=2, max_length=2)
Pairs = Annotated[list[Annotated[list[float], _two]], Field(description="a list of pairs of numbers")]
CountPairs = Annotated[list[Annotated[list[int], _two]], Field(description="a list of pairs of whole numbers")]
_PARAMS = {"type": "object", "required": ["op"], "properties": {"op": {"type": "string"}, "fabric": {"type": "string"}}}
Params = Annotated[
    dict[str, str | int | float | bool | None],
    AfterValidator(_check_params),
    WithJsonSchema(_PARAMS | {"description": "an object of texts, numbers and flags with an op"}),
]

_record = with_config(ConfigDict(extra="allow", strict=True, allow_inf_nan=False))


class _Point(TypedDict):
    """What results and raw points have in common."""

    benchmark: Text
    params: Params
    label: Text
    metric: Text
    unit: Text
    samples: Annotated[list[float], Field(min_length=1, description="a list of numbers")]
    valid: FlagOrNull  # null: nothing was checked
    why: NotRequired[Text]
    start_spread_s: NotRequired[NumberOrNull]
    staggered: NotRequired[Flag]
    binding: NotRequired[Text]
    clock_error_s: NotRequired[Number]
    preempted: NotRequired[Count]  # involuntary context switches of the PEs, which sched_yield may add to
    origin_cores: NotRequired[Number]  # that a PE of the lower half, which sends, kept busy: CPU time by time
    target_cores: NotRequired[Number]  # and one of the upper half
    voluntary_switches_per_s: NotRequired[Number]  # of the thread that is timed
    involuntary_switches_per_s: NotRequired[Number]


@_record
class RawPoint(_Point):
    """A point of one program start, as the program printed it."""

    round: Count
    checked_bytes: NotRequired[Count]
    operations_per_sample: NotRequired[Count]
    windows: NotRequired[Count]
    late_windows: NotRequired[Count]
    durations_ns: NotRequired[CountPairs]  # the shortest of a bucket, and how many it counts
    longest_s: NotRequired[Number]


@_record
class Durations(TypedDict):
    """Seconds of single operations; null where few operations lie beyond."""

    operations: Count
    p50: NumberOrNull
    p99: NumberOrNull
    p999: NumberOrNull
    max: Number


@_record
class Result(_Point):
    """A point of all its starts. The numbers in round_sizes add up to that of the samples, and rounds has as many."""

    median: Number
    interval: NotRequired[Annotated[list[float], _two, Field(description="a list of two numbers")]]
    confidence: NotRequired[NumberOrNull]  # null: the interval is a range
    starts: NotRequired[Count]
    round_sizes: NotRequired[Counts]
    rounds: NotRequired[Counts]
    operations_per_sample: NotRequired[Annotated[list[int | None], Field(description="a list of counts by round")]]
    durations: NotRequired[Annotated[Durations, Field(description="an object of quantiles")]]
    modes: NotRequired[Pairs]  # each a value and the share that it has


@_record
class Job(TypedDict):
    """A program start that has ended."""

    key: Text
    status: NotRequired[Text]
    seconds: NotRequired[Number]
    points: NotRequired[Count]
    results: NotRequired[Texts]
    problem: NotRequired[Text]
    verdicts: NotRequired[Annotated[list[dict[str, Any]], Field(description="a list of objects")]]
    tuned: NotRequired[Annotated[list[dict[str, Any]], Field(description="a list of objects")]]


@_record
class Facts(TypedDict, total=False):
    """Of a machine; null where they could not be found out."""

    cpu: TextOrNull
    cpu_family_model: TextOrNull
    cores: Annotated[int, Field(ge=1, description="a whole number from 1 on")]
    threads_per_core: CountOrNull
    smt: FlagOrNull
    virtual: FlagOrNull
    caches: Annotated[dict[str, str] | None, Field(description="an object of texts")]
    microcode: TextOrNull
    numa_nodes: CountOrNull
    governor: TextOrNull
    boost: TextOrNull
    huge_pages: TextOrNull
    mitigations: CountOrNull
    cpu_quota: NumberOrNull
    memory_bytes: CountOrNull
    kernel: TextOrNull
    os: TextOrNull
    environment: Annotated[dict[str, str], Field(description="an object of texts")]
    load_at_start: NumberOrNull
    steal_share: NumberOrNull
    others_share: NumberOrNull
    hand_over_s: Numbers  # of a line from core to core, once a round


@_record
class HostFacts(TypedDict, total=False):
    """Of a host that PEs were put on; null where they could not be found out."""

    name: Text
    cpu: TextOrNull
    cores: CountOrNull  # hardware threads
    kernel: TextOrNull
    memory_bytes: CountOrNull
    governor: TextOrNull


@_record
class Library(TypedDict, total=False):
    """An implementation that was measured."""

    label: Text
    version: TextOrNull
    compiler: TextOrNull
    standard: TextOrNull
    digest: TextOrNull
    oshcc: TextOrNull
    oshrun: TextOrNull


@_record
class Machine(TypedDict, total=False):
    """The machine, the implementations and the settings of a run."""

    machine: Annotated[Facts, Field(description="an object")]  # of the host that the driver ran on
    hosts: Annotated[list[HostFacts], Field(description="a list of objects")]  # of PEs, where there are several
    hosts_differ: Annotated[list[str], Field(description="a list of texts")]  # in these facts
    programs: Text  # a digest of their sources
    implementations: Annotated[list[Library], Field(description="a list of objects")]
    settings: Object
    shmem_mt: Text  # the version


def _adds_up(point):
    sizes = point.get("round_sizes")
    if sizes is not None and sum(sizes) != len(point["samples"]):
        raise PydanticCustomError("suite", "round_sizes does not add up to the samples")
    if "rounds" in point and len(point["rounds"]) != len(sizes or [0]):
        raise PydanticCustomError("suite", "rounds and round_sizes are not of one length")
    return point


_ADAPTERS: dict[str, TypeAdapter] = {
    "results.jsonl": TypeAdapter(Annotated[Result, AfterValidator(_adds_up)]),
    "raw.jsonl": TypeAdapter(RawPoint),
    "jobs.jsonl": TypeAdapter(Job),
    "machine.json": TypeAdapter(Machine),
}


def parse(name, text):
    """The object that a line of the file of that name holds, or the whole file. Raises ValueError that says what is
    wrong."""
    try:
        return _ADAPTERS[name].validate_json(text)
    except ValidationError as error:
        raise ValueError(_in_words(error.errors(include_url=False), _ADAPTERS[name].json_schema())) from error


def _in_words(errors, schema):
    """What is wrong, in the words of the schema's descriptions; what is missing comes first."""
    error = next((one for one in errors if one["type"] == "missing"), errors[0])
    if error["type"] == "suite":
        return error["msg"]
    if error["type"] == "missing":
        return f"has no {'.'.join(map(str, error['loc']))}"
    if error["type"] == "json_invalid":
        return f"not JSON ({error['ctx']['error']})"
    if not error["loc"]:
        return "not a JSON object"
    names: list[str] = []
    told, at = "", schema
    for step in error["loc"]:
        at = at.get("items", {}) if isinstance(step, int) else at.get("properties", {}).get(step, {})
        if "description" in at:
            names, told = [*names, str(step)], at["description"]
        at = {**schema.get("$defs", {}).get(at.get("$ref", "").rpartition("/")[2], {}), **at}
    name, value = ".".join(names), error["input"]
    if len(names) < len(error["loc"]) or isinstance(value, (dict, list)):
        return f"{name} is not {told}"
    shown = repr(value)
    return f"{name} is {shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + '...'}, not {told}"


class _Untitled(GenerateJsonSchema):
    """A title of a property would be its name again."""

    def field_title_should_be_set(self, schema):
        return False


def schema():
    """The JSON schema of a run folder, {file: contents}."""
    mode: Literal["validation"] = "validation"
    adapters = [(name, mode, adapter) for name, adapter in _ADAPTERS.items()]
    parts, common = TypeAdapter.json_schemas(adapters, schema_generator=_Untitled)
    one = {name: parts[name, mode] for name in _ADAPTERS}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A run folder of SHMEM-MT",
        "type": "object",
        "properties": {n: {"type": "array", "items": s} if n.endswith("l") else s for n, s in one.items()},
        **common,
    }


def _as_text(value, levels, indent=""):
    """JSON with a line for each member of so many levels of objects."""
    if not levels or not isinstance(value, dict):
        return json.dumps(value)
    members = [f'{indent} "{name}": {_as_text(inner, levels - 1, indent + " ")}' for name, inner in value.items()]
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"


if __name__ == "__main__":
    print(_as_text(schema(), 4))
