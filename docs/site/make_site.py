#!/usr/bin/env python3
"""Makes the site of the documentation: the pages of the repository, those that are generated for it, and a search.

    make_site.py WORK OUT    WORK: a folder for what Sphinx reads, which is made anew; OUT: the site, which is replaced.
                         exit 1 with a sentence where a page, a link or a heading is not there; 77: there is no Sphinx
"""

from __future__ import annotations

import fnmatch
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

sys.dont_write_bytecode = True

import check  # noqa: E402  behind the line above, which keeps the source tree clean
import manual  # noqa: E402
import messages  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
HERE = Path("docs/site")
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")  # text, target; not of a picture
PICTURES = {".png", ".svg"}
LANGUAGES = {".c": "c", ".cpp": "cpp", ".hpp": "cpp", ".json": "json", ".py": "python"}
# Not shown: a record of the work, and a table of 3,000 rows, in whose place the site has the manual.
NOT_SHOWN = {"shmem-mt/tests/mutants.md", "docs/coverage.md"}
DECISIONS = "docs/decisions/0*.md"
# Begins a page that the list at the left leaves out: each entry of it is on each page, and costs time on each.
ASIDE = "---\norphan: true\n---\n"
SECTIONS = {"1": "Programs", "3": "Functions", "7": "Overviews"}


def tracked() -> list[Path]:
    """The files under version control, new ones too, as seen from the root."""
    done = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                          capture_output=True, text=True)
    if done.returncode == 0:
        return [Path(name) for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]
    return [path.relative_to(ROOT) for path in sorted(ROOT.rglob("*"))
            if path.is_file() and "build" not in path.relative_to(ROOT).parts]


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """text with change(part) for the parts that are no blocks of code."""
    parts = re.split(r"(^ *```.*?^ *```$)", text, flags=re.S | re.M)
    return "".join(part if place % 2 else change(part) for place, part in enumerate(parts))


def moved(text: str) -> str:
    """The first page, with links as from the root of the site, where it goes."""
    def one(match: re.Match) -> str:
        return f"[{match.group(1)}]({os.path.normpath(HERE / match.group(2))})"

    return outside_code(text, lambda part: LINK.sub(one, part))


def listed(index: str) -> set[str]:
    """The pages in the list at the left, which the first page has in blocks of its own."""
    blocks = re.findall(r"^```\{toctree\}\n(.*?)^```$", index, re.S | re.M)
    return set(re.findall(r"^(?:.* <)?/([^\s<>]+)>?$", "".join(blocks), re.M))


class Pages:
    """What Sphinx reads: the pages in the places that they have in the repository."""

    def __init__(self, work: Path):
        self.work = work
        self.pages = {path for path in tracked() if path.suffix == ".md" and str(path) not in NOT_SHOWN}
        self.sources: set[Path] = set()  # files that pages link, each shown on a page of its own

    def target(self, page: Path, link: str) -> str | None:
        """What a link of a page becomes; None where the site has nothing to show for it."""
        path, mark, anchor = link.partition("#")
        if re.match(r"\w+:", link) or not path:
            return link
        at = Path(os.path.normpath(page.parent / path))
        if at in self.pages:
            return link
        if at.suffix in PICTURES:
            return link
        if (ROOT / at).is_file() and at.suffix in LANGUAGES:
            self.sources.add(at)
            return f"{path}.md{mark}{anchor}"
        return None

    def changed(self, page: Path, text: str) -> str:
        def links(part: str) -> str:
            def one(match: re.Match) -> str:
                target = self.target(page, match.group(2))
                return match.group(1) if target is None else f"[{match.group(1)}]({target})"

            return LINK.sub(one, part)

        return outside_code(text, links)

    def others(self) -> str:
        """A last part of the list at the left, with the pages that index.md does not have yet."""
        known = listed((ROOT / HERE / "index.md").read_text())
        more = [f"/{page}" for page in sorted(map(str, self.pages)) if page not in known
                and not any(fnmatch.fnmatch(page, pattern) for pattern in known) and page != str(HERE / "index.md")
                and not fnmatch.fnmatch(page, DECISIONS)]
        return "\n".join(["", "```{toctree}", ":hidden:", ":caption: More", "", *more, "```", ""]) if more else ""

    def write(self) -> None:
        for page in sorted(self.pages):
            into = self.work / page
            into.parent.mkdir(parents=True, exist_ok=True)
            text = self.changed(page, (ROOT / page).read_text())
            if page == HERE / "index.md":
                into, text = self.work / "index.md", moved(text) + self.others()
            into.write_text(ASIDE + text if fnmatch.fnmatch(str(page), DECISIONS) else text)
        for path in tracked():
            if path.suffix in PICTURES and path.parts[0] == "docs":
                (self.work / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / path, self.work / path)
        for path in sorted(self.sources):
            into = self.work / f"{path}.md"
            into.parent.mkdir(parents=True, exist_ok=True)
            code = (ROOT / path).read_text()
            into.write_text(f"{ASIDE}# {path}\n\n`````{LANGUAGES[path.suffix]}\n{code}`````\n")


def index_of_manual(written: list[tuple[str, str, str]]) -> str:
    """The page that leads to all pages of the manual."""
    lines = ["# Functions and programs", "",
             "Each family of functions has a page, with its arguments, errors and an example. The search finds a page "
             "by any of its names, such as `shmem_ctx_longdouble_put_nbi`.", ""]
    for section in ("7", "1", "3"):
        lines += [f"## {SECTIONS[section]}", "", "| name | what it does |", "|---|---|"]
        lines += [f"| [{name}]({section}/{name}.md) | {about} |"
                  for other, name, about in sorted(written) if other == section]
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    if not importlib.util.find_spec("sphinx"):
        print("docs/site/make_site.py: there is no Sphinx here; make site installs it, or: "
              "pip install 'shmem-mt/[site]'", file=sys.stderr)
        return 77
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    work, out = (Path(name).resolve() for name in sys.argv[1:])
    shutil.rmtree(work, ignore_errors=True)
    pages = Pages(work / "pages")
    pages.write()
    place = work / "pages" / HERE
    written = manual.write(work / "man", place / "manual", ASIDE)
    (place / "manual/index.md").write_text(index_of_manual(written))
    (place / "messages.md").write_text(messages.page())
    (work / "conf/_static").mkdir(parents=True)
    shutil.copy(ROOT / HERE / "heddle.css", work / "conf/_static/heddle.css")
    shutil.copy(ROOT / HERE / "scorer.js", work / "conf/scorer.js")
    (work / "conf/conf.py").write_text((ROOT / HERE / "conf.py").read_text().replace(
        "Path(__file__).resolve().parents[2]", f"Path({str(ROOT)!r})"))
    done = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html",
                           "-d", work / "seen", "-c", work / "conf", work / "pages", work / "site"])
    if done.returncode:
        return 1
    if wrong := check.problems(work / "site"):
        print("\n".join(f"docs/site/make_site.py: {one}" for one in wrong), file=sys.stderr)
        return 1
    shutil.rmtree(out, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(work / "site", out)
    (out / ".buildinfo").unlink(missing_ok=True)
    print(f"{sum(1 for _ in out.rglob('*.html'))} pages: {out}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
