"""Leaves a file when the launcher is gone."""

import os

import pe

pe.up()
os.read(int(os.environ["HEDDLE_LIFELINE_FD"]), 1)
open(f"end.{pe.number}", "w").close()
os._exit(0)
