"""The manual pages: each function has one, they are well-formed, their links lead somewhere, their examples run, and
what they say of settings and options is what the programs say."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["HEDDLE_TEST_BUILD"])
PAGES = BUILD / "share/man"
STANDARD, EXTENSIONS = 1788, 1466  # functions of the tables, see docs/coverage.md
ENDED = re.compile(r"\\f[BIP]")


def run(*command, **rest):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, **rest)


def out(*command):
    done = run(*command)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stderr}"
    return done.stdout


def is_link(text):
    return text.startswith(".so ")


TEXTS = {path.relative_to(PAGES): path.read_text() for path in sorted(PAGES.glob("man*/*"))}
REAL = {path: text for path, text in TEXTS.items() if not is_link(text)}
TABLES = {name: tomllib.loads((ROOT / f"api/{name}.toml").read_text()) for name in ("openshmem", "shmemx")}
# of the families that are current: the page that has a family is found by its prototype
FAMILIES = [(name, family) for name, table in TABLES.items() for section in table["section"]
            for family in section["family"]]


def page_of(name):
    """The page that `man 3 NAME` shows."""
    text = TEXTS.get(Path(f"man3/{name}.3"), "")
    return TEXTS[Path(text.split()[1])] if is_link(text) else text


def described(text):
    """A pattern of the functions whose prototypes a page has."""
    names = re.findall(r"^\.Fo (\w+)$", text, re.M) + re.findall(r"^(?:\w[\w ]*[ *])(\w+)\(", text, re.M)
    return re.compile("|".join(name.replace("TYPENAME", "[a-z0-9]+").replace("SIZE", r"\d+") for name in names))


@pytest.mark.parametrize("table,count", [("openshmem", STANDARD), ("shmemx", EXTENSIONS)])
def test_every_function_is_on_the_page_of_its_name(table, count):
    names = out(sys.executable, "-B", ROOT / "api/generate.py", "--list", table).split()
    assert len(names) == count
    patterns = {}
    for name in names:
        text = page_of(name)
        assert text, f"there is no page {name}(3)"
        if text not in patterns:
            patterns[text] = described(text)
        assert patterns[text].fullmatch(name), f"the page of {name} has no prototype of it"


def test_every_generic_name_has_a_page_that_explains_it():
    for _, family in FAMILIES:
        if "generic" in family:
            text = page_of(family["generic"])
            assert f".Fo {family['name']}\n" in text or f"{family['name']}(" in text, family["generic"]


def test_links_lead_to_pages():
    for path, text in TEXTS.items():
        if is_link(text):
            assert re.fullmatch(r"\.so man\d/[\w+-]+\.\d\n", text), path
            assert Path(text.split()[1]) in REAL, f"{path}: {text}"
    for path, text in REAL.items():
        for name, section in re.findall(r"^\.(?:Xr|Pq Xr) (\S+) (\d)", text, re.M):
            if name not in ("gdb", "pkg-config"):
                assert Path(f"man{section}/{name}.{section}") in TEXTS, f"{path}: {name}({section})"


def test_pages_are_well_formed():
    if not shutil.which("mandoc"):
        pytest.skip("no mandoc on this machine")
    done = run("mandoc", "-T", "lint", "-W", "warning", *REAL, cwd=PAGES)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_groff_has_nothing_to_say():
    if not shutil.which("groff"):
        pytest.skip("no groff on this machine")
    done = run("groff", "-mandoc", "-Tutf8", "-w", "w", "-z", *REAL, cwd=PAGES)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_man_shows_a_page_by_the_name_of_a_function():
    if not shutil.which("man"):
        pytest.skip("no man on this machine")
    environment = {**os.environ, "MANWIDTH": "100", "MANPAGER": "cat", "LC_ALL": "C.UTF-8"}
    done = run("man", "-M", PAGES, "shmem_ctx_longdouble_put_nbi", env=environment)
    assert done.returncode == 0 and "SHMEM_PUT_NBI(3)" in done.stdout, done.stderr


def parts(text):
    """The sections of a page, by their names."""
    pieces = re.split(r"^\.Sh (.*)$", text, flags=re.M)
    return dict(zip(pieces[1::2], pieces[2::2]))


@pytest.mark.parametrize("path", [path for path in REAL if path.parent.name == "man3"], ids=lambda path: path.stem)
def test_page_of_functions_is_complete(path):
    said = parts(REAL[path])
    for wanted in ("NAME", "SYNOPSIS", "DESCRIPTION", "THREADS", "EXAMPLES", "ERRORS", "SEE ALSO", "STANDARDS"):
        assert said.get(wanted, "").strip(), f"{path}: {wanted}"
    assert ".Ss Undefined" in said["ERRORS"]
    assert not re.search(r"\b(Threads|Errors|Results): |docs/", REAL[path].split(".Sh SEE ALSO")[0] + said["STANDARDS"])
    results = re.findall(r"^\.Ft (.*)$", said["SYNOPSIS"], re.M)
    assert ("RETURN VALUES" in said) == any(result != "void" for result in results)
    arguments = {re.sub(r"\[\]$", "", word).strip('"').split()[-1].lstrip("*")
                 for word in re.findall(r"^\.Fa (.*)$", said["SYNOPSIS"].replace("[]", ""), re.M)} - {"void", "..."}
    explained = set(re.findall(r"^\.It Fa (\w+)$", said["DESCRIPTION"], re.M))
    assert arguments == explained
    lines = said["EXAMPLES"].count("\n") - 2
    assert 3 <= lines <= 24, f"{path}: an example of {lines} lines"


def test_page_names_the_section_of_the_standard():
    for table, family in FAMILIES:
        stem = re.sub("TYPENAME", "long", family["name"]).replace("SIZE", "64")
        names = stem, stem.replace("_long_", "_uint64_"), stem.replace("_long_", "_short_")
        text = next(filter(None, map(page_of, names)))
        said = " ".join(parts(text)["STANDARDS"].split())
        if table == "shmemx":
            assert said.startswith("An extension of Heddle"), family["name"]
        elif "section" in family:
            assert re.search(rf"(?<![\d.]){re.escape(family['section'])}(?![.\d]*\d)", said), family["name"]
        else:
            assert "annex F" in said, family["name"]


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The examples: one program that calls each, and those that are programs themselves."""
    folder = tmp_path_factory.mktemp("examples")
    sources = sorted((ROOT / "api/examples").glob("*.c"))
    together = [source for source in sources if "main(void)" not in source.read_text()]
    names = [name for source in together for name in re.findall(r"^void (\w+)\(void\) \{$", source.read_text(), re.M)]
    calls = "".join(f"    {name}();\n    shmem_barrier_all();\n" for name in names)
    declared = "".join(f"void {name}(void);\n" for name in names)
    (folder / "main.c").write_text(
        f"#include <shmem.h>\n#include <stdio.h>\n{declared}int main(void) {{\n    shmem_init();\n{calls}"
        f'    if (shmem_my_pe() == 0)\n        puts("{len(names)} examples");\n    shmem_finalize();\n}}\n')
    flags = ["-std=gnu11", "-O0", "-fopenmp", "-Wall", "-Wextra", "-Werror"]
    done = run(BUILD / "bin/oshcc", *flags, folder / "main.c", *together, "-o", folder / "together")
    assert done.returncode == 0, done.stderr
    for source in sources:
        if source not in together:
            done = run(BUILD / "bin/oshcc", *flags, source, "-o", folder / source.stem)
            assert done.returncode == 0, done.stderr
    return folder, len(names)


@pytest.mark.parametrize("pes,settings", [(1, {}), (2, {}), (3, {"HEDDLE_CHECK": "1"}), (5, {"HEDDLE_CHAOS": "7"})])
def test_examples_run(programs, pes, settings):
    folder, count = programs
    done = run(BUILD / "bin/oshrun", "-n", pes, folder / "together",
               env={**os.environ, "SHMEM_SYMMETRIC_SIZE": "16M", **settings})
    assert done.returncode == 0, done.stderr
    assert f"{count} examples" in done.stdout and count > 90


def test_examples_that_are_programs_run(programs):
    folder, _ = programs
    said = out(BUILD / "bin/oshrun", "-n", 2, folder / "program_start")
    assert sorted(said.splitlines()) == ["PE 0 of 2", "PE 1 of 2"]
    out(folder / "program_unique_id")


def test_settings_are_those_of_the_library():
    rows = re.findall(r"^\| `(\w+)`(?: \(or `(\w+)`\))? \| (.*?) \| (.*) \|$",
                      out(BUILD / "bin/heddle-info", "--settings-markdown"), re.M)
    text = parts(REAL[Path("man7/heddle.7")])["ENVIRONMENT"]
    items = re.findall(r"^\.It Ev (\w+)(?: \(or (\w+)\))?\n((?:(?!\.It|\.El).*\n)*)", text, re.M)
    assert [(name, old) for name, old, _ in items] == [(name, old) for name, old, _, _ in rows]
    for (name, _, said), (_, _, default, meaning) in zip(items, rows):
        words = " ".join(said.replace(r"\%", "").replace(r"\-", "-").split())
        assert words.startswith(meaning), name
        wanted = f"One of {default}; by default {default.split(', ')[0]}." if ", " in default else (
            f"By default {default}." if default else "By default empty.")
        assert words.endswith(wanted), name


def words_of(lines):
    """The options that begin lines of a help."""
    return {word for line in lines for word in re.findall(r"(?<![\w-])-{1,2}\w[\w:-]*", line)}


def documented(page):
    """The options of a page's lists, by the names of its subsections."""
    pieces = re.split(r"^\.S[sh] (.*)$", REAL[page], flags=re.M)
    return {name: words_of(ENDED.sub("", line.replace(r"\-", "-")) for line in re.findall(r"^\.It (.*)$", body, re.M))
            for name, body in zip(pieces[1::2], pieces[2::2])}


@pytest.mark.parametrize("program", ["oshrun", "oshcc", "heddle-info"])
def test_options_are_those_of_help(program):
    text = out(BUILD / "bin" / program, "--help")
    heads = [re.match(r"  (-.*?)(?:  |$)", line).group(1) for line in text.splitlines() if re.match("  -", line)]
    assert documented(Path(f"man1/{program}.1"))["Options"] == words_of(heads)


def test_options_of_the_suite_are_those_of_its_parser():
    sys.path.insert(0, str(ROOT / "shmem-mt"))
    cli = pytest.importorskip("shmem_mt.cli")
    parser = cli.build_parser()
    said = documented(Path("man1/shmem-mt.1"))

    def options(one):
        shown = [action for action in one._actions if action.help != argparse.SUPPRESS]
        return {name for action in shown for name in action.option_strings}

    assert said["Options"] == options(parser)
    commands = next(action.choices for action in parser._actions if isinstance(action.choices, dict))
    assert len(commands) == 8
    for name, own in commands.items():
        # an option that the text of another one names is in both
        assert options(own) <= said[name], name


@pytest.mark.parametrize("file,before,after,wanted", [
    ("api/openshmem.toml", 'shmem_g = "load', 'shmem_h = "load', "shmem_TYPENAME_g is on no page"),
    ("api/openshmem.toml", 'bsize = "number', 'bsiz = "number', "shmem_ibput: nothing says what bsize is"),
    ("api/examples/rma.c", "/* == shmem_iput == */", "", "the page shmem_iput has no example"),
    ("api/examples/rma.c", "== shmem_iput ==", "== shmem_iputt ==", "shmem_iputt is no page"),
    ("src/base/settings.def", "CHOICE(Protocol, net_protocol,", "CHOICE(Protocol, net_protocol, 0,", "are understood"),
])
def test_what_a_table_lacks_is_said(tmp_path, file, before, after, wanted):
    for name in ("api", "include", "src/base", "src/bootstrap", "launcher", "tools", "shmem-mt/shmem_mt"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    text = (tmp_path / file).read_text()
    assert before in text
    (tmp_path / file).write_text(text.replace(before, after))
    done = run(sys.executable, "-B", tmp_path / "api/man_pages.py", tmp_path / "out")
    assert done.returncode == 1 and wanted in done.stderr and "Traceback" not in done.stderr, done.stderr
