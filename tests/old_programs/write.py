#!/usr/bin/env python3
"""Writes old programs (table.py) as files.

    write.py --each FOLDER             one file for each program, as its author would have had it: NAME.c or NAME.cpp
    write.py --sample STEP FOLDER      every STEP-th in sample.c and sample.cpp, which one main calls by name
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from table import FALL_OFF, Program, programs

INCLUDES = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
MAIN = """{head}
{{
    int me, npes, errors = 0;

    {program.start}
    me = {program.me};
    npes = {program.npes};
    {{
{body}    }}
    if (errors == 0) printf("{program.name}: PE %d of %d passed\\n", me, npes);
    {end}
}}
"""


def text(program: Program, head: str, mark: str, may_fall_off: bool) -> str:
    end = program.end + ("" if program.end != FALL_OFF or may_fall_off else "\n    return 0;")
    if program.end.startswith("exit"):
        end += "" if may_fall_off else "\n    return 0;"
    return program.variables.replace("@", mark) + "\n" + \
        MAIN.format(program=program, head=head, body=program.body.replace("@", mark), end=end)


def one_file(program: Program) -> str:
    return INCLUDES + f"#include <{program.header}>\n\n" + text(program, "int main(int argc, char **argv)", "", True)


def sample_file(chosen: list[Program]) -> str:
    """Each as a function, with its variables marked by its number."""
    parts = [INCLUDES + "#include <mpp/shmem.h>\n"]
    for number, program in enumerate(chosen):
        parts.append(text(program, f"static int program_{number}(int argc, char **argv)", f"_{number}", False))
    rows = "".join(f'    {{"{program.name}", program_{number}}},\n' for number, program in enumerate(chosen))
    parts.append(f"static const struct {{ const char *name; int (*run)(int, char **); }} all[] = {{\n{rows}}};\n\n"
                 "int main(int argc, char **argv)\n{\n    unsigned i;\n"
                 "    for (i = 0; argc > 1 && i < sizeof(all) / sizeof(*all); i++)\n"
                 "        if (strcmp(all[i].name, argv[1]) == 0) return all[i].run(argc, argv);\n    return 2;\n}\n")
    return "\n".join(parts)


def write(path: Path, content: str) -> None:
    if not path.exists() or path.read_text() != content:
        path.write_text(content)


def suffix(program: Program) -> str:
    return ".c" if program.language == "c" else ".cpp"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=Path)
    parser.add_argument("--sample", nargs=2)
    arguments = parser.parse_args()
    if arguments.each:
        for program in programs():
            write(arguments.each / (program.name + suffix(program)), one_file(program))
    if arguments.sample:
        chosen = programs()[::int(arguments.sample[0])]
        for language, end in (("c", ".c"), ("c++", ".cpp")):
            of_language = [program for program in chosen if program.language == language]
            write(Path(arguments.sample[1]) / f"sample{end}", sample_file(of_language))
    return 0


if __name__ == "__main__":
    sys.exit(main())
