#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_tried_harness.py ROOT: tests docs/site/tried.py: what it adds to a file and replaces, the tables that it
renders, and that it finds a page whose tables differ and wrong lines; and tests/package/record.py."""
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "docs/site"))
import tried

PAGE = """# Page
<!-- compilers of tried.csv -->
<!-- end of compilers -->
between
<!-- packages of tried.csv -->
<!-- end of packages -->
after
"""
HEAD = ",".join(tried.FIELDS)


def run(*words):
    done = subprocess.run([ROOT / "docs/site/tried.py", *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def refuses(text, words):
    """The text of a file of results is an error with these words."""
    try:
        tried.parse(text, "file")
    except ValueError as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"took {text}")


def check_adding(path):
    compiler = {"system": "Debian 12", "compiler": "g++ 12.2.0", "library": "libstdc++ 12", "standard": "C++20"}
    tried.add(path, **compiler, commit="aaa", what="programs", passed=1, tried=3, of=3)
    tried.add(path, **compiler, commit="bbb", what="programs", passed=3, tried=3, of=3)
    tried.add(path, **compiler, commit="bbb", what="messages", passed=1, tried=2, of=9)
    tried.add(path, **compiler, commit="bbb", what="first lines", passed=0, tried=0, of=5)
    other = {**compiler, "compiler": "g++ 9.1.0"}
    tried.add(path, **other, commit="ccc", what="refused", passed=1, tried=1, of=1)
    tried.add(path, **{**other, "compiler": "g++ 9.2.0"}, commit="ccc", what="programs", passed=2, tried=2, of=9)
    status, said = run("add", path, "commit=ddd", "system=Debian 13", "compiler=clang 19", "library=", "standard=",
                       "what=archive", "passed=5", "tried=5", "of=5")
    assert status == 0, said
    rows = tried.read(path)
    assert [row["compiler"] for row in rows] == ["g++ 9.1.0", "g++ 9.2.0"] + ["g++ 12.2.0"] * 3 + ["clang 19"], rows
    assert [row["commit"] for row in rows if row["what"] == "programs"] == ["ccc", "bbb"], rows
    return rows


def check_tables(rows):
    text = tried.rendered(PAGE, [{**row, "date": "2026-01-02"} for row in rows])
    for line in ("| Debian 12 | g++ 9.1.0 | libstdc++ 12 | C++20 | refused by one error |  |  | 2026-01-02 | ccc |",
                 "| Debian 12 | g++ 12.2.0 | libstdc++ 12 | C++20 | all 3 | **1 of 2 wrong** | not tried | 2026-01-02 | bbb |",
                 "| Debian 12 | g++ 9.2.0 | libstdc++ 12 | C++20 | 2 |  |  | 2026-01-02 | ccc |",
                 "| Debian 13 | clang 19 | archive | all 5 | 2026-01-02 | ddd |", "between", "after"):
        assert line in text.splitlines(), text
    assert tried.rendered(text, [{**row, "date": "2026-01-02"} for row in rows]) == text
    assert "g++ 9.1.0" not in tried.rendered(text, [])


def check_recording(work):
    """A script of three steps passes, fails in its second step, and is skipped."""
    script, results = work / "bare_npm.sh", work / "results.csv"
    for end, status, passed in (("", 0, "3"), ("exit 1", 1, "1"), ("exit 77", 77, "1")):
        script.write_text(f"#!/bin/sh\nstep() {{ echo \"== $*\"; }}\nstep one $1 $3\nstep two\n{end}\nstep three\n")
        script.chmod(0o755)
        done = subprocess.run([ROOT / "tests/package/record.py", results, script, "packages", ROOT, "bookworm", work],
                              text=True, stdout=subprocess.PIPE)
        assert done.returncode == status and done.stdout.startswith("== one packages bookworm\n"), done
        row, = tried.read(results)
        assert (row["system"], row["compiler"], row["what"]) == ("Debian 12", "g++", "npm package"), row
        assert (row["passed"], row["tried"], row["of"]) == (int(passed), 3, 3), row


with tempfile.TemporaryDirectory() as folder:
    work = Path(folder)
    (work / "docs").mkdir()
    results, page = work / "docs/tried.csv", work / "docs/install.md"
    rows = check_adding(results)
    check_tables(rows)
    page.write_text(PAGE)
    status, said = run("check", work)
    assert status == 1 and "docs/install.md: its tables are not those of docs/tried.csv" in said, said
    assert run("render", work)[0] == 0 and run("check", work)[0] == 0
    page.write_text(PAGE.replace("<!-- end of packages -->\n", ""))
    status, said = run("check", work)
    assert status == 1 and "no place for the table of packages" in said, said
    assert run("paint", work)[0] == 2
    check_recording(work)
refuses("date,commit\n", "wrong fields")
refuses("", "wrong fields")
for counts in ("3,2,5", "1,6,5", "x,1,1", "-1,1,1", "1,1"):
    refuses(f"{HEAD}\n2026-01-02,aaa,Debian 12,g++ 12,libstdc++ 12,C++20,programs,{counts}\n", "passed <= tried <= of")
