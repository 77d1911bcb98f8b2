#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Compiles all that users compile with every C++ compiler, library and standard, and prints a table in Markdown: the
# specs of the examples, of dsl/SPEC.md, of tests and of the families of `kiln new`, the headers, and the programs of
# tests/dsl; then the cases of tests/compile_fail and the mistakes of tests/misuse, with the compiler's messages.
#
#   matrix.py [--root FOLDER]... [--only REGEX] [--standards 20,23,26] [--every N] [--diagnose PROGRAM] [--jobs N]
#     [--results FILE]
#
# The compilers are those in each --root, the root of another system, where they run by chroot as root, and the others
# on the PATH (g++-N, clang++-N). --only chooses compilers by their names. --every N checks each Nth program only, in
# each row other ones. --diagnose is kiln-diagnose, which prints the first line of a mistake.
#
# Each result is added to --results, such as docs/tried.csv, at once (docs/site/tried.py), with the last commit that
# changed what is compiled; results of that commit which are already there are not repeated, unless they are of a
# smaller sample: so a run with --every 8 gives all rows early, and a run without it completes them.
#
# The oldest and the newest standard of a compiler are checked completely. A standard between them is a sample if each
# of its feature-test macros has the value of one of these two, so that it has no other headers; and libc++ is a sample
# of the messages, which are the compiler's.
import argparse
import concurrent.futures
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "docs/site"))
import tried

NAME = re.compile(r"(g\+\+|clang\+\+)-(\d+)$")
OLDEST = {"g++": 12, "clang++": 16}
STANDARDS = {"20": ("c++20",), "23": ("c++23", "c++2b"), "26": ("c++26", "c++2c")}
FOLDERS = ("dsl/include", "compiler/include", ".", "examples", "examples/char_gpt", "tests/models/specs", "tests/dsl")
INCLUDES = [f"-I{SOURCE / folder}" for folder in FOLDERS]
DEFINES = ["-DGPT2_SHAPE=gpt2_small", "-DLLAMA_SHAPE=king_james"]
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
COMPILED = ("compiler/include", "dsl/include", "examples", "models", "tests/compile_fail", "tests/dsl",
            "tests/matrix/families", "tests/misuse", "tests/models", "tests/ops")
KINDS = {"programs": 0, "first lines": 2, "messages": 3} # how many phases later, since a run may be interrupted
SAMPLE = 8 # the messages of a second library, and all of a standard between two others
NEW_MOUNTS = 0x00020000 # CLONE_NEWNS of <sched.h>


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

    def __init__(self, family, name, root, flags, standard, folder):
        self.family, self.compiler, self.flags, self.folder = family.replace("clang++", "clang"), name, flags, folder
        self.system, self.standard = tried.system_of(root), f"C++{standard}"
        self.environment = {**os.environ, "KILN_COMPILERS": name, "KILN_FLAGS": " ".join(flags), "LC_ALL": "C"}
        self.folder.mkdir()
        self.features = self.macros()
        self.is_sample = False  # of the programs, too

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

    def names(self):
        """Returns the compiler and the library with their versions."""
        macros = self.features
        version = re.search(r"\d+(\.\d+)+", macros.get("__clang_version__", macros["__VERSION__"]))[0]
        if "_LIBCPP_VERSION" in macros:
            return f"{self.family} {version}", f"libc++ {int(macros['_LIBCPP_VERSION']) // 10000}"
        return f"{self.family} {version}", f"libstdc++ {macros['_GLIBCXX_RELEASE']}"

    def is_between(self, older, newer):
        """Whether each feature-test macro has a value of one of two other standards."""
        return all(value in (older.features.get(name), newer.features.get(name))
                   for name, value in self.features.items() if name.startswith("__cpp_"))

    def is_refused(self):
        """Whether the language has one error for this combination."""
        probe = self.folder / "probe.cpp"
        probe.write_text('#include "kiln/compilers.h"\n')
        works, said = self.run([self.compiler, *self.flags, *INCLUDES, "-fsyntax-only", probe])
        return not works and len(re.findall(r'error: .*"kiln: ', said)) == 1

    def precompile(self):
        """Precompiles the header of the DSL for programs and cases, which halves their time."""
        self.folder.mkdir(exist_ok=True)
        self.run([SOURCE / "tests/compile_fail/precompile.sh", SOURCE / "dsl/include", self.folder])

    def header(self):
        return ["-include", str(self.folder / self.compiler / "dsl.h")]

    def compile(self, program):
        path, flags = program
        steps = ["-fconstexpr-steps=100000000"] if self.compiler.startswith("clang") else []
        if path.suffix == ".h":  # alone, and twice
            header = self.folder / f"{path.parent.name}_{path.stem}.cpp"
            header.write_text(f'#include "{path}"\n#include "{path}"\n')
            path = header
        else:
            flags = [*flags, *self.header()]
        flags = [*self.flags, *WARNINGS, *steps, *DEFINES, *INCLUDES, *flags]
        return self.run([self.compiler, *flags, "-fsyntax-only", path])

    def reject(self, case):
        return self.run([SOURCE / "tests/compile_fail/check.sh", SOURCE / "dsl/include", case, self.folder])

    def diagnose(self, program, every, first):
        """Returns the numbers of correct first lines and of all, and what the others are."""
        flags = " ".join([*self.flags, *self.header()])
        command = [SOURCE / "tests/misuse/first_line.py", "--diagnose", program, "--compiler", self.compiler,
                   f"--flags={flags}", "--include", SOURCE / "dsl/include", "--include",
                   SOURCE / "compiler/include", "--every", str(every), "--first", str(first)]
        _, said = self.run(command)
        match = re.search(r"^(\d+) mistakes, .*: (\d+) wrong$", said, re.M)
        return (max(int(match[1]) - int(match[2]), 0), int(match[1]), said) if match else (0, 1, said)


class Results:
    """The results of a run, which are also added to a file."""

    def __init__(self, path):
        self.path, self.rows, self.is_right = path, [], True
        last = subprocess.run(["git", "-C", SOURCE, "log", "-1", "--format=%h", "--", *COMPILED], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.commit = last.stdout.strip()

    def fields(self, row, what):
        compiler, library = row.names()
        return {"system": row.system, "compiler": compiler, "library": library, "standard": row.standard, "what": what}

    def is_known(self, row, what, count):
        """Whether the file has a result of the same commit, of at least so many items."""
        fields = {**self.fields(row, what), "commit": self.commit}
        found = [old for old in tried.read(self.path) if fields.items() <= old.items()] if self.path else []
        return any(old["tried"] >= count for old in found)

    def plan(self, row, kinds):
        """Adds to the file that a row exists, unless it has a result."""
        known = tried.read(self.path) if self.path else []
        for what, of in kinds.items():
            fields = self.fields(row, what)
            if self.path and not any(fields.items() <= old.items() for old in known):
                tried.add(self.path, **fields, commit=self.commit, passed=0, tried=0, of=of)

    def add(self, row, what, passed, count, of):
        result = {**self.fields(row, what), "commit": self.commit, "passed": passed, "tried": count, "of": of}
        self.rows.append({**result, "date": ""})
        self.is_right &= passed == count
        if self.path:
            tried.add(self.path, **result)


def complain(row, what):
    print(f"{row.compiler} {' '.join(row.flags)}: {what}", file=sys.stderr, flush=True)


def check_items(row, what, function, items, every, first, work):
    """Checks the programs or the cases of a row."""
    items, count, right = items[first % every::every], len(items), 0
    for item, (works, said) in zip(items, work["pool"].map(function, items)):
        right += works
        if not works:
            path = item[0] if isinstance(item, tuple) else item
            lines = said.splitlines()
            lines = [line for line in lines if "error" in line or "does not say" in line] or lines
            complain(row, "\n  ".join([str(path.relative_to(SOURCE)), *(line[:300] for line in lines[:3])]))
    work["results"].add(row, what, right, len(items), count)


def check(row, what, work, options):
    """Checks the programs, the first lines or the messages of a row, in full or as a sample, unless they are known."""
    first, results = work["rows"], work["results"]
    work["rows"] += 1
    is_sample = row.is_sample or (what != "programs" and "-stdlib=libc++" in row.flags)
    every = options.every * (SAMPLE if is_sample else 1)
    if what == "first lines" and not options.diagnose or results.is_known(row, what, work["kinds"][what] // every or 1):
        return
    row.precompile()
    if what == "programs":
        check_items(row, what, row.compile, work["programs"], every, first, work)
    elif what == "messages":
        check_items(row, what, row.reject, work["cases"], every, first, work)
    else:
        right, count, said = row.diagnose(options.diagnose, every, first % every)
        results.add(row, what, right, count, work["kinds"][what])
        if right != count:
            complain(row, said)
    shutil.rmtree(row.folder)


def find_rows(found, folder, options):
    """Returns all rows with their phases: the oldest and the newest standard of each compiler, the same with libc++,
    and the standards between."""
    rows = []
    for family, _, name, root in found:
        for library in ([], ["-stdlib=libc++"]) if family == "clang++" else ([],):
            line = []
            for standard in options.standards.split(","):
                for value in STANDARDS[standard]:
                    place = folder / f"{name}{''.join(library)}-{value}"
                    row = Row(family, name, root, [f"-std={value}", *library], standard, place)
                    if row.features:
                        line.append(row)
                        break
            for index, row in enumerate(line):
                is_between = 0 < index < len(line) - 1
                row.is_sample = is_between and row.is_between(line[0], line[-1])
                phase = 4 if is_between else (index > 0) + 2 * len(library)
                rows.append((phase, row))
    return rows


def enter(roots, folder):
    """Makes the source and the temporary files visible in other roots, at their own paths, for this process only."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_MOUNTS):
        sys.exit(f"matrix.py: cannot mount folders in other roots: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for root in roots:
        for place in (folder, SOURCE):
            Path(f"{root}{place}").mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "--bind", place, f"{root}{place}"], check=True)


def prepare(folder, found, options):
    """Puts compilers of other roots on the PATH; returns what to compile."""
    tools = folder / "bin"
    tools.mkdir()
    os.environ["PATH"] = f"{tools}{os.pathsep}{os.environ['PATH']}"
    os.environ["TMPDIR"] = str(folder)  # of first_line.py
    for _, _, name, root in found:
        if root:
            (tools / name).write_text(f"#!/bin/sh\nexec chroot '{root}' /usr/bin/{name} \"$@\"\n")
            (tools / name).chmod(0o755)
    googletest = None
    if Path("/usr/include/gtest").is_dir():
        googletest = folder / "include"
        shutil.copytree("/usr/include/gtest", googletest / "gtest")
    cases = sorted((SOURCE / "tests/compile_fail/cases").glob("*.cpp"))
    mistakes = subprocess.run([SOURCE / "tests/misuse/first_line.py", "--count"], text=True, stdout=subprocess.PIPE)
    work = {"programs": programs(googletest), "cases": cases, "rows": 0, "results": Results(options.results)}
    work["kinds"] = {"programs": len(work["programs"]), "first lines": int(mistakes.stdout), "messages": len(cases)}
    return work


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", action="append", default=[])
    parser.add_argument("--only", default="")
    parser.add_argument("--standards", default="20,23,26")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--diagnose")
    parser.add_argument("--results")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    found = find_compilers(options.root, options.only)
    if not found:
        print("no compiler of these names is installed")
        return 77
    with tempfile.TemporaryDirectory(prefix="kiln-matrix-") as folder, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        if options.root:
            enter(options.root, folder)
        work = {**prepare(Path(folder), found, options), "pool": pool}
        results = work["results"]
        tasks = []
        for phase, row in find_rows(found, Path(folder), options):
            if row.is_refused():
                results.add(row, "refused", 1, 1, 1)
                continue
            results.plan(row, work["kinds"])
            tasks += [(phase + delay, row, what) for what, delay in KINDS.items()]
        for _, row, what in sorted(tasks, key=lambda task: task[0]):
            check(row, what, work, options)
        print(tried.compiling(results.rows))
        for root in options.root:
            subprocess.run(["umount", f"{root}{folder}", f"{root}{SOURCE}"], check=True)
            os.rmdir(f"{root}{folder}")
    return not results.is_right


if __name__ == "__main__":
    sys.exit(main())
