#!/usr/bin/env python3
"""Checks a Promela model in every state.

    check_model.py MODEL [--define NAME] [--fails]    exit 0: as it should be; 1: not; 77: spin or gcc is missing

The model must hold; with --fails, Spin must find an error in it: a model whose mutants pass proves nothing.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def errors_of(model: Path, define: str | None) -> tuple[int, str]:
    """The number of errors that Spin's verifier found, and its report."""
    with tempfile.TemporaryDirectory() as folder:
        def run(*command):
            return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
        run("spin", *([f"-D{define}"] if define else []), "-a", str(model.resolve()))
        run("gcc", "-O2", "-w", "-DSAFETY", "-o", "pan", "pan.c")
        report = run("./pan", "-m1000000")
    found = re.search(r"errors: (\d+)", report)
    if not found or "search depth too small" in report:
        sys.exit(f"{model.name}: the search did not end:\n{report}")
    return int(found.group(1)), report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--define", help="a variant of the model, such as NO_SEQ_CST")
    parser.add_argument("--fails", action="store_true", help="the variant is a mutant")
    options = parser.parse_args()
    if not shutil.which("spin") or not shutil.which("gcc"):
        print("skipped: needs spin and gcc")
        return 77
    errors, report = errors_of(options.model, options.define)
    states = re.search(r"(\d+) states, stored", report)
    print(f"{options.model.name} {options.define or ''}: {errors} errors, {states.group(1) if states else '?'} states")
    if (errors != 0) == options.fails:
        return 0
    print(report)
    return 1


if __name__ == "__main__":
    sys.exit(main())
