"""The site: it is complete, its links lead somewhere, it loads nothing from another host, and its search finds what a
reader has at hand: the name of a function, a setting, the words of a message."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs/site"))
sys.dont_write_bytecode = True

import check  # noqa: E402  of docs/site
import make_site  # noqa: E402
import manual  # noqa: E402
import messages  # noqa: E402


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if not importlib.util.find_spec("sphinx"):
        pytest.skip("no Sphinx here: make site installs it")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run([sys.executable, "-B", ROOT / "docs/site/make_site.py", folder / "work", folder / "site"],
                          capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def index_of(site):
    """What the search reads."""
    text = (site / "searchindex.js").read_text()
    return json.loads(text[text.index("(") + 1:text.rindex(")")])


def pages_with(index, word):
    """The pages that a search for a word finds; the index has the stems of words."""
    stem = importlib.import_module("snowballstemmer").stemmer("english").stemWord(word.lower())
    found = set()
    for part in ("terms", "titleterms"):
        for form in {stem, word.lower()}:
            places = index[part].get(form, [])
            found |= {index["docnames"][at] for at in (places if isinstance(places, list) else [places])}
    return found


def test_pages_are_there(site):  # that they are whole, make_site.py has checked
    for name in ("index", "docs/quickstart", "docs/user/settings", "docs/user/threads", "docs/site/manual/index",
                 "docs/site/messages", "docs/site/manual/1/oshrun", "docs/site/manual/7/heddle",
                 "shmem-mt/docs/mini-apps"):
        assert "<h1>" in (site / f"{name}.html").read_text(), name


def test_each_function_is_found_by_its_name(site):
    index = index_of(site)
    for table, count in (("openshmem", 1788), ("shmemx", 1466)):
        done = subprocess.run([sys.executable, "-B", ROOT / "api/generate.py", "--list", table], capture_output=True,
                              text=True, check=True)
        names = done.stdout.split()
        assert len(names) == count
        lost = [name for name in names
                if not any(page.startswith("docs/site/manual/3/") for page in pages_with(index, name))]
        assert lost == []


def test_each_setting_is_found_by_its_name(site):
    index = index_of(site)
    names = re.findall(r'^(?:SETTING|CHOICE)\(\w+, \w+, "(\w+)"', (ROOT / "src/base/settings.def").read_text(), re.M)
    assert len(names) > 40
    assert [name for name in names if "docs/user/settings" not in pages_with(index, name)] == []


def opened(address, tmp_path, *options):
    """What a browser without a network shows of it, as HTML."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("no browser on this machine")
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}",
                           "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000", *options,
                           "--dump-dom", f"file://{address}"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


# Beyond the edge of a window of each width: the parts of a page that are seen, at least in part.
CUT_OFF = """<body><script>
    for (const width of WIDTHS) {
        const frame = document.createElement("iframe");
        frame.width = width;
        frame.height = 700;
        frame.src = "PAGE";
        frame.onload = () => {
            for (const part of frame.contentDocument.querySelectorAll(".article-container, .toc-tree")) {
                const box = part.getBoundingClientRect();
                const edge = frame.contentDocument.documentElement.clientWidth;
                const is_cut = box.left < edge && box.right > edge + 1;
                document.body.append(`${width} ${part.className}: ${is_cut ? "cut" : "whole"}; `);
            }
        };
        document.body.append(frame);
    }
</script>"""


def test_no_width_of_the_window_cuts_text_off(site, tmp_path):
    widths = [360, 768, 1024, 1100, 1200, 1280, 1366, 1440, 1480, 1920]
    frames = tmp_path / "frames.html"
    frames.write_text(CUT_OFF.replace("WIDTHS", str(widths)).replace("PAGE", f"file://{site}/docs/quickstart.html"))
    shown = opened(frames, tmp_path / "browser", "--allow-file-access-from-files")
    for width in widths:
        parts = re.findall(rf"{width} ([\w-]+): (\w+);", shown)
        assert ("article-container", "whole") in parts and "cut" not in dict(parts).values(), (width, parts)


def test_search_works_in_a_browser_without_a_server(site, tmp_path):
    words, page = "dest is not symmetric: heap is", "docs/site/messages.html"
    shown = opened(f"{site}/search.html?q={words.replace(' ', '+')}", tmp_path)
    found = re.search(r'<ul[^>]* class="search">.*?</ul>', shown, re.S)
    assert found and f'href="{page}' in found.group(0), found


INSIDE = re.compile(r"ARCHITECTURE|CHANGELOG|CONTRIBUTING|docs/(decisions|internals)/|packaging/|tests/README")


@pytest.mark.parametrize("words", ["fence", "heartbeat", "settings threads"])
def test_pages_for_users_are_found_first(site, tmp_path, words):
    """Also where the title of a decision has the word."""
    shown = opened(f"{site}/search.html?q={words.replace(' ', '+')}", tmp_path)
    found = re.search(r'<ul[^>]* class="search">.*?</ul>', shown, re.S)
    pages = re.findall(r'<a href="([^"?#]+)\.html', found[0]) if found else []
    inside = [bool(INSIDE.match(page)) for page in pages]
    assert True in inside and False in inside, pages
    assert inside == sorted(inside), pages


def test_messages_are_found_by_their_words(site):
    index, every = index_of(site), messages.entries()
    words = {word for message in messages.messages() if messages.owners(message, every)[0].title != "none"
             for word in re.findall(r"(?<!\w)[a-z]{4,}(?!\w)", message.shown())}
    assert len(words) > 500
    assert sorted(word for word in words
                  if (found := pages_with(index, word)) and "docs/site/messages" not in found) == []


RIGHT = '<html><head><link href="s.css"></head><body><a href="b.html#x">b</a><img src="p.png"></body></html>'


@pytest.mark.parametrize("before,after,wanted", [
    ("b.html#x", "c.html", "index.html links c.html: there is no such file"),
    ("#x", "#y", "its page has no such anchor"),
    ("p.png", "q.png", "index.html links q.png: there is no such file"),
    ("p.png", "https://host/p.png", "index.html loads https://host/p.png from another host"),
    ('href="s.css"', 'href="//host/s.css"', "index.html loads //host/s.css from another host"),
    ("</body>", "<script>fetch('https://host/x')</script></body>", "index.html loads https://host/x from another host"),
    ("</body>", "<style>@import 'https://host/x';</style></body>", "index.html loads https://host/x from another host"),
])
def test_what_is_wrong_is_found(tmp_path, before, after, wanted):
    (tmp_path / "b.html").write_text('<p id="x">')
    (tmp_path / "s.css").write_text("a { color: red }")
    (tmp_path / "p.png").write_text("")
    (tmp_path / "index.html").write_text(RIGHT)
    assert check.problems(tmp_path) == []
    assert before in RIGHT
    (tmp_path / "index.html").write_text(RIGHT.replace(before, after))
    assert any(wanted in one for one in check.problems(tmp_path)), check.problems(tmp_path)


def test_style_sheets_and_scripts_are_read(tmp_path):
    (tmp_path / "a.css").write_text("@font-face { src: url(https://host/font.woff2) }")
    (tmp_path / "a.js").write_text("// see https://host/about\nimport('https://host/module.js')")
    assert check.problems(tmp_path) == ["a.css loads https://host/font.woff2 from another host",
                                        "a.js loads https://host/module.js from another host"]


def test_a_macro_that_is_not_known_is_no_silent_loss():
    with pytest.raises(manual.MacroError, match=r"\.Zz word"):
        manual.Converter(".Sh NAME\n.Zz word\n", {}).markdown()


def test_text_of_a_manual_page_is_kept():
    text = ("\n".join([".Sh NAME", ".Nm shmem_x", ".Nd do a thing", ".Sh SYNOPSIS", ".In shmem.h", ".Ft void",
                       ".Fo shmem_x", '.Fa "int pe"', ".Fc", ".Sh DESCRIPTION", r"The \fIpe\fP of a_b*c.",
                       ".Bl -tag -width Ds", ".It Fa pe", "A PE.", ".El", ".Xr shmem_y 3 ."]))
    said = manual.Converter(text, {"shmem_y": "../3/shmem_y.md"}).markdown()
    for wanted in ("# shmem_x\n\nDo a thing.", "```c\n#include <shmem.h>\nvoid shmem_x(int pe);\n```",
                   r"The *pe* of a\_b\*c.", "- `pe`\n\n  A PE.", "[shmem_y](../3/shmem_y.md)."):
        assert wanted in said, said


def test_without_sphinx_it_is_said(tmp_path):
    environment = {**os.environ, "PYTHONNOUSERSITE": "1"}
    done = subprocess.run([sys.executable, "-S", "-B", ROOT / "docs/site/make_site.py", tmp_path / "a", tmp_path / "b"],
                          capture_output=True, text=True, env=environment)
    assert done.returncode == 77 and "there is no Sphinx here; make site installs it" in done.stderr
    assert "Traceback" not in done.stderr


def test_each_message_has_a_cause_and_a_cure():
    said, every = messages.messages(), messages.entries()
    assert messages.problems(said, every) == []
    assert len(said) > 400 and len(every) > 50


@pytest.mark.parametrize("before,after,wanted", [
    ("called before shmem_init", "called while the moon is full", "has no cause and cure"),
    ("called after shmem_finalize", "called later", "no message has 'called after shmem_finalize'"),
    ("called before shmem_init", "called before shmem_init, is not held by this PE", "belongs to Called before init"),
])
def test_a_message_that_changes_is_noticed(tmp_path, before, after, wanted):
    for folder in ("src/operations", "launcher"):
        (tmp_path / folder).mkdir(parents=True)
    text = (ROOT / "src/operations/check.cpp").read_text()
    assert before in text
    (tmp_path / "src/operations/check.cpp").write_text(text.replace(before, after))
    assert any(wanted in one for one in messages.problems(messages.messages(tmp_path), messages.entries()))


def test_strings_beside_each_other_are_one_message():
    source = """/* "a comment of four words" */ const char quote = '"';
        base::fatal(function, "PE %d is"
                    " out of %" PRIu64 " range", pe); say("two words");
        const char* text = "has \\"four\\" words here";"""
    assert messages.texts(source) == ["PE %d is out of % range", 'has "four" words here']


@pytest.mark.parametrize("text,wanted", [
    ("[[part]]\ntitle = 'A'\n[[part.entry]]\ntitle = 'B'\ncause = 'c'\nmessages = ['m']\n", "B: cure"),
    ("[[part]]\ntitle = 'A'\n[[part.entry]]\ntitle = 'B'\ncause = 'c'\ncure = 'd'\n", "B: messages"),
    ("[[part", "messages.toml: "),
])
def test_a_table_that_lacks_something_is_refused(tmp_path, text, wanted):
    (tmp_path / "m.toml").write_text(text + "\n[none]\nmessages = []\nfiles = []\n")
    with pytest.raises(messages.TableError, match=wanted):
        messages.entries(tmp_path / "m.toml")


def test_pages_keep_their_places_and_new_ones_are_listed(tmp_path, monkeypatch):
    docs = tmp_path / "docs"
    for path, text in {docs / "site/index.md": "# A\n[new](../new.md)\n\n```{toctree}\n/docs/old.md\n```\n",
                       docs / "old.md": "[c](../src/a.c) [folder](../src) [new](new.md#x)\n\n```c\na[0](b.md)\n```\n",
                       docs / "new.md": "# New\n", docs / "decisions/0001-a.md": "# 1\n",
                       tmp_path / "src/a.c": "int a;\n"}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(make_site, "ROOT", tmp_path)
    make_site.Pages(tmp_path / "build/work").write()
    work = tmp_path / "build/work"
    index = (work / "index.md").read_text()
    assert f"[new]({docs.name}/new.md)" in index and ":caption: More\n\n/docs/new.md\n```" in index
    assert (work / docs.name / "old.md").read_text() == (
        "[c](../src/a.c.md) folder [new](new.md#x)\n\n```c\na[0](b.md)\n```\n")
    assert "`````c\nint a;\n`````" in (work / "src/a.c.md").read_text()
    assert (work / docs.name / "decisions/0001-a.md").read_text().startswith("---\norphan: true\n")
