#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles views.cpp with a generated header, runs it, and checks the header with a compiler of older C++.
views_test.py WRITE_HEADERS"""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "compiler" / "library"))
sys.dont_write_bytecode = True
import reserved_names  # noqa: E402


def errors(command):
    result = subprocess.run(command, capture_output=True, text=True)
    return result.returncode, [line for line in result.stderr.splitlines() if "error" in line], result.stdout


def main():
    failures = []
    source = pathlib.Path(__file__).with_name("views.cpp")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True, stdout=subprocess.DEVNULL)
        for c, cxx in reserved_names.found_compilers():
            program = f"{folder}/views"
            command = [cxx, "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", f"-I{folder}", "-o", program]
            for standard in ("c++17", "c++20", "c++2b"):
                status, said, _ = errors(command + [f"-std={standard}", str(source)])
                if not status:
                    status, said, told = errors([program])
                    said += [told]
                if status:
                    failures.append(f"{cxx} -std={standard}: " + "\n".join(said[:10]))
            for language, standard, words in (("c++", "c++14", "this C++ is too old; expected C++17"),
                                              ("c++", "gnu++11", "this C++ is too old; expected C++17"),
                                              ("c", "c11", "this is no C++; expected a C++17 compiler")):
                file = pathlib.Path(folder, "old.cpp")
                file.write_text('#include "wide.hpp"\n')
                status, said, _ = errors([cxx if language == "c++" else c, "-x", language, f"-std={standard}",
                                          f"-I{folder}", "-fsyntax-only", str(file)])
                lines = [line for line in said if " error: " in line]
                if not status or len(lines) != 1 or words not in lines[0] or "wide.hpp: " not in lines[0]:
                    failures.append(f"{cxx} -std={standard} does not say only what is wanted:\n" + "\n".join(said[:5]))
    print("\n".join(failures), end="")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
