#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""damage_library.py FOLDER NAME [plain]: checks that NAME_selftest passes for the library of the folder, and fails if a
function of the selected instruction set does nothing, or if a byte of the embedded weights is changed. A plain library
has no embedded weights."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM = """
#include "{name}.h"
#include <stdio.h>
int main(void) {{
  kiln_error_t error = {{KILN_OK, ""}};
  {name}_t *model = NULL;
  if ({name}_create(NULL, &model, &error) == KILN_OK)
    printf("%s\\n", {name}_target(model));
  {name}_destroy(model);
  kiln_status_t status = {name}_selftest(NULL, &error);
  printf("%s\\n", error.message);
  return status;
}}
"""
FAILED = 24  # KILN_SELFTEST_FAILED


def sections(program):
    """Returns the sections of an ELF file: name -> (address, offset in the file)."""
    found = {}
    for line in subprocess.check_output(["objdump", "-h", "-w", program], text=True).splitlines():
        words = line.split()
        if len(words) > 5 and words[0].isdigit():
            found[words[1]] = (int(words[3], 16), int(words[5], 16))
    return found


def symbols(program):
    """Yields the symbols of an ELF file: (name, section, address, bytes)."""
    for line in subprocess.check_output(["objdump", "-t", "-w", program], text=True).splitlines():
        match = re.match(r"([0-9a-f]+) .{7} (\S+)\s+([0-9a-f]+)\s+(?:\.hidden\s+)?(\S+)$", line)
        if match:
            yield match[4], match[2], int(match[1], 16), int(match[3], 16)


def run(program):
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout.splitlines()


def main(folder, name, form="embedded"):
    work = pathlib.Path(tempfile.mkdtemp())
    (work / "main.c").write_text(PROGRAM.format(name=name))
    program = work / "program"
    subprocess.check_call([os.environ.get("CC", "cc"), "-std=c11", "-no-pie", "-pthread", "-I", folder, work / "main.c",
                           f"{folder}/lib{name}.a", "-lm", "-o", program])
    status, lines = run(program)
    if status != 0:
        sys.exit(f"the undamaged library: wrong status; expected 0, got {status}: {lines}")
    prefix = f"{name}_{lines[0].replace('-', '_')}_"
    where = sections(program)
    intact = program.read_bytes()
    failures = []

    def damage(what, offset, replacement):
        program.write_bytes(intact[:offset] + replacement + intact[offset + len(replacement):])
        status, lines = run(program)
        print(what, status, *lines[1:])
        if status != FAILED:
            failures.append(f"{what}: {status}")

    functions = weights = 0
    for symbol, section, address, size in sorted(symbols(program)):
        if section not in where:
            continue
        start, begins = where[section]
        offset = address - start + begins
        if symbol.startswith(prefix) and size > 3:
            functions += 1
            damage(symbol, offset, b"\x31\xc0\xc3")  # xor eax, eax; ret
        elif symbol == f"{name}_embedded_weights":
            # A table of pointers; the program is loaded at its link address.
            copies = {int.from_bytes(intact[offset + i:offset + i + 8], "little") for i in range(0, size, 8)}
            for copy in copies:
                section_of = next(s for s in where.values() if s[0] <= copy < s[0] + 2**20 and s[0] > 0)
                weights += 1
                at = copy - section_of[0] + section_of[1] + 5
                damage(f"weights at {copy:#x}", at, bytes([intact[at] ^ 1]))
    if not functions or bool(weights) != (form == "embedded"):
        sys.exit(f"wrong contents; expected functions and weights of the form {form}, got {functions} and {weights}")
    if failures:
        sys.exit(f"self-test: damage not found; expected all to be found, got none for {failures}")
    print(f"{functions} functions and {weights} copies of the weights: all damage was found")


if __name__ == "__main__":
    main(*sys.argv[1:])
