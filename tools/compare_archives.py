#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_archives.py OLD NEW: shows whether a change of the compiler alters the libraries that it generates.

OLD and NEW are build folders, or listings that `compare_archives.py BUILD > FILE` wrote. Members of archives are
compared by the bytes of their code and data, without symbol names, relocations and notes; members in other formats than
ELF by all of their bytes. A model's own members are compared, not those of the run time. The names of members may
differ. Exits with 1 if an archive of both has other members.
"""
import collections
import hashlib
import pathlib
import re
import struct
import sys

CODE_AND_DATA, ALLOCATED = 1, 2  # SHT_PROGBITS, SHF_ALLOC
IGNORED = (b".note", b".rodata.str", b".comment", b".eh_frame")


def members(archive):
    """Yields the names and bytes of an archive's members."""
    data, at, names = archive.read_bytes(), 8, b""
    while at + 60 <= len(data):
        name, size = data[at : at + 16].rstrip(), int(data[at + 48 : at + 58])
        body = data[at + 60 : at + 60 + size]
        if name == b"//":
            names = body
        elif name not in (b"/", b"/SYM64/"):
            if name[:1] == b"/":
                # A long name ends with a line break, or a zero in archives for Windows.
                name = re.split(rb"[\n\0]", names[int(name[1:]) :], maxsplit=1)[0]
            elif name[:3] == b"#1/":  # of macOS: the name precedes the bytes
                length = int(name[3:])
                name, body = body[:length].rstrip(b"\0"), body[length:]
            yield name.rstrip(b"/").decode(), body
        at += 60 + size + size % 2


def digest(member):
    """Returns a hash of a member's code and data."""
    if member[:5] != b"\x7fELF\x02":
        return hashlib.sha256(member).hexdigest()[:16]
    (table,) = struct.unpack_from("<Q", member, 40)
    entry_bytes, count, names_index = struct.unpack_from("<HHH", member, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", member, table + i * entry_bytes) for i in range(count)]
    names, parts = headers[names_index][4], []
    for name_at, kind, flags, _, offset, size, *_ in headers:
        name = member[names + name_at : member.index(b"\0", names + name_at)]
        if kind == CODE_AND_DATA and flags & ALLOCATED and not name.startswith(IGNORED):
            parts.append(hashlib.sha256(member[offset : offset + size]).digest())
    return hashlib.sha256(b"".join(sorted(parts))).hexdigest()[:16]


def listing(source):
    """Returns (archive, member, hash) of each model's members in a build folder, or of those in a listing."""
    source = pathlib.Path(source)
    if source.is_file():
        return [tuple(line.split()) for line in source.read_text().splitlines()]
    found = []
    for archive in sorted(source.rglob("lib*.a")):
        model = archive.name[3:-2]
        if (archive.parent / f"{model}.manifest.json").exists():
            found += [(str(archive.relative_to(source)), name, digest(body)) for name, body in members(archive)
                      if not name.startswith("kiln_")]  # fmt: skip
    return found


def main():
    if len(sys.argv) == 2:
        print("\n".join(" ".join(row) for row in listing(sys.argv[1])))
        return 0
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sides = []
    for source in sys.argv[1:]:
        side = collections.defaultdict(list)
        for archive, name, value in listing(source):
            side[archive].append((value, name))
        sides.append(side)
    old, new = sides
    both = sorted(old.keys() & new.keys())
    equal = different = 0
    for archive in both:
        hashes = [collections.Counter(value for value, _ in side[archive]) for side in sides]
        equal += (hashes[0] & hashes[1]).total()
        for text, side, values in (("old", old, hashes[0] - hashes[1]), ("new", new, hashes[1] - hashes[0])):
            for value, name in side[archive]:
                if value in values:
                    different += 1
                    print(f"{archive}: {text}: {name}")
    alone = len(old.keys() ^ new.keys())
    print(f"{len(both)} archives, {equal} members are the same, {different} differ; {alone} archives are on one side only")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
