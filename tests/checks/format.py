#!/usr/bin/env python3
"""Checks that all tracked C and C++ files, apart from the generated ones, are as .clang-format wants them.

    format.py ROOT [--fix]    exit 0: they are; 1: not; 77: there is no clang-format-19 (other versions differ)
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from source_rules import is_generated, tracked

PROGRAM = "clang-format-19"


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    if not shutil.which(PROGRAM):
        print(f"skipped: there is no {PROGRAM}")
        return 77
    files = [file for file in tracked(root) if file.suffix in (".c", ".cpp", ".h", ".hpp")
             and not is_generated(file.read_text(errors="replace"))]
    how = ["-i"] if "--fix" in sys.argv[2:] else ["--dry-run", "-Werror", "--ferror-limit=3"]
    return subprocess.run([PROGRAM, *how, *files], cwd=root).returncode != 0


if __name__ == "__main__":
    sys.exit(main())
