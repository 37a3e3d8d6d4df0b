"""Each program of docs/finding-bugs.md has a mistake. On a node it prints the right answer, also in a checked run.
Under chaos it prints a wrong one, with one of the seeds 1 to 100. Compiled by oshcc -fheddle-races, it has the race
that the page tells. Cured, it is right in every place and with every seed.

FINDING_BUGS_SEEDS=N: the seeds with which the cured programs run, at least."""

import os
import pathlib
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"]).resolve()
PAGE = HERE.parents[1] / "docs/finding-bugs.md"
NAMES = sorted(source.stem for source in HERE.glob("*.c"))
SEEDS = int(os.environ.get("FINDING_BUGS_SEEDS", "3"))
MOST_SEEDS = 100
PES = 4
LIMIT_S = 120  # of a job that hangs

STATUS_RACES = 66
RACE_RUNS = 40  # of a mistake whose report needs the PEs to come in some order
MESSAGES = {"19_free_while_putting": "symmetric heap that is not allocated: it was freed"}

mistakes = pytest.mark.parametrize("name", NAMES)


def run(name, pes=PES, folder=BUILD / "tests/finding_bugs", **settings):
    command = [BUILD / "bin/oshrun", "-n", str(pes), folder / f"finding_bugs_{name}"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S,
                          check=False, env={**os.environ, "SHMEM_SYMMETRIC_SIZE": "4M", **settings})


def answers(result):
    """Whether each answer that a job has printed is the right one, in a list."""
    numbers = [(re.findall(r"-?\d+", line)[-2:]) for line in result.stdout.splitlines()]
    return [len(pair) == 2 and pair[0] == pair[1] for pair in numbers]


def is_right(result):
    said = answers(result)
    return result.returncode == 0 and result.stderr == "" and bool(said) and all(said)


def is_wrong(name, result):
    """A wrong answer, and the status that says so; or the message that the mistake may lead to, and no other end."""
    message = next((line for line in result.stderr.splitlines() if line.startswith("heddle [")), None)
    if message:
        return result.returncode == 1 and MESSAGES.get(name, "none") in message
    return result.returncode == 1 and not all(answers(result))


def chaos(seed):
    return {"HEDDLE_CHAOS": str(seed)}


def test_there_are_twenty():
    assert len(NAMES) == 20 and [name[:2] for name in NAMES] == [f"{i:02}" for i in range(1, 21)]


def test_the_page_has_them():
    """A section for each, in their order, and code that is in the program."""
    text = PAGE.read_text()
    sections = re.findall(r"^## (\d+)\. [^\n]+\n(.*?)(?=^## |\Z)", text, flags=re.S | re.M)
    assert [f"{int(number):02}" for number, _ in sections] == [name[:2] for name in NAMES]
    for name, (_, body) in zip(NAMES, sections, strict=True):
        assert f"(../tests/finding_bugs/{name}.c)" in body, name
        source = [line.strip() for line in (HERE / f"{name}.c").read_text().splitlines()]
        blocks = re.findall(r"^```c\n(.*?)^```$", body, flags=re.S | re.M)
        assert blocks, name
        for block in blocks:
            lines = [line.strip() for line in block.splitlines()]
            assert any(source[i:i + len(lines)] == lines for i in range(len(source))), f"{name} has not:\n{block}"


@pytest.mark.parametrize("check", ["0", "1"], ids=["plain", "checked"])
@pytest.mark.parametrize("suffix", ["", "_cured"], ids=["mistaken", "cured"])
@mistakes
def test_on_the_node(name, suffix, check):
    for pes in (3, PES, 7):
        result = run(name + suffix, pes, HEDDLE_CHECK=check)
        assert is_right(result), result


@pytest.mark.skipif(not (BUILD / "lib/libheddle_ucx.so").exists(), reason="libheddle_ucx.so has not been built")
@mistakes
def test_cured_across_nodes(name):
    result = run(name + "_cured", HEDDLE_TEST_PES_PER_NODE="1", HEDDLE_NET_TRANSPORTS="tcp")
    assert is_right(result), result


@mistakes
def test_under_chaos(name):
    """Caught within 100 seeds; cured, right with all seeds up to the one that has caught it."""
    for seed in range(1, MOST_SEEDS + 1):
        result = run(name, **chaos(seed))
        if not is_right(result):
            break
    assert is_wrong(name, result), f"seed {seed}: {result}"
    for cured_seed in range(1, max(seed, SEEDS) + 1):
        cured = run(name + "_cured", **chaos(cured_seed))
        assert is_right(cured), f"seed {cured_seed}: {cured}"


def races_of(result):
    """The accesses without their places, and what is missing, whatever the PEs."""
    found = re.findall(r" race: (.*?) \((?:called )?at .*?, which (.*?) \((?:called )?at .*; missing: (.*)",
                       result.stderr)
    return {(" and ".join(sorted(sides)), re.sub(r"PE \d+", "a PE", missing)) for *sides, missing in found}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The programs, which tell of their loads and stores."""
    folder = tmp_path_factory.mktemp("told")

    def compile_one(name, suffix, options):
        subprocess.run([BUILD / "bin/oshcc", "-fheddle-races", "-g", "-O2", *options, HERE / f"{name}.c", "-o",
                        folder / f"finding_bugs_{name}{suffix}"], check=True, timeout=LIMIT_S)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(compile_one, name, suffix, options) for name in NAMES
                     for suffix, options in (("", []), ("_cured", ["-DCURED"]))]:
            done.result()
    return folder


@mistakes
def test_races(told, name):
    """As the page says; cured, none."""
    section = re.search(rf"^## {int(name[:2])}\. .*?^Races: (.*?)^The cure", PAGE.read_text(), flags=re.S | re.M)
    said = " ".join(section[1].replace("`", "").split())
    for _ in range(RACE_RUNS):
        result = run(name, folder=told, HEDDLE_RACES="1")
        found = [f"{sides}; missing: {missing}." for sides, missing in races_of(result)]
        if said in found:
            break
    assert result.returncode == STATUS_RACES, result
    assert said in found, (said, result)
    for _ in range(3):
        cured = run(name + "_cured", folder=told, HEDDLE_RACES="1")
        assert is_right(cured), cured
