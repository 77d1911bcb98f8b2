#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Compiles all that users compile with every C++ compiler, library and standard, and prints a table in Markdown: the
# specs of the examples, of dsl/SPEC.md, of tests and of the families of `kiln new`, the headers, and the programs of
# tests/dsl; then the cases of tests/compile_fail and the mistakes of tests/misuse, with the compiler's messages.
#
#   matrix.py [--root FOLDER]... [--only REGEX] [--standards 20,23,26] [--every N] [--diagnose PROGRAM] [--jobs N]
#
# The compilers are those in each --root, the root of another system, where they run by chroot as root, and the others
# on the PATH (g++-N, clang++-N). --only chooses compilers by their names. --every N checks each Nth program only, in
# each row other ones. --diagnose is kiln-diagnose, which prints the first line of a mistake.
import argparse
import concurrent.futures
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
NAME = re.compile(r"(g\+\+|clang\+\+)-(\d+)$")
OLDEST = {"g++": 12, "clang++": 16}
STANDARDS = {"20": ("c++20",), "23": ("c++23", "c++2b"), "26": ("c++26", "c++2c")}
FOLDERS = ("dsl/include", "compiler/include", ".", "examples", "examples/char_gpt", "tests/models/specs", "tests/dsl")
INCLUDES = [f"-I{SOURCE / folder}" for folder in FOLDERS]
DEFINES = ["-DGPT2_SHAPE=gpt2_small", "-DLLAMA_SHAPE=king_james"]
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror"]

# Runs a compiler of another root, which sees the source and the temporary files at their own paths.
IN_ROOT = """#!/bin/sh
exec unshare --mount sh -ec '
  root=$1 program=$2; shift 2
  for folder in {folders}; do
    mkdir -p "$root$folder"
    mount --bind "$folder" "$root$folder"
  done
  exec chroot "$root" "$program" "$@"' sh {root} /usr/bin/{name} "$@"
"""


def find_compilers(roots, only):
    """Returns the (family, version, name, root) of each compiler; root is None for those on the PATH."""
    found = {}
    places = [(root, Path(root, "usr/bin")) for root in roots]
    places += [(None, Path(folder)) for folder in os.environ["PATH"].split(os.pathsep)]
    for root, folder in places:
        for program in folder.iterdir() if folder.is_dir() else []:
            match = NAME.match(program.name)
            if match and int(match[2]) >= OLDEST[match[1]] and re.search(only, program.name):
                found.setdefault((match[1], int(match[2])), (program.name, root))
    return [(*key, *found[key]) for key in sorted(found, key=lambda key: (key[0] != "g++", key[1]))]


def programs(googletest):
    """Returns the files that compile, each with the flags that only it needs; tests if there is GoogleTest."""
    def those(ending, content, *folders):
        return [path for folder in folders for path in sorted((SOURCE / folder).rglob(ending))
                if re.search(content, path.read_text(), re.M)]

    files = those("*.cpp", r"^KILN_MODEL\(", "examples", "tests/models", "tests/ops", "tests/dsl/specs", "tests/matrix")
    headers = those("*.h", '"kiln/', "dsl/include/kiln", "compiler/include/kiln", "models")
    result = [(path, [f"-I{path.parent}"]) for path in files] + [(path, []) for path in headers]
    if googletest:
        tests = sorted((SOURCE / "tests/dsl").glob("*_test.cpp"))
        result += [(path, ["-isystem", googletest]) for path in tests]
    return result


class Row:
    """A compiler with a library and a standard."""

    def __init__(self, compiler, flags, folder):
        self.compiler, self.flags, self.folder = compiler, flags, folder
        self.environment = {**os.environ, "KILN_COMPILERS": compiler, "KILN_FLAGS": " ".join(flags), "LC_ALL": "C"}

    def run(self, command):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              env=self.environment)
        return done.returncode == 0, done.stdout

    def macros(self):
        """Returns the macros of the compiler and the library; nothing if the combination does not exist."""
        probe = self.folder / "probe.cpp"
        probe.write_text("#include <version>\n")
        works, said = self.run([self.compiler, *self.flags, "-dM", "-E", probe])
        return dict(re.findall(r"^#define (\w+) (.*)$", said, re.M)) if works else {}

    def is_refused(self):
        """Whether the language has one error for this combination."""
        probe = self.folder / "probe.cpp"
        probe.write_text('#include "kiln/compilers.h"\n')
        works, said = self.run([self.compiler, *self.flags, *INCLUDES, "-fsyntax-only", probe])
        return not works and len(re.findall(r'error: .*"kiln: ', said)) == 1

    def compile(self, program):
        path, flags = program
        steps = ["-fconstexpr-steps=100000000"] if self.compiler.startswith("clang") else []
        if path.suffix == ".h":  # alone, and twice
            header = self.folder / f"{path.parent.name}_{path.stem}.cpp"
            header.write_text(f'#include "{path}"\n#include "{path}"\n')
            path = header
        flags = [*self.flags, *WARNINGS, *steps, *DEFINES, *INCLUDES, *flags]
        return self.run([self.compiler, *flags, "-fsyntax-only", path])

    def reject(self, case):
        return self.run([SOURCE / "tests/compile_fail/check.sh", SOURCE / "dsl/include", case, self.folder])

    def diagnose(self, program, every, first):
        """Returns the numbers of correct first lines and of all, and what the others are."""
        command = [SOURCE / "tests/misuse/first_line.py", "--diagnose", program, "--compiler", self.compiler,
                   f"--flags={' '.join(self.flags)}", "--include", SOURCE / "dsl/include", "--include",
                   SOURCE / "compiler/include", "--every", str(every), "--first",
                   str(first)]
        _, said = self.run(command)
        match = re.search(r"^(\d+) mistakes, .*: (\d+) wrong$", said, re.M)
        return (int(match[1]) - int(match[2]), int(match[1]), said) if match else (0, 1, said)


def shown(right, count):
    return f"all {count}" if right == count else f"{right} of {count}"


def complain(row, what):
    print(f"{row.compiler} {' '.join(row.flags)}: {what}", file=sys.stderr, flush=True)


def check(row, work, options):
    """Checks one row; returns the cell of the table, and whether all is right."""
    first = work["rows"] % options.every
    work["rows"] += 1
    row.run([SOURCE / "tests/compile_fail/precompile.sh", SOURCE / "dsl/include", row.folder])
    cells, is_right = [], True
    for function, items in ((row.compile, work["programs"]), (row.reject, work["cases"])):
        items, right = items[first::options.every], 0
        for item, (works, said) in zip(items, work["pool"].map(function, items)):
            right += works
            if not works:
                path = item[0] if isinstance(item, tuple) else item
                lines = said.splitlines()
                lines = [line for line in lines if "error" in line or "does not say" in line] or lines
                complain(row, "\n  ".join([str(path.relative_to(SOURCE)), *(line[:300] for line in lines[:3])]))
        cells.append(shown(right, len(items)))
        is_right &= right == len(items)
    if options.diagnose:
        right, count, said = row.diagnose(options.diagnose, options.every, first)
        cells.append(shown(right, count))
        is_right &= right == count
        if right != count:
            complain(row, said)
    return "; ".join(cells), is_right


def names_of(family, macros):
    """Returns the compiler and the library with their versions."""
    version = re.search(r"\d+(\.\d+)+", macros.get("__clang_version__", macros["__VERSION__"]))[0]
    if "_LIBCPP_VERSION" in macros:
        library = f"libc++ {int(macros['_LIBCPP_VERSION']) // 10000}"
    else:
        library = f"libstdc++ {macros['_GLIBCXX_RELEASE']}"
    return f"{family.replace('clang++', 'clang')} {version}", library


def check_line(family, name, library, folder, work, options):
    """Checks a compiler with a library; returns the cells of its line, and whether all is right."""
    names, cells, is_right = [], [], True
    for standard in options.standards.split(","):
        place = folder / f"{name}{library}-{standard}"
        place.mkdir()
        cell = "no such mode"
        for value in STANDARDS[standard]:
            row = Row(name, [f"-std={value}", *library.split()], place)
            if macros := row.macros():
                names = names_of(family, macros)
                cell, works = ("refused", True) if row.is_refused() else check(row, work, options)
                is_right &= works
                break
        cells.append(cell)
        shutil.rmtree(place)
    return ([*names, *cells] if names else []), is_right


def prepare(folder, found):
    """Puts compilers of other roots on the PATH; returns what to compile."""
    tools = folder / "bin"
    tools.mkdir()
    os.environ["PATH"] = f"{tools}{os.pathsep}{os.environ['PATH']}"
    os.environ["TMPDIR"] = str(folder)  # of first_line.py
    for _, _, name, root in found:
        if root:
            folders = shlex.join([str(folder), str(SOURCE)])
            (tools / name).write_text(IN_ROOT.format(folders=folders, root=shlex.quote(root), name=name))
            (tools / name).chmod(0o755)
    googletest = None
    if Path("/usr/include/gtest").is_dir():
        googletest = folder / "include"
        shutil.copytree("/usr/include/gtest", googletest / "gtest")
    cases = sorted((SOURCE / "tests/compile_fail/cases").glob("*.cpp"))
    return {"programs": programs(googletest), "cases": cases, "rows": 0}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", action="append", default=[])
    parser.add_argument("--only", default="")
    parser.add_argument("--standards", default="20,23,26")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--diagnose")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    found = find_compilers(options.root, options.only)
    if not found:
        print("no compiler of these names is installed")
        return 77
    is_right = True
    with tempfile.TemporaryDirectory(prefix="kiln-matrix-") as folder, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = {**prepare(Path(folder), found), "pool": pool}
        titles = [f"C++{standard}" for standard in options.standards.split(",")]
        print(f"| compiler | library | {' | '.join(titles)} |\n{'|---' * (len(titles) + 2)}|", flush=True)
        for family, _, name, _ in found:
            for library in ("", "-stdlib=libc++") if family == "clang++" else ("",):
                cells, works = check_line(family, name, library, Path(folder), work, options)
                is_right &= works
                if cells:
                    print(f"| {' | '.join(cells)} |", flush=True)
        for root in options.root:
            shutil.rmtree(f"{root}{folder}", ignore_errors=True)
    return not is_right


sys.exit(main())
