"""The record in parts: what one build of the library has shown, a line for each program. A long record is made of many
parts, by several builds and machines; a seed that one part has of a program counts once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from jobs import Outcome


@dataclass(frozen=True)
class Part:
    """The jobs of one program, with the seeds `first` to `last`. The sums called `normal` and `chaos` are of the
    `compared` seeds that ran both ways: [wall seconds, CPU seconds]; `chaos_seconds` are of all jobs with chaos."""

    key: str
    commit: str
    first: int
    last: int
    pes: list[int]
    failures: list[dict[str, int | str]]
    compared: int
    normal: list[float]
    chaos: list[float]
    chaos_seconds: float

    @property
    def seeds(self) -> int:
        return self.last - self.first + 1


def _sums(outcomes: Iterable[Outcome]) -> list[float]:
    listed = list(outcomes)
    return [round(sum(each.seconds for each in listed), 3), round(sum(each.cpu_seconds for each in listed), 3)]


def part_of(key: str, outcomes: list[Outcome], commit: str) -> Part | None:
    """Of the longest run of seeds from the first on without a gap; None where no job had chaos."""
    chaos = {each.seed: each for each in outcomes if each.chaos}
    normal = {each.seed: each for each in outcomes if not each.chaos}
    if not chaos:
        return None
    first = last = min(chaos)
    while last + 1 in chaos:
        last += 1
    kept = [chaos[seed] for seed in range(first, last + 1)]
    both = [each for each in kept if each.seed in normal]
    failures = [{"seed": each.seed, "pes": each.pes, "failure": each.failure} for each in kept if each.failure]
    return Part(key, commit, first, last, sorted({each.pes for each in kept}), failures, len(both),
                _sums(normal[each.seed] for each in both), _sums(both), round(sum(each.seconds for each in kept), 3))


def parts_of(outcomes: list[Outcome], commit: str) -> list[Part]:
    found: dict[str, list[Outcome]] = {}
    for each in outcomes:
        found.setdefault(each.key, []).append(each)
    return [part for key, jobs in found.items() if (part := part_of(key, jobs, commit))]


def read(path: Path) -> list[Part]:
    return [Part(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def add(path: Path, new: Iterable[Part]) -> None:
    """Writes the parts behind those that are there. Raises ValueError where a seed of a program is there already."""
    parts = read(path)
    for part in new:
        for other in parts:
            if other.key == part.key and part.first <= other.last and other.first <= part.last:
                raise ValueError(f"{path}: seeds {part.first} to {part.last} of '{part.key}' overlap the part of "
                                 f"{other.commit} with {other.first} to {other.last}; run later ones")
        parts.append(part)
    path.write_text("".join(json.dumps(asdict(part)) + "\n" for part in parts))
