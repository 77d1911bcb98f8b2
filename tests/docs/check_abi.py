#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_abi.py ROOT [HEADER PAGE]: the table of docs/abi.md has the version of the binary interface that
runtime/include/kiln/runtime.h states, and the digest of that header's declarations. So a change of a declaration needs
a decision: a new version, or only a new digest in the row of a version that was not released or that the change does
not concern. HEADER and PAGE are read in place of these two files."""
import hashlib
import re
import sys
from pathlib import Path

ROW = re.compile(r"^\| (\d+) \| (\S+) \| .+ \| `([0-9a-f]{16})` \|$", re.M)


def digest_of(header):
    """Returns a digest of the declarations: without comments, white space and the version itself."""
    text = re.sub(r"/\*.*?\*/|^#define KILN_ABI_VERSION [^\n]*$", " ", header, flags=re.S | re.M)
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:16]


def check(header, page):
    """Returns what is wrong."""
    stated = re.findall(r"^#define KILN_ABI_VERSION (\d+)$", header, re.M)
    rows = ROW.findall(page)
    if len(stated) != 1 or not rows:
        return "docs/abi.md: no table of binary interfaces; expected rows of version, Kiln, change and digest"
    versions = [int(row[0]) for row in rows]
    if versions != sorted(set(versions)):
        return f"docs/abi.md: wrong order of binary interfaces; expected increasing versions, got {versions}"
    if versions[-1] != int(stated[0]):
        return f"docs/abi.md: wrong last binary interface; expected KILN_ABI_VERSION, {stated[0]}, got {versions[-1]}"
    digest = digest_of(header)
    if rows[-1][2] != digest:
        return ("kiln/runtime.h: its declarations changed; by the rules of docs/abi.md expected a new KILN_ABI_VERSION, or "
                f"only another digest of version {stated[0]} there: got {digest}")
    return ""


root = Path(sys.argv[1])
paths = sys.argv[2:] or [root / "runtime/include/kiln/runtime.h", root / "docs/abi.md"]
wrong = check(*(Path(path).read_text(encoding="utf-8") for path in paths))
if wrong:
    print(wrong)
sys.exit(1 if wrong else 0)
