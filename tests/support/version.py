"""Heddle's version, as CMakeLists.txt has it."""

import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
VERSION = re.search(r"project\(heddle VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]
