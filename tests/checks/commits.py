#!/usr/bin/env python3
"""The rules for commit messages (CONTRIBUTING.md), for every commit since they are checked.

    commits.py ROOT          exit 0: all messages hold; 1: not, with each case; 77: no git, or a clone without history
    commits.py --self-test   wants each rule to find a message that breaks it

    subject    one line of at most 72 characters, begins with a capital letter, no full stop at its end, one subject
               (no `;`)
    body       behind an empty line, in lines of at most 120 characters; says why, in six words or more
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECKED_SINCE = "b5c7d58236139ba7921de7863a83fdbc60a65573"  # later commits are checked; this and earlier ones are not
MAX_SUBJECT, MAX_LINE, MIN_WORDS = 72, 120, 6


def wrong(message: str) -> list[str]:
    """What breaks a rule in a message."""
    subject, *rest = message.rstrip("\n").split("\n")
    found = []
    if len(subject) > MAX_SUBJECT:
        found.append(f"a subject of {len(subject)} characters, more than {MAX_SUBJECT}")
    if not subject[:1].isupper():
        found.append("the subject does not begin with a capital letter")
    if subject.endswith("."):
        found.append("the subject ends in a full stop")
    if ";" in subject:
        found.append("two subjects")
    if rest and rest[0]:
        found.append("no empty line behind the subject")
    found += [f"a line of {len(line)} characters, more than {MAX_LINE}" for line in rest if len(line) > MAX_LINE]
    if len(" ".join(rest).split()) < MIN_WORDS:
        found.append("no body that says why")
    return found


def git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)


def self_test() -> list[str]:
    body = "\n\nThe reason stands here, in a sentence.\n"
    broken = ["A" * 73 + body, "lower case" + body, "A full stop." + body, "One thing; another" + body,
              "No empty line\nThe reason stands here, in a sentence.", "No body", "A short body\n\nMends it.",
              "A long line\n\n" + "word " * 30]
    missed = [f"missed: {message!r}" for message in broken if len(wrong(message)) != 1]
    return missed + [f"false alarm: {found}" for found in [wrong("One subject" + body)] if found]


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        found = self_test()
    else:
        root = Path(sys.argv[1])
        log = git(root, "log", "--no-merges", "--format=%h%x00%B%x01", f"{CHECKED_SINCE}..HEAD")
        if log.returncode != 0:
            print(f"skipped: no history back to {CHECKED_SINCE[:7]}: {log.stderr.strip()}")
            return 77
        commits = [record.strip("\n").split("\0", 1) for record in log.stdout.split("\1") if record.strip("\n")]
        found = [f"{commit}: {what}" for commit, message in commits for what in wrong(message)]
    print("\n".join(found) or "ok")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
