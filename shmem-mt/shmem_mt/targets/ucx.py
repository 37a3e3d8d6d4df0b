"""Bare UCX: the ceiling of a library over a network. Its programs are compiled and started by the wrappers of the first
OpenSHMEM library here, which carries the addresses; all that is timed is UCX alone, over the fabric's transports."""

import dataclasses
import re
import shutil
import subprocess
from typing import ClassVar

from shmem_mt.targets import build, fabrics
from shmem_mt.targets.libraries import Implementation, Reference

# program -> the source that does the same with UCX, and its operations
SOURCES = dict.fromkeys(("message_rate", "latency", "bandwidth"), "bare_ucx")
OPS = {
    "message_rate": ("put_nbi", "get_nbi"),
    "latency": ("put_round_trip", "p_quiet", "put_quiet", "get"),
    "bandwidth": ("put", "get"),
}
NAME = "bare UCX"


class BareUcx(Implementation):
    """A library of which nothing but the start is used: before its class in the order of methods."""

    coalesces: ClassVar[bool] = False
    has_settings: ClassVar[bool] = False

    def measures(self, start):
        return start.fabric.is_network and super().measures(start)

    def unable(self, fabric):
        if fabric.rails > 1:
            return "the program of bare UCX knows one rail"
        return super().unable(fabric) if fabric.is_network else ""

    def launch_command(
        self, program, pes, threads, arguments, fabric=fabrics.ON_NODE, coalescing="", hosts=None, setting=""
    ):
        names = dict.fromkeys([*fabric.transports.split(","), "self"])
        told = ("--transports", ",".join(names)) if fabric.transports else ()
        arguments = (*arguments, *told)
        return super().launch_command(program, pes, threads, arguments, fabric, coalescing, hosts, setting)


def find(library):
    """(bare UCX as that library starts it, None), or (None, why there is none)."""
    reference = Reference("UCX", SOURCES, "ucx", OPS, _libraries())
    told = {each.name: getattr(library, each.name) for each in dataclasses.fields(library)}
    told |= {"label": NAME, "reference": reference, "binaries": {}, "features": {}, "digest": ""}
    made = type("BareUcx", (BareUcx, type(library)), {})(**told)
    said, problem = build.said_by_probe(made)
    if problem:
        return None, "no headers and library of UCX (ucp/api/ucp.h, -lucp) with " + library.oshcc
    version = re.search(r"\d+(?:\.\d+)*", said)
    made.label = f"{NAME} {version[0]}" if version else NAME
    return made, None


def _libraries():
    """The flags that pkg-config knows; without it those of an installation where compilers look by themselves."""
    if shutil.which("pkg-config"):
        told = subprocess.run(["pkg-config", "--cflags", "--libs", "ucx"], capture_output=True, text=True, timeout=20)
        if told.returncode == 0:
            return tuple(told.stdout.split())
    return ("-lucp", "-lucs")
