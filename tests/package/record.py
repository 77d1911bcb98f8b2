#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a test of a package on a new system, and adds its result to a file such as docs/tried.csv:

  record.py RESULTS SCRIPT PACKAGES SOURCE SUITE [COMPILER] FOLDER

The words from PACKAGES on are those of the script, bare_system.sh or another one that prints a line "== ..." before each
of its steps. Exits with the script's status; a test that is skipped, 77, gives no result."""
import re
import subprocess
import sys
from pathlib import Path

results, script, packages, source, suite, *compiler, folder = sys.argv[1:]
sys.path.insert(0, str(Path(source, "docs/site")))
import tried

SYSTEMS = {"bookworm": "Debian 12", "trixie": "Debian 13"}
FORMS = {"bare_system": "archive", "bare_npm": "npm package", "bare_container": "container"}


def version_of(root, compiler):
    """Returns the compiler of a system with its version; only its name if the system was not kept in FOLDER."""
    option = "-dumpfullversion" if compiler == "g++" else "-dumpversion"
    done = subprocess.run(["chroot", root, "/usr/bin/" + compiler, option], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
    return f"{compiler} {done.stdout.strip()}".strip()


def run():
    """Runs the script, whose output is also this program's; returns its status and the number of its steps that began."""
    begun = 0
    with subprocess.Popen([script, packages, source, suite, *compiler, folder], text=True, stdout=subprocess.PIPE) as child:
        for line in child.stdout:
            print(line, end="", flush=True)
            begun += line.startswith("== ")
    return child.returncode, begun


status, begun = run()
if status != 77:
    steps = len(re.findall(r"^step ", Path(script).read_text(), re.M))
    name = Path(script).stem
    root = Path(folder, "-".join([suite, *compiler]))
    commit = subprocess.run(["git", "-C", source, "log", "-1", "--format=%h"], text=True, stdout=subprocess.PIPE)
    is_kept = suite not in SYSTEMS and (root / "etc/os-release").exists()
    system = tried.system_of(root) if is_kept else SYSTEMS.get(suite, f"Debian {suite}")
    tried.add(results, commit=commit.stdout.strip(), system=system,
              compiler=version_of(root, compiler[0]) if compiler else "g++", library="", standard="",
              what=FORMS.get(name, name), passed=begun if status == 0 else max(begun - 1, 0), tried=steps, of=steps)
sys.exit(status)
