"""What must hold of the finished site: each link and picture leads to a file of it, each anchor to a place of its page,
and no page loads anything from another host."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

# What a browser fetches by itself, by element; a link (a) waits until somebody follows it.
LOADS = {"script": ["src"], "link": ["href"], "img": ["src", "srcset"], "iframe": ["src"], "source": ["src", "srcset"],
         "video": ["src", "poster"], "audio": ["src"], "object": ["data"], "embed": ["src"], "use": ["href"],
         "form": ["action"]}
ELSEWHERE = re.compile(r"^(?:https?:|wss?:|ftp:)?//", re.I)
# In a style sheet or a script: what is loaded; addresses in comments and in licenses are not.
STYLE = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)", re.I)
SCRIPT = re.compile(r"(?:fetch|import|open|Worker|importScripts|src\s*=|href\s*=)\s*\(?\s*"
                    r"[\"'`]((?:https?:|wss?:)?//[^\"'`]+)")


class Page(HTMLParser):
    """The links, the loaded files and the anchors of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        self.anchors |= {said[name] for name in ("id", "name") if name in said}
        self.inside = tag if tag in ("style", "script") else ""
        if tag == "a" and "href" in said:
            self.links.append(said["href"])
        self.loaded += [said[name] for name in LOADS.get(tag, []) if said.get(name)]
        self.loaded += STYLE.findall(said.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self.inside == "style":
            self.loaded += STYLE.findall(data)
        elif self.inside == "script":
            self.loaded += SCRIPT.findall(data)

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""


def problems(site: Path) -> list[str]:
    """Each thing that is wrong, as a sentence."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    wrong = []
    for path, page in pages.items():
        name = path.relative_to(site)
        wrong += [f"{name} loads {one} from another host" for one in page.loaded if ELSEWHERE.match(one)]
        for link in [*page.links, *(one for one in page.loaded if not ELSEWHERE.match(one))]:
            if re.match(r"(?:[a-z][a-z+.-]*:|//)", link, re.I):
                continue
            target, _, anchor = link.partition("#")
            at = (path.parent / unquote(target.split("?")[0])).resolve() if target.split("?")[0] else path
            if not at.is_file():
                wrong.append(f"{name} links {link}: there is no such file")
            elif anchor and at in pages and unquote(anchor) not in pages[at].anchors:
                wrong.append(f"{name} links {link}: its page has no such anchor")
    for path in sorted(site.rglob("*.css")):
        wrong += [f"{path.relative_to(site)} loads {one} from another host" for one in STYLE.findall(path.read_text())]
    for path in sorted(site.rglob("*.js")):
        wrong += [f"{path.relative_to(site)} loads {one} from another host" for one in SCRIPT.findall(path.read_text())]
    return wrong
