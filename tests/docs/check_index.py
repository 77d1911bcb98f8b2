# SPDX-License-Identifier: Apache-2.0
"""check_index.py ROOT [SPEC.md] [--write]: checks the index of operations in dsl/SPEC.md: a table by chapter, whose
links are defined below it.

1. Each name in an operation's heading, which has lower-case names only, is defined as a link to that heading; so are
   all rows of ops.def, and all functions of the DSL that trace operations.
2. Each link leads to a section that has its name in the heading or in backticks.
3. The definitions are in alphabetical order, and each is there once.
4. The table has each name in the row of the chapter that its link leads to. --write writes the table.
5. The other links within the document lead to headings.

Prints a line for each error, and exits with 1 if there is one."""
import pathlib
import re
import sys

INDEX = "Index of operations"
WIDTH = 120


def anchor_of(title):
    """Returns GitHub's anchor of a heading."""
    return re.sub(r"[^a-z0-9_ -]", "", title.lower()).replace(" ", "-")


class Spec:
    """Headings, sections and links of the document."""

    def __init__(self, text):
        self.chapters, self.sections, self.operations = {}, {}, {}
        self.definitions, self.links = [], []
        chapter = section = ""
        is_code = False
        for number, line in enumerate(text.splitlines(), 1):
            if re.match(r" *```", line):
                is_code = not is_code
            elif is_code:
                continue
            elif match := re.match(r"(##+) (.*)", line):
                title, section = match.group(2), anchor_of(match.group(2))
                chapter = title if match.group(1) == "##" else chapter
                self.chapters[section], self.sections[section] = chapter, " " + title + " "
                if match.group(1) == "###" and re.fullmatch(r"[a-z0-9_ ]+", title):
                    self.operations.update({name: section for name in title.split()})
            elif (match := re.match(r"\[(\w+)\]: #(\S+)$", line)) and chapter == INDEX:
                self.definitions.append(match.groups())
            else:
                self.links += [(number, anchor) for anchor in re.findall(r"\]\(#([^)]*)\)", line)]
                self.sections[section] = self.sections.get(section, "") + line + " "
        self.table = re.findall(r"^\|.*\|$", text.partition("## " + INDEX)[2].partition("\n## ")[0], re.M)

    def make_table(self):
        """Returns the lines of the table that the definitions imply."""
        rows = {}
        for name, anchor in self.definitions:
            rows.setdefault(self.chapters.get(anchor, ""), []).append(f"[{name}]")
        lines = ["| kind | operations |", "|---|---|"]
        for chapter in dict.fromkeys(self.chapters.values()):
            lead, names = f"[{chapter}](#{anchor_of(chapter)})", rows.get(chapter, [])
            while names:
                taken = 1
                while taken < len(names) and len(f"| {lead} | {', '.join(names[:taken + 1])} |") <= WIDTH:
                    taken += 1
                lines.append(f"| {lead} | {', '.join(names[:taken])} |".replace("|  |", "| |"))
                lead, names = "", names[taken:]
        return lines


def find_functions(root):
    """Returns the functions of the DSL that trace operations: those outside of classes and `detail` with a Site."""
    names = set()
    for header in (root / "dsl/include/kiln").glob("*.h"):
        text = re.sub(r"^namespace detail \{.*?^\} // namespace detail", "", header.read_text(), flags=re.S | re.M)
        for match in re.finditer(r"^(?:template <[^\n]*> )?constexpr [\w:]+ (\w+)\(([^{;]*)\)[^{;]*\{", text, re.M):
            if "Site site" in match.group(2):
                names.add(match.group(1))
    return names


def check(root, spec):
    errors, defined = [], dict(spec.definitions)
    table = (root / "dsl/include/kiln/ops.def").read_text()
    rows = set(re.findall(r"^KILN_(?:OP|UNARY|BINARY|COMPARISON|LOGIC)\((\w+)[,)]", table, re.M))
    functions = find_functions(root)
    if min(len(rows), len(functions), len(defined)) < 50:
        errors.append(f"found too few: rows of ops.def {len(rows)}, functions {len(functions)}, entries {len(defined)}")
    for name in sorted(rows - spec.operations.keys()):
        errors.append(f"{name}: a row of ops.def, but there is no heading")
    for name in sorted(functions - defined.keys()):
        errors.append(f"{name}: a function of the DSL, but not in the index")
    for name, section in spec.operations.items():
        if name not in defined:
            errors.append(f"{name}: a heading, but not in the index")
        elif defined[name] != section:
            errors.append(f"{name}: its entry leads to {defined[name]}, not to its heading")
    last = ""
    for name, anchor in spec.definitions:
        if name <= last:
            errors.append(f"{name}: not after {last} in the index")
        last = name
        if anchor not in spec.sections:
            errors.append(f"{name}: in the index, but there is no heading {anchor}")
        elif spec.operations.get(name) != anchor and not re.search(rf"`{name}[`(<]", spec.sections[anchor]):
            errors.append(f"{name}: its entry leads to {anchor}, which does not name it")
    if spec.table != spec.make_table():
        errors.append("the table of the index is not that of its entries: run check_index.py ROOT --write")
    errors += [f"line {line}: there is no heading {anchor}" for line, anchor in spec.links if anchor not in spec.sections]
    return errors


def main():
    paths = [word for word in sys.argv[1:] if word != "--write"]
    root = pathlib.Path(paths[0])
    path = pathlib.Path(paths[1]) if len(paths) > 1 else root / "dsl/SPEC.md"
    text = path.read_text()
    spec = Spec(text)
    if "--write" in sys.argv:
        path.write_text(text.replace("\n".join(spec.table), "\n".join(spec.make_table())))
        return 0
    errors = check(root, spec)
    if errors:
        print("\n".join(errors))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
