#!/usr/bin/env python3
"""Rules for the comments of src/ and launcher/ (CONTRIBUTING.md, Habits).

    comments.py ROOT          exit 0: all hold; 1: not
    comments.py --self-test   wants each rule to find a file that breaks it

    pairs       "pairs with Class::function" or "pairs with namespace::function", several with commas or "and": each of
                these functions exists in src/ or launcher/, and its body or the comment above it has a "pairs with"
                that names the function of this comment back
    subject     no comment begins with a word that refers to another comment ("The same", "Likewise", "It", ...)
    width       a line with a comment has at most 120 columns: clang-format leaves comments as they are
    sentences   no sentence has more than 25 words; parentheses, diagrams and tables are not counted
"""

from __future__ import annotations

import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

MOST_WORDS, MOST_COLUMNS = 25, 120
FOLDERS = ("src", "launcher")
REFERS = re.compile(r"(The same\b(?! \w+ (in|as|of|for)\b)|Likewise\b|As above\b|Ditto\b|As before\b|So too\b|"
                    r"(?:It|They|Those|These|Who|Others)\b)")
NAME = r"(?:\w+::)+~?\w+"
PAIRS = re.compile(rf"\b[Pp]airs? with(?P<names> {NAME}(?:(?:,| and|, and) {NAME})*)?")
NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+'"""
                     r"""|^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*""", re.S | re.M)
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "alignas", "catch", "static_assert", "decltype", "asm",
            "defined", "__attribute__"}


@dataclass
class Function:
    name: str  # Class::function, or namespace::function for one outside classes
    first: int
    last: int


def without_text(text: str) -> str:
    """The code alone: comments, strings, characters and directives become blanks; lines and columns stay."""
    return NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def head_of(header: str) -> tuple[str, str]:
    """What an opening brace begins, by the code before it: ("namespace" | "class" | "function" | "other", its name)."""
    header = re.sub(r"\b(?:public|private|protected)\s*:", " ", header).strip()
    header = re.sub(r"^(?:template\s*<(?:[^<>]|<[^<>]*>)*>\s*)+", "", header)
    if match := re.match(r"(?:inline\s+)?namespace\b\s*([\w:]*)$", header):
        return "namespace", match.group(1)
    if match := re.match(r"(?:class|struct|union|enum(?: class)?)\s+(?:alignas\([^)]*\)\s*)?(\w+)\b[^()=]*$", header):
        return ("class" if not header.startswith("enum") else "other"), match.group(1)
    if header.startswith("extern") and "(" not in header:
        return "namespace", ""
    for match in re.finditer(r"((?:\w+(?:<\w+>)?::)*(?:~?\w+|operator\s*[^\s(]+))\s*\(", header):
        if match.group(1).split("::")[-1] not in KEYWORDS and not match.group(1).startswith("HEDDLE_"):
            return "function", match.group(1)
    return "other", ""


def functions_of(text: str) -> list[Function]:
    """The functions of a file, defined or declared, each with the comment above it."""
    code, lines = without_text(text), text.split("\n")
    found: list[Function] = []
    scopes: list[tuple[str, str]] = []  # kind, name
    begin = 0  # of the statement that is being read
    inside = 0  # depth within a function or an initializer

    def line_of(offset: int) -> int:
        return code.count("\n", 0, offset) + 1

    def add(name: str, start: int, end: int) -> None:
        first = line_of(start + len(code[start:]) - len(code[start:].lstrip()))
        last = line_of(end)
        while first > 1 and lines[first - 2].strip().startswith("//"):
            first -= 1
        owner = [scope for kind, scope in scopes if kind == "class"]
        parts = re.sub(r"<\w+>", "", name).split("::")
        if len(parts) == 1:
            spaces = [scope for kind, scope in scopes if kind == "namespace" and scope]
            parts = [owner[-1] if owner else spaces[-1].split("::")[-1] if spaces else "", name]
        found.append(Function("::".join(parts[-2:]), first, last))

    pending: tuple[str, int] | None = None  # a function whose body is open
    parens = 0
    for at, sign in enumerate(code):
        if inside:
            inside += (sign == "{") - (sign == "}")
            if inside == 0:
                rest = code[at + 1:].lstrip()
                if pending and not (rest[:1] in ",{" and rest[:1]):  # not an initializer of a constructor's member
                    add(pending[0], pending[1], at)
                    pending, begin = None, at + 1
            continue
        if sign in "()":
            parens += (sign == "(") - (sign == ")")
        elif sign == "{":
            kind, name = ("function", pending[0]) if pending else head_of(code[begin:at])
            if kind in ("namespace", "class") and parens == 0:
                scopes.append((kind, name))
                begin = at + 1
            else:
                inside = 1
                if kind == "function" and not pending and parens == 0:
                    pending = (name, begin)
        elif sign == "}":
            if scopes:
                scopes.pop()
            begin = at + 1
        elif sign == ";" and parens == 0:
            kind, name = head_of(code[begin:at])
            if kind == "function" and "=" not in code[begin:at].split("(")[0]:
                add(name, begin, at)
            begin = at + 1
    return found


def comments_of(text: str) -> list[tuple[int, str]]:
    """Each comment with the number of its first line; lines of // one below the other are one comment."""
    found: list[tuple[int, str]] = []
    last, column = -1, -1
    for number, line in enumerate(text.split("\n"), 1):
        match = re.search(r"(?:^|\s)//(?!/)(.*)", re.sub(r'"(?:\\.|[^"\\])*"', lambda m: "_" * len(m.group()), line))
        if not match:
            continue
        if line.strip().startswith("//") and number == last + 1 and column == match.start():
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{match.group(1)}")
        else:
            found.append((number, match.group(1)))
        last, column = number, match.start()
    return found


def wrong_pairs(files: dict[str, str]) -> list[str]:
    functions = {name: functions_of(text) for name, text in files.items()}
    known = {function.name for list_ in functions.values() for function in list_}
    wrong: list[str] = []
    named: set[tuple[str, str]] = set()  # the function of a comment, and one that the comment names
    places: dict[tuple[str, str], str] = {}
    for name, text in files.items():
        for number, comment in comments_of(text):
            for match in PAIRS.finditer(re.sub(r"\s+", " ", comment)):
                owners = [f for f in functions[name] if f.first <= number <= f.last]
                if not match.group("names"):
                    wrong.append(f"{name}:{number}: \"pairs with\" names no Class::function")
                elif not owners:
                    wrong.append(f"{name}:{number}: \"pairs with\" stands in no function, nor above one")
                else:
                    owner = max(owners, key=lambda f: f.first).name
                    for other in re.findall(NAME, match.group("names")):
                        named.add((owner, other))
                        places.setdefault((owner, other), f"{name}:{number}")
    for owner, other in sorted(named, key=lambda pair: places[pair]):
        if other not in known:
            wrong.append(f"{places[owner, other]}: {owner} pairs with {other}, which does not exist")
        elif (other, owner) not in named:
            wrong.append(f"{places[owner, other]}: {owner} pairs with {other}, whose comments do not name {owner} back")
    return wrong


def wrong_sentences(name: str, text: str) -> list[str]:
    wrong = []
    for number, comment in comments_of(text):
        first = comment.strip()
        if match := REFERS.match(first):
            wrong.append(f"{name}:{number}: begins with \"{match.group()}\": name the subject")
        prose = re.sub(r"(?:^|\n)(?: {3,}[^\n]*|---[^\n]*)", " . ", comment)  # diagrams and tables are not sentences
        prose = re.sub(r"\s*\([^()]*\)", "", prose)
        for sentence in re.split(r"(?<=[\w)\]\"'`])[.:?!](?:\s|$)|\n\s*\n", prose):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if len(words) > MOST_WORDS:
                wrong.append(f"{name}:{number}: a sentence of {len(words)} words: {' '.join(words[:8])} ...")
    return wrong


def wrong_width(name: str, text: str) -> list[str]:
    return [f"{name}:{number}: a line of {len(line)} columns, more than {MOST_COLUMNS}"
            for number, line in enumerate(text.split("\n"), 1) if len(line) > MOST_COLUMNS and "//" in line]


def check(root: Path) -> list[str]:
    paths = sorted(p for folder in FOLDERS for p in (root / folder).rglob("*") if p.suffix in (".h", ".cpp", ".c"))
    files = {str(path.relative_to(root)): path.read_text() for path in paths}
    files = {name: text for name, text in files.items() if "Generated by api/generate.py" not in text[:400]}
    wrong = wrong_pairs(files)
    for name, text in files.items():
        wrong += wrong_width(name, text) + wrong_sentences(name, text)
    return wrong


GOOD = """// A flag.
namespace heddle::a {
class Flag {
  public:
    explicit Flag(int x) : x_{x}, y_(x) { set(); }
    void set() { v.store(1, std::memory_order_release); }  // pairs with Flag::is_set and a::look
    // Acquire: pairs with Flag::set.
    bool is_set() const;

  private:
    int x_, y_;
};
bool Flag::is_set() const { return v.load(std::memory_order_acquire); }
// Looks at the flag once.
template <class T>
bool look(const T& flag) {
    const auto again = [&] { return flag.v; };
    return again().load(std::memory_order_acquire);  // pairs with
                                                     // Flag::set
}
}
"""


def self_test() -> list[str]:
    long = " ".join(["abc"] * (MOST_WORDS + 1))
    cases = {
        "good": (GOOD, 0),
        "not back": (GOOD.replace("pairs with Flag::is_set and a::look", "pairs with Flag::is_set"), 1),
        "not back, the other way": (GOOD.replace("// Acquire: pairs with Flag::set.", "// Acquire."), 1),
        "no such function": (GOOD.replace("Flag::set.", "Flag::sat."), 2),
        "of another class": (GOOD.replace("Flag::is_set and", "Gate::is_set and"), 2),
        "not qualified": (GOOD.replace("pairs with Flag::set.", "pairs with set."), 2),
        "outside": (GOOD.replace("int x_,", "// pairs with Flag::set\n\n    int x_,"), 1),
        "the same": ("// The same for others.\nint x;\n", 1),
        "likewise": ("int x;  // Likewise\n", 1),
        "long": (f"// {long}.\nint x;\n", 1),
        "long, over lines": ("// One. " + long.replace(" ", "\n// ", 4) + ".\nint x;\n", 1),
        "wide": (f"// {'x' * 118}\nint x;\n", 1),
        "two short ones": (f"// {long[:59]}. {long[:51]}.\nint x;\n", 0),
        "a diagram": (f"// A picture:\n//     {long}\nint x;\n", 0),
    }
    missed = []
    for what, (text, expected) in cases.items():
        with tempfile.TemporaryDirectory() as root:
            file = Path(root) / "src" / "a" / "flag.h"
            file.parent.mkdir(parents=True)
            file.write_text(text)
            if len(found := check(Path(root))) != expected:
                missed.append(f"{what}: {expected} expected, found {found}")
    return missed


def main() -> int:
    wrong = self_test() if sys.argv[1:] == ["--self-test"] else check(Path(sys.argv[1]).resolve())
    print("\n".join(wrong) or "ok")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
