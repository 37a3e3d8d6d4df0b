"""oshrun --chaos, --chaos-runs and --compare-output: the seed reaches all PEs and is told, and the first seed that
fails is found and can be repeated by the command that is printed. The programs are scripts that read HEDDLE_CHAOS; what
the library makes of it is in tests/chaos, what other launchers are told in test_hosts.py."""

import re
import shlex
import signal
import subprocess

import pytest
from test_start import refused

LARGEST = 1_000_000_000
SAY_SEED = 'echo "seed ${HEDDLE_CHAOS-none}"\n'


def seed_of(result):
    """The seed in the last line, which is about it alone."""
    found = re.fullmatch(r"oshrun: chaos seed (\d+) \(HEDDLE_CHAOS=(\d+)\); this job again: .*",
                         result.err.splitlines()[-1])
    assert found and found[1] == found[2], result
    return int(found[1])


def again(result, command="again"):
    """The words of the command that is printed, for a shell."""
    return re.search(rf"^oshrun: .*\b{command}: (.*)$", result.err.splitlines()[-1])[1]


def run_text(oshrun, command):
    """What a shell does with the command."""
    return subprocess.run(["sh", "-c", command], cwd=oshrun.folder, capture_output=True, text=True, timeout=600)


def fails_at(seed, how):
    return f'echo "PE $HEDDLE_PE"\ntest "$HEDDLE_CHAOS" != {seed} || {how}\n'


@pytest.mark.parametrize("pes", [1, 2, 3, 8])
def test_the_seed_reaches_all_pes_and_is_the_last_line(oshrun, shell, pes):
    result = oshrun.run("-n", pes, "--chaos=17", shell("say", SAY_SEED))
    assert result.status == 0 and result.out == "seed 17\n" * pes and len(result.messages) == 1, result
    assert seed_of(result) == 17
    assert shlex.split(again(result)) == [oshrun.path, "--chaos=17", "-n", str(pes), "./say"]


def test_a_seed_is_drawn(oshrun, shell):
    seeds = set()
    for _ in range(4):
        result = oshrun.run("-n", 2, "--chaos", shell("say", SAY_SEED))
        assert result.status == 0 and result.out == f"seed {seed_of(result)}\n" * 2, result
        assert 1 <= seed_of(result) <= LARGEST
        seeds.add(seed_of(result))
    assert len(seeds) > 1, seeds


def test_without_chaos_nothing_is_said(oshrun, shell):
    result = oshrun.run("-n", 2, shell("say", SAY_SEED))
    assert (result.status, result.out, result.err) == (0, "seed none\n" * 2, ""), result


@pytest.mark.parametrize("given,expected", [("0", 17), ("17", 17)])
def test_a_setting_that_agrees(oshrun, shell, monkeypatch, given, expected):
    monkeypatch.setenv("HEDDLE_CHAOS", given)
    result = oshrun.run("-n", 1, "--chaos=17", shell("say", SAY_SEED))
    assert result.status == 0 and result.out == f"seed {expected}\n", result


def test_a_setting_gives_the_seed_that_the_option_does_not(oshrun, shell, monkeypatch):
    monkeypatch.setenv("HEDDLE_CHAOS", "23")
    result = oshrun.run("-n", 1, "--chaos", shell("say", SAY_SEED))
    assert result.out == "seed 23\n" and seed_of(result) == 23, result
    result = oshrun.run("-n", 1, shell("say", SAY_SEED))
    assert (result.out, result.err) == ("seed 23\n", ""), result


@pytest.mark.parametrize("arguments,parts", [
    (["--chaos=0"], ["--chaos=0: the seed must be a whole number from 1 to 1000000000"]),
    (["--chaos=seed"], ["--chaos=seed: the seed must be"]),
    (["--chaos="], ["--chaos=: the seed must be"]),
    (["--chaos=-1"], ["--chaos=-1: the seed must be"]),
    (["--chaos=1000000001"], ["--chaos=1000000001: the seed must be"]),
    (["--chaos", "17"], ["--chaos 17: an equals sign is before the seed: --chaos=17"]),
    (["--choas"], ["unknown option --choas; did you mean --chaos?"]),
    (["--chaos-runs", "0"], ["--chaos-runs 0: the number of jobs must be a whole number from 1"]),
    (["--chaos-runs", "x"], ["--chaos-runs x: the number of jobs"]),
    (["--chaos=1000000000", "--chaos-runs", "2"], ["the last seed would be 1000000001; the largest is 1000000000"]),
    (["--compare-output"], ["--compare-output: there is nothing to compare without --chaos-runs N"]),
    (["--chaos", "--compare-output"], ["--compare-output: there is nothing to compare without --chaos-runs N"]),
    (["--chaos-runs", "2", "--compare-output", "--output-dir", "d"], ["which --output-dir takes: use one of them"]),
    (["--chaos", "-x", "HEDDLE_CHAOS=3"], ["--env HEDDLE_CHAOS=3: --chaos sets it for all PEs: use one of them"]),
])
def test_bad_input(oshrun, arguments, parts):
    refused(oshrun.run(*arguments, "-n", 2, "echo", "started"), 2, *parts)


def test_a_setting_that_differs_is_refused(oshrun, monkeypatch):
    monkeypatch.setenv("HEDDLE_CHAOS", "18")
    refused(oshrun.run("--chaos=17", "-n", 2, "echo", "started"), 2, "--chaos=17: HEDDLE_CHAOS=18 is set here")
    monkeypatch.setenv("HEDDLE_CHAOS", "x")
    refused(oshrun.run("--chaos", "-n", 2, "echo", "started"), 2, "HEDDLE_CHAOS=x: the seed must be a whole number")


def test_chaos_is_no_option_of_a_single_program(oshrun):
    refused(oshrun.run("-n", 1, "true", ":", "-n", 1, "--chaos", "true"), 2, "--chaos behind a ':'", "whole job")


# ---- What is said of a job that ends early

@pytest.mark.parametrize("how", ["option", "setting", "variable"])
def test_a_failure_tells_the_seed(oshrun, shell, monkeypatch, how):
    words = {"option": ["--chaos=5"], "setting": [], "variable": ["-x", "HEDDLE_CHAOS=5"]}[how]
    if how == "setting":
        monkeypatch.setenv("HEDDLE_CHAOS", "5")
    result = oshrun.run("-n", 2, *words, shell("fails", 'test "$HEDDLE_PE" = 0 && exec sleep 600\nexit 3\n'))
    assert result.status == 3, result
    assert re.fullmatch(r"oshrun: PE 1 \(./fails, pid \d+\) exited with status 3; ending the other PE "
                        r"\(HEDDLE_CHAOS=5\)", result.messages[0]), result
    assert len(result.messages) == 1 + (how == "option")


def test_a_timeout_tells_the_seed(oshrun):
    result = oshrun.run("-n", 2, "--chaos=5", "--timeout", 0.2, "sleep", 600)
    assert result.status == 124 and seed_of(result) == 5, result
    assert result.messages[0].endswith("ending it (HEDDLE_CHAOS=5). Its PEs:"), result


def test_programs_of_different_seeds_have_no_seed(oshrun):
    result = oshrun.run("-n", 1, "-x", "HEDDLE_CHAOS=5", "false", ":", "-n", 1, "-x", "HEDDLE_CHAOS=6", "true")
    assert result.status == 1 and "HEDDLE_CHAOS" not in result.err, result


# ---- Many seeds

def test_all_seeds_pass(oshrun, shell, tmp_path):
    shell("note", 'echo "$HEDDLE_CHAOS" >>seeds\necho a\n')
    result = oshrun.run("-n", 2, "--chaos=40", "--chaos-runs", 5, "./note")
    assert result.status == 0 and result.out == "", result
    assert result.messages == ["oshrun: chaos: 5 of 5 seeds ran, from 40 on, and none has failed"], result
    assert (tmp_path / "seeds").read_text().split() == [str(seed) for seed in range(40, 45) for _ in range(2)]


def test_the_first_seed_that_fails_is_repeated_by_its_command(oshrun, shell):
    shell("it's one", fails_at(19, 'exit 7'))
    result = oshrun.run("--chaos=17", "-n", 1, "--chaos-runs=10", "./it's one", "a b", "", "$x", "*")
    assert result.status == 7 and result.out == "PE 0\n", result
    assert result.messages[-2] == ("oshrun: chaos seed 19: the job has failed: it ended with status 7; 3 of 10 seeds "
                                   "ran, from 17 on"), result
    assert shlex.split(again(result)) == [oshrun.path, "--chaos=19", "-n", "1", "./it's one", "a b", "", "$x", "*"]
    repeated = run_text(oshrun, again(result))
    assert repeated.returncode == 7 and repeated.stdout == "PE 0\n", repeated


def test_the_command_has_settings_and_all_programs(oshrun, shell, monkeypatch):
    monkeypatch.setenv("HEDDLE_SPIN_US", "3")
    monkeypatch.setenv("HEDDLE_TEST_SEED", "a b")
    monkeypatch.setenv("A", "x")
    monkeypatch.setenv("HEDDLE_CHAOS", "8")
    shell("one", fails_at(9, "exit 4"))
    result = oshrun.run("-np", 1, "--chaos", "-x", "A=y", "--chaos-runs", 2, "--", "./one", ":", "-n", 1, "./one",
                        "--chaos")
    assert result.status == 4, result
    words = shlex.split(again(result))
    assert sorted(words[:2]) == ["HEDDLE_SPIN_US=3", "HEDDLE_TEST_SEED=a b"]
    assert words[2:] == [oshrun.path, "--chaos=9", "-np", "1", "-x", "A=y", "--", "./one", ":", "-n", "1", "./one",
                         "--chaos"]
    monkeypatch.delenv("HEDDLE_CHAOS")
    assert run_text(oshrun, again(result)).returncode == 4


def test_a_hang_is_a_failure(oshrun, shell):
    shell("hangs", fails_at(2, "exec sleep 600"))
    result = oshrun.run("-n", 2, "--timeout", 2, "--chaos=1", "--chaos-runs", 3, "./hangs")
    assert result.status == 124, result
    assert "oshrun: chaos seed 2: the job has failed: it has not ended in time (--timeout)" in result.err, result
    assert "the job has not ended within 2 s (--timeout); ending it (HEDDLE_CHAOS=2)" in result.err, result


def test_output_that_differs_is_a_failure(oshrun, shell):
    result = oshrun.run("-n", 3, "--chaos=1", "--chaos-runs", 5, "--compare-output",
                        shell("differs", fails_at(3, 'echo "wrong $HEDDLE_PE"')))
    assert result.status == 1, result
    assert sorted(result.out.splitlines()) == [f"{word} {pe}" for word in ("PE", "wrong") for pe in range(3)]
    assert ("oshrun: chaos seed 3: the job has failed: its output differs from that without chaos: 3 lines are new, as "
            "'wrong 0'; 3 of 5 seeds ran, from 1 on") in result.err, result
    result = oshrun.run("-n", 1, "--chaos=1", "--chaos-runs", 5, "--compare-output",
                        shell("other", 'test "$HEDDLE_CHAOS" = 1 && echo one || printf "two\\ntwo\\n"\n'))
    assert "2 lines are missing, as 'two'; 1 line is new, as 'one'" in result.err, result


def test_lines_are_compared_in_any_order_and_as_often_as_they_come(oshrun, shell):
    text = 'if test -n "$HEDDLE_CHAOS"; then printf "b\\na\\na\\n"; else printf "a\\nb\\na\\n"; fi\n'
    result = oshrun.run("-n", 2, "--chaos-runs", 2, "--compare-output", shell("turns", text))
    assert result.status == 0, result
    text = 'if test -n "$HEDDLE_CHAOS"; then printf "b\\nb\\na\\n"; else printf "a\\nb\\na\\n"; fi\n'
    result = oshrun.run("-n", 1, "--chaos-runs", 2, "--compare-output", shell("doubles", text))
    assert result.status == 1 and "1 line is missing, as 'a'; 1 line is new, as 'b'" in result.err, result


def test_no_output_is_compared_as_well(oshrun, shell):
    result = oshrun.run("-n", 1, "--chaos=4", "--chaos-runs", 1, "--compare-output",
                        shell("quiet", 'test -z "$HEDDLE_CHAOS" || echo new\n'))
    assert result.status == 1 and "1 line is new, as 'new'" in result.err, result


def test_a_job_that_fails_without_chaos_ends_it(oshrun, shell):
    result = oshrun.run("-n", 1, "--chaos-runs", 3, "--compare-output",
                        shell("fails", 'echo "seed ${HEDDLE_CHAOS-none}"\nexit 9\n'))
    assert result.status == 9 and result.out == "seed none\n", result
    assert "without chaos the job fails as well: it ended with status 9" in result.messages[-1], result


def test_a_file_is_the_input_of_every_job(oshrun, shell, tmp_path):
    (tmp_path / "input").write_text("first\nsecond\n")
    words = ["-n", 1, "--chaos=1", "--chaos-runs", 3, shell("reads", 'cat >>read\n')]
    with open(tmp_path / "input") as file:
        assert oshrun.run(*words, stdin=file).status == 0
    assert (tmp_path / "read").read_text() == "first\nsecond\n" * 3
    assert oshrun.run(*words, text="piped\n").status == 0
    assert (tmp_path / "read").read_text() == "first\nsecond\n" * 3


def test_each_job_is_told_with_verbose(oshrun, shell):
    result = oshrun.run("-n", 1, "-v", "--chaos=1", "--chaos-runs", 3, shell("fails", fails_at(2, "exit 5")))
    assert result.messages[0] == "oshrun: chaos seed 1: passed", result
    assert result.messages[1] == "oshrun: chaos seed 2: it ended with status 5", result


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_job_and_all_runs(oshrun, program, number):
    process = oshrun.start("-n", 2, "--chaos=1", "--chaos-runs", 3, program("sleeps"))
    oshrun.pids(2)
    process.send_signal(number)
    result = oshrun.finish(process)
    assert result.status == 128 + number, result
    assert len(result.messages) == 2 and result.messages[0].startswith("oshrun: chaos seed 1 "), result
    assert "0 of 3 seeds ran, from 1 on" in result.messages[1], result


def test_sigquit_asks_the_job_that_runs(oshrun, program):
    """The runs go on; what the job answers is not held back."""
    process = oshrun.start("-n", 2, "--chaos=1", "--chaos-runs", 2, program("waits_for_go"))
    oshrun.pids(2)
    process.send_signal(signal.SIGQUIT)
    line = process.stderr.readline().decode()
    assert line.startswith("oshrun: where the PEs are (SIGQUIT)"), line
    (oshrun.folder / "go").touch()
    result = oshrun.finish(process)
    assert result.status == 0 and "2 of 2 seeds ran" in result.messages[-1], result


def test_the_pes_of_many_jobs_have_the_users_signals(oshrun):
    """What oshrun blocks for itself while it waits is not blocked in the PEs of any job. No shell is in between, which
    would unblock it."""
    blocked = oshrun.run("-n", 1, "grep", "SigBlk", "/proc/self/status").out.strip()
    result = oshrun.run("-n", 1, "--chaos-runs", 3, "grep", "-q", blocked, "/proc/self/status")
    assert result.status == 0, result


def test_help_has_the_options(oshrun):
    text = oshrun.run("--help").out
    for option in ("--chaos[=SEED]", "--chaos-runs N", "--compare-output"):
        assert option in text
