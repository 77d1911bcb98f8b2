#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Joins libraries of one model for Apple's systems to an XCFramework, which Xcode links and imports from Swift.

  xcframework.py OUTPUT.xcframework FOLDER ...

Each FOLDER is the output folder of one `kiln compile` with a target of macOS, iOS or the iOS simulator. For each
system there is one universal archive, and headers that include those of the architecture that is compiled for: the
sizes that they state differ. It needs neither Xcode nor macOS.
"""
import argparse
import pathlib
import plistlib
import shutil
import struct
import sys

ARCHITECTURES = {0x01000007: "x86_64", 0x0100000C: "arm64"}
# By the platform of LC_BUILD_VERSION: the system, and its variant
PLATFORMS = {1: ("macos", None), 2: ("ios", None), 7: ("ios", "simulator")}
LC_BUILD_VERSION = 0x32
MACH_O_64 = 0xFEEDFACF


class Mistake(Exception):
    """A mistake of the user."""


def members(archive, path):
    """Yields the contents of the members of a Darwin archive."""
    if not archive.startswith(b"!<arch>\n"):
        raise Mistake(f"{path}: not an archive")
    at = 8
    while at + 60 <= len(archive):
        name, size = archive[at:at + 16].decode("latin-1"), int(archive[at + 48:at + 58])
        skipped = int(name[3:]) if name.startswith("#1/") else 0  # the name is at the beginning of the contents
        yield archive[at + 60 + skipped:at + 60 + size]
        at += 60 + size + size % 2


def build_platform(member):
    """Returns the platform that an object states, or None: Halide's LLVM states none for Intel Macs."""
    at = 32
    for _ in range(struct.unpack_from("<I", member, 16)[0]):
        command, size, platform = struct.unpack_from("<III", member, at)
        if command == LC_BUILD_VERSION:
            return platform
        at += size
    return None


def identify(path):
    """Returns the architecture and the platform of an archive."""
    cpus, platforms = set(), set()
    for member in members(path.read_bytes(), path):
        if len(member) >= 32 and struct.unpack_from("<I", member)[0] == MACH_O_64:
            cpus.add(struct.unpack_from("<I", member, 4)[0])
            platforms.add(build_platform(member))
    platforms.discard(None)
    if len(cpus) != 1 or len(platforms) != 1 or not cpus <= ARCHITECTURES.keys() or not platforms <= PLATFORMS.keys():
        raise Mistake(f"{path}: built for another system; expected targets of macOS, iOS or the iOS simulator")
    return ARCHITECTURES[cpus.pop()], platforms.pop()


def universal(archives):
    """Returns a universal file of archives, by architecture."""
    cpus = {name: cpu for cpu, name in ARCHITECTURES.items()}
    alignment = 14  # 16 KiB, the larger page size
    header, contents, at = struct.pack(">II", 0xCAFEBABE, len(archives)), b"", 1 << alignment
    for architecture, archive in sorted(archives.items()):
        subtype = 3 if architecture == "x86_64" else 0  # CPU_SUBTYPE_X86_64_ALL, CPU_SUBTYPE_ARM64_ALL
        header += struct.pack(">IIIII", cpus[architecture], subtype, at, len(archive), alignment)
        padding = -len(archive) % (1 << alignment)
        contents += archive + bytes(padding)
        at += len(archive) + padding
    return header + bytes((1 << alignment) - len(header)) + contents


def choose_header(name, architectures):
    """Returns a header that includes that of the architecture that is compiled for."""
    lines = ["/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */",
             "/* The header of the architecture that is compiled for. */"]
    for i, architecture in enumerate(architectures):
        lines += [f"#{'elif' if i else 'if'} defined(__{architecture}__)", f'#include "{architecture}/{name}"']
    return "\n".join(lines + ["#else", "#error no library for this architecture", "#endif", ""])


def write_headers(folder, model, folders):
    """Writes headers of a model; `folders`: those with the headers of each architecture."""
    folder.mkdir(parents=True)
    for name in (f"{model}.h", f"{model}.hpp"):
        for architecture, source in folders.items():
            if len(folders) > 1:
                (folder / architecture).mkdir(exist_ok=True)
                shutil.copyfile(source / name, folder / architecture / name)
            else:
                shutil.copyfile(source / name, folder / name)
        if len(folders) > 1:
            (folder / name).write_text(choose_header(name, sorted(folders)))
    (folder / "module.modulemap").write_text(f'module {model} {{\n  header "{model}.h"\n  export *\n}}\n')


def model_of(folder):
    """Returns the name of the model whose archive is in a folder."""
    archives = list(folder.glob("lib*.a"))
    if len(archives) != 1:
        raise Mistake(f"{folder}: no output folder of kiln compile; expected one libNAME.a, got {len(archives)}")
    return archives[0].name[3:-2]


def write_system(output, model, platform, folders):
    """Writes the folder of a system. Returns its entry in Info.plist."""
    system, variant = PLATFORMS[platform]
    architectures = sorted(folders)
    identifier = "-".join(filter(None, [system, "_".join(architectures), variant]))
    library = f"lib{model}.a"
    write_headers(output / identifier / "Headers" / model, model, folders)
    archives = {architecture: (folder / library).read_bytes() for architecture, folder in folders.items()}
    one = next(iter(archives.values()))
    (output / identifier / library).write_bytes(universal(archives) if len(archives) > 1 else one)
    entry = {"LibraryIdentifier": identifier, "LibraryPath": library, "BinaryPath": library, "HeadersPath": "Headers",
             "SupportedArchitectures": architectures, "SupportedPlatform": system}
    if variant:
        entry["SupportedPlatformVariant"] = variant
    return entry


def join(output, folders):
    """Writes the XCFramework."""
    if output.suffix != ".xcframework":
        raise Mistake(f"{output}: wrong name; expected NAME.xcframework")
    if output.exists():
        raise Mistake(f"{output}: exists already; expected a new folder")
    models = sorted({model_of(folder) for folder in folders})
    if len(models) != 1:
        raise Mistake(f"folders: several models; expected one, got {', '.join(models)}")
    systems = {}
    for folder in folders:
        architecture, platform = identify(folder / f"lib{models[0]}.a")
        given = systems.setdefault(platform, {})
        if architecture in given:
            raise Mistake(f"{folder}: the same architecture and system as {given[architecture]}; expected another one")
        given[architecture] = folder
    output.mkdir()
    shutil.copyfile(folders[0] / f"{models[0]}.LICENSE.txt", output / f"{models[0]}.LICENSE.txt")
    entries = [write_system(output, models[0], platform, given) for platform, given in sorted(systems.items())]
    (output / "Info.plist").write_bytes(plistlib.dumps({
        "AvailableLibraries": entries, "CFBundlePackageType": "XFWK", "XCFrameworkFormatVersion": "1.0"}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path, metavar="OUTPUT.xcframework")
    parser.add_argument("folders", type=pathlib.Path, nargs="+", metavar="FOLDER")
    arguments = parser.parse_args()
    try:
        join(arguments.output, arguments.folders)
    except (Mistake, OSError) as mistake:
        sys.exit(f"error: {mistake}")


if __name__ == "__main__":
    main()
