#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Compiles all that users compile with every C++ compiler, library and standard, and prints a table in Markdown: the
# specs of the examples, of dsl/SPEC.md, of tests and of the families of `kiln new`, the headers, and the programs of
# tests/dsl; then the cases of tests/compile_fail and the mistakes of tests/misuse, with the compiler's messages.
#
#   matrix.py [--root FOLDER]... [--only REGEX] [--standards 20,23,26] [--every N] [--diagnose PROGRAM] [--jobs N]
#
# The compilers are those on the PATH (g++-N, clang++-N), and those in each --root, the root of another system: its
# compilers run there by chroot, which needs root. --only chooses compilers by their names. --every N checks each Nth
# program only. --diagnose is kiln-diagnose, which prints the first line of a mistake.
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
INCLUDES = [f"-I{SOURCE / folder}" for folder in
            ("dsl/include", "compiler/include", ".", "examples", "examples/char_gpt", "tests/models/specs", "tests/dsl")]
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
    places = [(None, Path(folder)) for folder in os.environ["PATH"].split(os.pathsep)]
    places += [(root, Path(root, "usr/bin")) for root in roots]
    for root, folder in places:
        for program in folder.iterdir() if folder.is_dir() else []:
            match = NAME.match(program.name)
            if match and int(match[2]) >= OLDEST[match[1]] and re.search(only, program.name):
                found.setdefault((match[1], int(match[2])), (program.name, root))
    return [(*key, *found[key]) for key in sorted(found, key=lambda key: (key[0] != "g++", key[1]))]


def programs(googletest):
    """Returns the files that compile, each with the flags that only it needs."""
    files = [path for folder in ("examples", "tests/models", "tests/ops", "tests/dsl/specs", "tests/matrix/families")
             for path in sorted((SOURCE / folder).rglob("*.cpp")) if re.search(r"^KILN_MODEL\(", path.read_text(), re.M)]
    headers = [path for folder in ("dsl/include/kiln", "compiler/include/kiln", "models")
               for path in sorted((SOURCE / folder).rglob("*.h")) if '"kiln/' in path.read_text()]
    result = [(path, [f"-I{path.parent}"]) for path in files] + [(path, ["-x", "c++"]) for path in headers]
    if googletest:
        result += [(path, ["-isystem", googletest]) for path in sorted((SOURCE / "tests/dsl").glob("*_test.cpp"))]
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
            path, flags = header, []
        return self.run([self.compiler, *self.flags, *WARNINGS, *steps, *DEFINES, *INCLUDES, *flags, "-fsyntax-only", path])

    def reject(self, case):
        return self.run([SOURCE / "tests/compile_fail/check.sh", SOURCE / "dsl/include", case, self.folder])

    def diagnose(self, program, every):
        """Returns the number of correct first lines, of all, and what the others are."""
        command = [SOURCE / "tests/misuse/first_line.py", "--diagnose", program, "--compiler", self.compiler,
                   f"--flags={' '.join(self.flags)}", "--include", SOURCE / "dsl/include", "--include",
                   SOURCE / "compiler/include", "--every", str(every)]
        _, said = self.run(command)
        match = re.search(r"^(\d+) mistakes, .*: (\d+) wrong$", said, re.M)
        return (int(match[1]) - int(match[2]), int(match[1]), said) if match else (0, 1, said)


def shown(right, count):
    return f"all {count}" if right == count else f"{right} of {count}"


def check(pool, row, work, options):
    """Checks one row; returns the cell of the table, and whether all is right."""
    cells, failed = [], False
    for kind, function, items in (("specs", row.compile, work["programs"]), ("messages", row.reject, work["cases"])):
        if kind == "messages":
            row.run([SOURCE / "tests/compile_fail/precompile.sh", SOURCE / "dsl/include", row.folder])
        right = 0
        for item, (works, said) in zip(items, pool.map(function, items)):
            right += works
            if not works:
                path = item[0] if isinstance(item, tuple) else item
                lines = [line for line in said.splitlines() if "error" in line or "does not say" in line] or said.splitlines()
                print(f"{row.compiler} {' '.join(row.flags)}: {path.relative_to(SOURCE)}\n  "
                      + "\n  ".join(line[:300] for line in lines[:3]), file=sys.stderr, flush=True)
        cells.append(shown(right, len(items)))
        failed |= right != len(items)
    if options.diagnose:
        right, count, said = row.diagnose(options.diagnose, options.every)
        cells.append(shown(right, count))
        if right != count:
            failed = True
            print(f"{row.compiler} {' '.join(row.flags)}:\n{said}", file=sys.stderr, flush=True)
    return "; ".join(cells), failed


def library_of(macros):
    if "_LIBCPP_VERSION" in macros:
        return f"libc++ {int(macros['_LIBCPP_VERSION']) // 10000}"
    return f"libstdc++ {macros.get('_GLIBCXX_RELEASE', '?')}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", action="append", default=[])
    parser.add_argument("--only", default="")
    parser.add_argument("--standards", default="20,23,26")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--diagnose")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    standards = options.standards.split(",")
    found = find_compilers(options.root, options.only)
    if not found:
        print("no compiler of these names is installed")
        return 77
    with tempfile.TemporaryDirectory(prefix="kiln-matrix-") as text, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        folder = Path(text)
        tools = folder / "bin"
        tools.mkdir()
        os.environ["PATH"] = f"{tools}{os.pathsep}{os.environ['PATH']}"
        os.environ["TMPDIR"] = text  # of first_line.py
        for _, _, name, root in found:
            if root:
                (tools / name).write_text(IN_ROOT.format(folders=shlex.join([text, str(SOURCE)]), root=shlex.quote(root), name=name))
                (tools / name).chmod(0o755)
        googletest = None
        if Path("/usr/include/gtest").is_dir():
            googletest = str(folder / "include")
            shutil.copytree("/usr/include/gtest", folder / "include/gtest")
        work = {"programs": programs(googletest)[::options.every],
                "cases": sorted((SOURCE / "tests/compile_fail/cases").glob("*.cpp"))[::options.every]}
        failed = False
        print("| compiler | library | " + " | ".join(f"C++{standard}" for standard in standards) + " |")
        print("|---" * (len(standards) + 2) + "|", flush=True)
        for family, _, name, root in found:
            for library in ([], ["-stdlib=libc++"]) if family == "clang++" else ([],):
                cells, names = [], None
                for standard in standards:
                    place = folder / f"{name}{''.join(library)}-{standard}"
                    place.mkdir()
                    rows = [Row(name, [f"-std={value}", *library], place) for value in STANDARDS[standard]]
                    row, macros = next(((row, macros) for row in rows if (macros := row.macros())), (None, None))
                    if row:
                        version = macros.get("__clang_version__") or macros.get("__VERSION__", "")
                        number = re.search(r"\d+\.\d+(\.\d+)?", version)
                        names = f"{family.rstrip('+') if family == 'clang++' else family} {number[0] if number else ''}", library_of(macros)
                        cell, wrong = ("refused", False) if row.is_refused() else check(pool, row, work, options)
                        failed |= wrong
                    cells.append(cell if row else "no such mode")
                    shutil.rmtree(place)
                if names:
                    print(f"| {names[0]} | {names[1]} | " + " | ".join(cells) + " |", flush=True)
    for root in options.root:
        shutil.rmtree(f"{root}{text}", ignore_errors=True)
    return failed


sys.exit(main())
