# SPDX-License-Identifier: Apache-2.0
"""check_walks.py ROOT PAGE ...: walks pages that describe how to add something, and compares them with the tree.

1. Each block of code is a quote of a file (check.sh compares it), an excerpt, or commands that begin with "$ ". The
   lines of the block after <!-- excerpt: PATH --> are consecutive lines of that file, indented by as much or less; a
   line "..." leaves lines out.
2. Names in backticks exist: files and folders (relative to the root or to any folder), identifiers (in any source
   file), options. <..>, * and NAME stand for any characters.
3. <!-- complete: REGEX; users: PATH ... -->: the page names each file that has a match in the folders of product code.
   Files that only use what is added are listed as users.

4. <!-- members: PATH TYPE ... -->: the page names each field or virtual method of the types in backticks.

Prints a line for each error, and exits with 1 if there is one."""
import fnmatch
import pathlib
import re
import sys
import textwrap

PRODUCT = ("dsl", "compiler", "targets", "tools", "runtime", "cmake", "models")
SOURCES = PRODUCT + ("benchmarks", "examples", "tests")
BLOCK = re.compile(r"^```.*$")
EXCERPT = re.compile(r"^<!-- (excerpt|quote): (\S+) -->$")
COMPLETE = re.compile(r"^<!-- complete: (.+?)(?:; users:((?:\s\S+)+))? -->$", re.M)
MEMBERS = re.compile(r"^<!-- members: (\S+)((?: \S+)+) -->$", re.M)
# A virtual method, or a field.
MEMBER = re.compile(r"^  (?:virtual [^(~]*?(\w+)\(|(?!virtual|  |public|private).*?(\w+)(?: = [^;]*)?;)", re.M)
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def read(path):
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError: # such as a picture or weights
        return ""


class Tree:
    """The files of the project, with the words of all sources but the tests of documents."""

    def __init__(self, root):
        self.root = root
        self.texts = {str(path.relative_to(root)): read(path) for folder in SOURCES
                      for path in (root / folder).rglob("*")
                      if path.is_file() and path.stat().st_size < 1 << 20 and "__pycache__" not in path.parts}
        paths = [path for top in SOURCES + ("docs", ".ci") for path in (root / top).rglob("*")] + list(root.iterdir())
        self.paths = {str(path.relative_to(root)) for path in paths}
        self.words = set()
        for path, text in self.texts.items():
            if not path.startswith("tests/docs/") and not path.endswith(".md"):
                self.words.update(re.findall(r"\w+", text))
        self.options = set()
        for path, text in self.texts.items():
            if not path.startswith("tests/docs/") and not path.endswith(".md"):
                self.options.update(re.findall(r"--[a-z][a-z0-9-]*", text))
        self.options.update(re.findall(r"--[a-z][a-z0-9-]*", read(root / "dev")))

    def has_path(self, name):
        pattern = re.sub(r"<[^>]*>|\bNAME\b", "*", name.rstrip("/"))
        patterns = (pattern, "*/" + pattern, pattern + ".in", "*/" + pattern + ".in")
        return any(fnmatch.fnmatchcase(path, each) for path in self.paths for each in patterns)


def has_lines(lines, wanted):
    """Whether parts of consecutive lines, which "..." separates, are in this order in a file."""
    at, parts = 0, [[]]
    for line in wanted:
        if line.strip() == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    for part in parts:
        text = textwrap.dedent("\n".join(part))
        while at + len(part) <= len(lines) and textwrap.dedent("\n".join(lines[at:at + len(part)])) != text:
            at += 1
        if at + len(part) > len(lines):
            return False
        at += len(part)
    return True


class Page:
    def __init__(self, tree, path):
        self.tree, self.name, self.errors = tree, str(path.relative_to(tree.root)), []
        self.text = read(path)
        self.names = [] # in backticks
        self.check_blocks()
        for name in dict.fromkeys(self.names):
            self.check_name(name)
        for match in MEMBERS.finditer(self.text):
            self.check_members(match.group(1), match.group(2).split())
        for match in COMPLETE.finditer(self.text):
            self.check_complete(match.group(1), (match.group(2) or "").split())

    def fail(self, text):
        self.errors.append(f"{self.name}: {text}")

    def check_blocks(self):
        source, block, begin = None, None, 0
        for number, line in enumerate(self.text.splitlines(), 1):
            if BLOCK.match(line):
                if block is None:
                    block, begin = [], number
                    continue
                self.check_block(source, block, begin)
                source = block = None
            elif block is not None:
                block.append(line)
            elif match := EXCERPT.match(line):
                source = match.groups()
            elif line.strip():
                source = None
                self.names += re.findall(r"`([^`]+)`", line)

    def check_block(self, source, block, begin):
        if source is None:
            if not all(line.startswith(("$ ", "  ")) for line in block):
                self.fail(f"line {begin}: the block is no excerpt, quote or command")
            for line in block:
                self.names += re.findall(r"(?<=\s)--?[A-Za-z-]{2,}", line)
            return
        kind, path = source
        if path not in self.tree.texts:
            self.fail(f"line {begin}: {kind} of {path}, which is not there")
        elif kind == "excerpt" and not has_lines(self.tree.texts[path].splitlines(), block):
            self.fail(f"line {begin}: the block is not in {path}")

    def check_name(self, name):
        if name.startswith("--"):
            if name.split()[0].split("=")[0] not in self.tree.options:
                self.fail(f"there is no option {name}")
        elif re.search(r"^[\w.<>*/-]+/[\w.<>*/-]*$|^[\w<>*-]+\.(h|cpp|c|def|td|inc|py|sh|txt|json|in|mlir|cmake)$", name):
            if not self.tree.has_path(name):
                self.fail(f"there is no file or folder {name}")
        elif not name.startswith(("-", "$")) and " " not in name:
            for word in IDENTIFIER.findall(re.sub(r'"[^"]*"', "", name)):
                if "NAME" not in word and word not in self.tree.words:
                    self.fail(f"no source has {word}, of `{name}`")

    def check_members(self, path, types):
        text = re.sub(r"//.*", "", self.tree.texts.get(path, ""))
        named = set(IDENTIFIER.findall(" ".join(self.names)))
        for name in types:
            body = re.search(rf"^(?:struct|class) {name} {{\n(.*?)^}};", text, re.S | re.M)
            members = [method or field for method, field in MEMBER.findall(body.group(1))] if body else []
            if len(members) < 3:
                self.fail(f"{path} has no {name} with members")
            for member in members:
                if member not in named:
                    self.fail(f"does not name {member} of {name}")

    def check_complete(self, expression, users):
        named = [re.sub(r"<[^>]*>", "*", name) for name in self.names if "/" in name or "." in name]
        found = 0
        for path, text in self.tree.texts.items():
            if not path.startswith(PRODUCT) or path.endswith(".md") or not re.search(expression, text):
                continue
            found += 1
            stem = path.rpartition(".")[0]
            if path not in users and not any(
                    fnmatch.fnmatchcase(path, name) or fnmatch.fnmatchcase(path, "*/" + name)
                    or (name.endswith("/") and path.startswith(name))
                    or stem == name.rpartition(".")[0] for name in named):
                self.fail(f"does not name {path}, which has {expression}")
        for user in users:
            if not re.search(expression, self.tree.texts.get(user, "")):
                self.fail(f"{user} is listed as a user, but does not have {expression}")
        if found < 3:
            self.fail(f"{expression} is in too few files: {found}")


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    tree = Tree(root)
    errors = [error for page in sys.argv[2:] for error in Page(tree, pathlib.Path(page).resolve()).errors]
    print("\n".join(errors) if errors else f"{len(sys.argv) - 2} pages")
    return 1 if errors or len(sys.argv) < 3 else 0


if __name__ == "__main__":
    sys.exit(main())
