#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_versions.py ROOT: the versions that documents state.

1. The changelog begins with the version of the project, and commands in documents name packages of this version.
2. The table of docs/abi.md ends with the version of the binary interface that runtime/include/kiln/runtime.h states, and
   with the digest of that header's declarations. So a change of a declaration needs a decision: a new version, or only a
   new digest, if the version was not released or the rules of docs/abi.md do not ask for another."""
import hashlib
import re
import sys
from pathlib import Path

ROW = re.compile(r"^\| (\d+) \| (\S+) \| .+ \| `([0-9a-f]{16})` \|$", re.M)
PACKAGE = re.compile(r"\bkiln[-_](?:compiler-)?(\d+\.\d+\.\d+)")


def digest_of(header):
    """Returns a digest of the declarations: without comments, white space and the version itself."""
    text = re.sub(r"/\*.*?\*/|^#define KILN_ABI_VERSION [^\n]*$", " ", header, flags=re.S | re.M)
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:16]


def check_project(read):
    """Returns what is wrong with the version of the project."""
    project = re.search(r"^project\(Kiln VERSION (\d+\.\d+\.\d+)", read("CMakeLists.txt"), re.M)
    if not project:
        return "CMakeLists.txt: no version; expected project(Kiln VERSION MAJOR.MINOR.PATCH"
    first = re.search(r"^## (\S+?),? ", read("CHANGELOG.md"), re.M)
    if not first or first[1] != project[1]:
        return f"CHANGELOG.md: wrong first version; expected {project[1]}, got {first[1] if first else 'none'}"
    for page in ("docs/install.md", "cmake/README.md"):
        for version in PACKAGE.findall(read(page)):
            if version != project[1]:
                return f"{page}: wrong version of a package; expected {project[1]}, got {version}"
    return ""


def check_interface(read):
    """Returns what is wrong with the version of the binary interface."""
    header = read("runtime/include/kiln/runtime.h")
    stated = re.findall(r"^#define KILN_ABI_VERSION (\d+)$", header, re.M)
    rows = ROW.findall(read("docs/abi.md"))
    if len(stated) != 1 or not rows:
        return "docs/abi.md: no table of binary interfaces; expected rows of version, Kiln, change and digest"
    versions = [int(row[0]) for row in rows]
    if versions != sorted(set(versions)):
        return f"docs/abi.md: wrong order of binary interfaces; expected increasing versions, got {versions}"
    if versions[-1] != int(stated[0]):
        return f"docs/abi.md: wrong last binary interface; expected KILN_ABI_VERSION, {stated[0]}, got {versions[-1]}"
    if rows[-1][2] != (digest := digest_of(header)):
        return ("kiln/runtime.h: its declarations changed; by the rules of docs/abi.md expected a new KILN_ABI_VERSION, or "
                f"only another digest of version {stated[0]} there: got {digest}")
    return ""


def read_file(path):
    return Path(sys.argv[1], path).read_text(encoding="utf-8")


errors = [error for error in (check_project(read_file), check_interface(read_file)) if error]
print("\n".join(errors), end="\n" if errors else "")
sys.exit(1 if errors else 0)
