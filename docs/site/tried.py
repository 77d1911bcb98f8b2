#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Results of tests on several systems and compilers: a file with a line for each, and the tables of docs/install.md.

  tried.py add FILE NAME=VALUE...   adds a result of now, which replaces an older one of the same combination
  tried.py render ROOT              writes the tables of docs/tried.csv into docs/install.md
  tried.py check ROOT               fails if they differ

A result has the fields below. tried is the number of items that a test took and of the number that exist; passed is
the number of those that were right. tried is 0 for a combination that exists and was not tried."""
import csv
import datetime
import io
import os
import re
import sys
from pathlib import Path

FIELDS = ("date", "commit", "system", "compiler", "library", "standard", "what", "passed", "tried", "of")
KEY = ("system", "compiler", "library", "standard", "what")
COUNTS = ("passed", "tried", "of")
COMPILING = ("programs", "messages", "first lines")
BEGIN, END = "<!-- {} of tried.csv -->\n", "<!-- end of {} -->\n"


def system_of(root):
    """Returns the name of a system and its version."""
    release = dict(re.findall(r'^(\w+)="?(.*?)"?$', Path(root or "/", "etc/os-release").read_text(), re.M))
    return f"{release['ID'].capitalize()} {release.get('VERSION_ID') or release.get('VERSION_CODENAME', '')}".strip()


def order_of(row):
    """Returns a key by which results are sorted, numbers in names by their value."""
    return [[(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", row[name])] for name in KEY]


def parse(text, name):
    """Returns the results of a file; fields and numbers that are wrong are errors."""
    lines = list(csv.reader(io.StringIO(text)))
    if not lines or tuple(lines[0]) != FIELDS:
        raise ValueError(f"{name}:1: wrong fields; expected {','.join(FIELDS)}, got {','.join(lines[0]) if lines else 'nothing'}")
    rows = []
    for number, line in enumerate(lines[1:], 2):
        row = dict(zip(FIELDS, line))
        counts = [int(row[field]) if len(line) == len(FIELDS) and row[field].isdigit() else -1 for field in COUNTS]
        if not 0 <= counts[0] <= counts[1] <= counts[2]:
            raise ValueError(f"{name}:{number}: wrong result; expected passed <= tried <= of, got {','.join(line)}")
        rows.append({**row, **dict(zip(COUNTS, counts))})
    return rows


def read(path):
    return parse(Path(path).read_text(encoding="utf-8"), path) if Path(path).exists() else []


def write(path, rows):
    """Replaces the file, so that a reader never sees a part."""
    partial = Path(f"{path}.partial")
    with partial.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, FIELDS, lineterminator="\n")
        table.writeheader()
        table.writerows(sorted(rows, key=order_of))
    os.replace(partial, path)


def add(path, **fields):
    """Adds a result of now in place of an older one of the same combination."""
    row = {"date": datetime.date.today().isoformat(), **fields}
    if set(row) != set(FIELDS):
        raise ValueError(f"result: wrong fields; expected {', '.join(FIELDS)}, got {', '.join(row)}")
    kept = [old for old in read(path) if any(old[name] != row[name] for name in KEY)]
    write(path, kept + [row])


def shown(row):
    """Returns the cell of a result: `all N`, N items of a sample, or how many are wrong."""
    if not row:
        return ""
    if not row["tried"]:
        return "not tried"
    if row["passed"] < row["tried"]:
        return f"**{row['tried'] - row['passed']} of {row['tried']} wrong**"
    return f"all {row['of']}" if row["tried"] == row["of"] else str(row["tried"])


def table(titles, lines):
    rows = [f"| {' | '.join(line)} |" for line in (titles, *lines)]
    return "\n".join([rows[0], "|---" * len(titles) + "|", *rows[1:]]) + "\n"


def compiling(rows):
    """Returns the table of compilers: a line for each combination with a library and a standard."""
    lines = {}
    for row in sorted((row for row in rows if row["what"] in (*COMPILING, "refused")), key=order_of):
        lines.setdefault(tuple(row[name] for name in KEY[:-1]), {})[row["what"]] = row
    result = []
    for names, found in lines.items():
        if "refused" in found:
            cells = ["refused by one error"] + [""] * (len(COMPILING) - 1)
        else:
            cells = [shown(found.get(what)) for what in COMPILING]
        tried = [row for row in found.values() if row["tried"]]
        result.append([*names, *cells, max((row["date"] for row in tried), default=""),
                       ", ".join(sorted({row["commit"] for row in tried}))])
    return table(["system", "compiler", "library", "standard", *COMPILING, "date", "commit"], result)


def packages(rows):
    """Returns the table of systems on which a package was tried."""
    found = sorted((row for row in rows if row["what"] not in (*COMPILING, "refused")), key=order_of)
    lines = [[row["system"], row["compiler"], row["what"], shown(row), row["date"] if row["tried"] else "",
              row["commit"] if row["tried"] else ""] for row in found]
    return table(["system", "compiler", "package", "steps", "date", "commit"], lines)


def rendered(page, rows):
    """Returns the page with the tables of the results."""
    for name, text in (("compilers", compiling(rows)), ("packages", packages(rows))):
        begin, end = BEGIN.format(name), END.format(name)
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"install.md: no place for the table of {name}; expected {begin.strip()} and {end.strip()}")
        page = page.partition(begin)[0] + begin + "\n" + text + "\n" + end + page.partition(end)[2]
    return page


def main(words):
    if len(words) > 2 and words[0] == "add":
        fields = dict(word.split("=", 1) for word in words[2:])
        add(words[1], **{name: int(value) if name in COUNTS else value for name, value in fields.items()})
        return 0
    if len(words) != 2 or words[0] not in ("render", "check"):
        print(__doc__, file=sys.stderr)
        return 2
    root = Path(words[1])
    page = root / "docs/install.md"
    text = page.read_text(encoding="utf-8")
    wanted = rendered(text, read(root / "docs/tried.csv"))
    if words[0] == "render":
        page.write_text(wanted, encoding="utf-8")
        return 0
    if text != wanted:
        print("docs/install.md: its tables are not those of docs/tried.csv; expected the output of "
              "`docs/site/tried.py render .`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ValueError as error:
        sys.exit(str(error))
