#!/usr/bin/env python3
"""Runs ruff (ruff.toml) or mypy (mypy.ini) over the Python files here.

    python_lint.py ROOT ruff|mypy    exit 0: nothing found; 1: findings, each with its place; 77: there is no such tool
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys

ARGUMENTS = {"ruff": ["check", "--no-cache", "--output-format=concise"], "mypy": ["--cache-dir=/dev/null"]}


def main() -> int:
    root, tool = sys.argv[1:]
    if not importlib.util.find_spec(tool):
        print(f"skipped: there is no {tool}: pip install 'shmem-mt/[test]'")
        return 77
    return subprocess.run([sys.executable, "-m", tool, *ARGUMENTS[tool]], cwd=root, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
