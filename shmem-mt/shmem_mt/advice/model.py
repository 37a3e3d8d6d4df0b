"""What `shmem-mt advise --json` writes, as types.

`python3 -m shmem_mt.advice.model` prints the JSON schema, which advice.schema.json beside this file is.
"""

import json
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict  # pydantic wants it of Python 3.11

VERSION = 1  # of the schema

Share = Annotated[float, Field(description="a share: 0.05 is 5 %")]
Shares = Annotated[list[float], Field(min_length=2, max_length=2, description="the lower and the upper end, as shares")]
Bytes = Annotated[float | None, Field(ge=0, description="bytes; null: none was found, or too few sizes were measured")]


class Way(TypedDict):
    """A setup that was measured, and how to have it."""

    pes: Annotated[int, Field(ge=1)]
    threads: Annotated[int, Field(ge=1, description="of each PE")]
    context: Annotated[str, Field(description="default, shared, serialized, private, or pool:K")]
    sync: Annotated[str, Field(description="a name of `shmem-mt list`")]
    setting: Annotated[str | None, Field(description="what the library is told; null: nothing")]
    level: Annotated[str | None, Field(description="the thread level that was asked for; null: not recorded")]
    median: Annotated[float, Field(description="of the values of the program starts, in the unit of the pattern")]
    low: float
    high: float
    starts: Annotated[int, Field(ge=1)]
    behind: Annotated[float, Field(description="how many times better the best one is; 1 of the best one")]
    command: Annotated[str, Field(description="a line to paste")]
    environment: Annotated[list[str], Field(description="NAME=VALUE of that command")]
    call: Annotated[list[str], Field(description="lines of C to paste")]


class Loss(TypedDict):
    """What a choice lacks of the best one."""

    way: Way
    share: Share
    interval: Shares
    is_sure: Annotated[bool, Field(description="false: the interval is the range of too few program starts")]


class Pattern(TypedDict):
    """The answer for one pattern of communication, fabric and message size."""

    pattern: str
    size_bytes: Annotated[int, Field(ge=0)]
    fabric: str
    library: Annotated[str, Field(description="the label of the implementation")]
    where: Annotated[dict[str, str], Field(description="what else the points say of where they were measured")]
    metric: Annotated[str, Field(description="throughput: the higher the better; time: the lower")]
    unit: str
    verdict: Literal["best", "cannot tell"]
    why: Annotated[str, Field(description="it cannot be told; empty where it can")]
    best: Annotated[Way, Field(description="where it cannot be told, the one with the best median")]
    second: Way | None
    margin: Annotated[float | None, Field(description="how much better the best is than the second, as a share")]
    interval: Annotated[Shares | None, Field(description="of the margin")]
    within_5_percent: list[Way]
    default_loss: Annotated[
        Loss | None, Field(description="of a PE a core, default context, quiet; null: not measured")
    ]
    worst_common_loss: Annotated[Loss | None, Field(description="the worst of what programs commonly do")]
    changes_at_bytes: Annotated[Bytes, Field(description="from this size on another setup is better")]
    half_bandwidth_bytes: Annotated[Bytes, Field(description="n1/2: the size with half of the highest bandwidth")]
    step_at_bytes: Annotated[Bytes, Field(description="a message of this larger size takes less time")]


class Policy(TypedDict):
    """Which progress policy hides most of an operation behind a computation (the benchmark overlap)."""

    fabric: str
    library: str
    op: str
    size_bytes: int
    verdict: Literal["best", "cannot tell"]
    why: str
    best: str
    margin: float | None
    interval: Shares | None
    within_5_percent: list[str]
    environment: list[str]


Name = Literal["PEs", "threads", "message size", "synchronization"]


class Reply(TypedDict):
    """The short answer to one of the four questions."""

    question: Name
    fabric: str
    library: str
    verdict: Literal["answered", "cannot tell", "not measured"]
    text: str
    evidence: list[str]


class Advice(TypedDict):
    """What some runs advise."""

    schema_version: Annotated[int, Field(ge=1)]
    runs: Annotated[list[str], Field(description="the run folders")]
    questions: list[Reply]
    patterns: list[Pattern]
    policies: list[Policy]


ADAPTER = TypeAdapter(Advice)


def schema():
    """The JSON schema of what --json writes."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **ADAPTER.json_schema()}


if __name__ == "__main__":
    print(json.dumps(schema(), indent=1))
