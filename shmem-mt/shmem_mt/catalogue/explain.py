"""`shmem-mt explain`: what benchmarks do, in words and a picture of their messages. The page of a report shows the
pictures of its benchmarks, and shmem-mt/docs/messages.md has all: `python3 -m shmem_mt.catalogue.explain`."""

import textwrap

from shmem_mt.catalogue import catalogue
from shmem_mt.catalogue.explanations import EXPLANATIONS
from shmem_mt.catalogue.message_picture import draw

LINE = 100  # characters of a line in the terminal


def picture(name):
    """The lines of the picture of that benchmark's messages."""
    return draw(EXPLANATIONS[name].columns, EXPLANATIONS[name].steps)


def lines(name):
    """What `shmem-mt explain` prints of that benchmark."""
    told = EXPLANATIONS[name]
    benchmark = next(one for one in catalogue.BENCHMARKS if one.name == name)
    widest = max(map(len, told.ops)) + 2
    ops = [
        text
        for op, words in told.ops.items()
        for text in textwrap.wrap(words, LINE, initial_indent=op.ljust(widest), subsequent_indent=" " * widest)
    ]
    told_words = textwrap.wrap(told.words, LINE)
    return [f"{name}: {benchmark.what}", "", *told_words, "", *picture(name), "", *ops]


def page():
    """The text of shmem-mt/docs/messages.md."""
    parts = [
        "# The messages of each benchmark",
        "",
        "A column is a PE or a thread, and time goes downwards. `shmem-mt explain NAME` prints one of these. Made by\n"
        "`python3 -m shmem_mt.catalogue.explain`; [benchmarks](benchmarks.md) has parameters and metrics.",
    ]
    for name, told in EXPLANATIONS.items():
        parts += ["", f"## {name}", *textwrap.wrap(told.words, 120), "", "```text", *picture(name), "```", ""]
        parts += ["| operation | what it is |", "|---|---|"]
        parts += [f"| {op} | {words} |" for op, words in told.ops.items()]
    return "\n".join(parts)


if __name__ == "__main__":
    print(page())
