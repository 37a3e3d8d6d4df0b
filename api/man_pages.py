#!/usr/bin/env python3
"""Writes the manual pages from the tables of this folder, its examples and texts, and the code's own tables.

    man_pages.py FOLDER    FOLDER/man1, man3 and man7, which are removed first; exit 1 with a sentence where a table
                           lacks something
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import function_pages  # noqa: E402  behind the line above, which keeps the source tree clean
import program_pages  # noqa: E402
from generate import ROOT  # noqa: E402

DATE = "November 28, 2026"  # of the last change of these pages' texts


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    vendor = re.search(r'SHMEM_VENDOR_STRING "([^"]+)"', (ROOT / "include/heddle/constants.h").read_text())
    assert vendor
    for section in (1, 3, 7):
        shutil.rmtree(folder / f"man{section}", ignore_errors=True)
    try:
        pages = function_pages.write(folder, DATE, vendor.group(1))
        program_pages.write(folder, pages, DATE, vendor.group(1))
    except function_pages.PageError as error:
        print(f"api/man_pages.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
