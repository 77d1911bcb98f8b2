#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_spdx.py FILE VERSION: checks that the list of parts of a package has the fields that SPDX 2.3 requires, in its
forms, that its elements refer to each other, and that it names the parts of Kiln VERSION with their versions."""
import json
import re
import sys
import urllib.parse

# Each part's name, and a licence of it in SPDX's list.
PARTS = {
    "LLVM and MLIR 22": "Apache-2.0 WITH LLVM-exception",
    "LLVM 14": "Apache-2.0 WITH LLVM-exception",
    "Halide": "MIT",
    "CLI11": "BSD-3-Clause",
    "fmt": "MIT",
    "JSON for Modern C++": "MIT",
    "libgcc": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libstdc++": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "zlib": "Zlib",
    "Zstandard": "BSD-3-Clause",
}
DOCUMENT = {
    "spdxVersion": r"SPDX-2\.3",
    "dataLicense": r"CC0-1\.0",
    "SPDXID": r"SPDXRef-DOCUMENT",
    "name": r".+",
    "documentNamespace": r"[a-z][a-z0-9+.-]*:[^#\s]+", # a URI without a fragment
}
PACKAGE = {
    "SPDXID": r"SPDXRef-[A-Za-z0-9.-]+",
    "name": r".+",
    "versionInfo": r"\S+",
    "downloadLocation": r"NOASSERTION|NONE|[a-z+]+:\S+",
    "licenseConcluded": r".+",
    "licenseDeclared": r".+",
    "copyrightText": r".+",
}


def find_errors(document, version):
    """Yields a sentence for each rule that the document breaks."""

    def check_fields(what, element, fields):
        for field, form in fields.items():
            if not re.fullmatch(form, str(element.get(field, ""))):
                yield f"{what}.{field}: wrong form; expected {form}, got {element.get(field)!r}"

    yield from check_fields("document", document, DOCUMENT)
    creation = document.get("creationInfo", {})
    yield from check_fields("creationInfo", creation, {"created": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"})
    creators = creation.get("creators", [])
    if not creators or not all(re.fullmatch(r"(Person|Organization|Tool): .+", creator) for creator in creators):
        yield f"creators: wrong form; expected persons, organisations or tools, got {creators}"

    packages = document.get("packages", [])
    for package in packages:
        yield from check_fields(f"package {package.get('name')}", package, PACKAGE)
        if package.get("filesAnalyzed") is not False: # otherwise a verification code of all files is required
            yield f"package {package.get('name')}: expected filesAnalyzed to be false"
        for reference in package.get("externalRefs", []):
            yield from check_fields(f"externalRefs of {package.get('name')}", reference, {
                "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                "referenceLocator": rf"pkg:deb/debian/[a-z0-9.%B-]+@{urllib.parse.quote(package.get('versionInfo', ''))}"})
    names = [package.get("SPDXID") for package in packages]
    if len(set(names)) != len(names):
        yield f"packages: some identifiers are not unique: {names}"

    found = {package["name"]: package for package in packages}
    if set(found) != {"Kiln", *PARTS}:
        yield f"packages: wrong parts; expected {sorted(PARTS)}, got {sorted(found)}"
    if found.get("Kiln", {}).get("versionInfo") != version:
        yield f"Kiln: wrong version; expected {version}, got {found.get('Kiln')}"
    for name, licence in PARTS.items():
        if name in found and found[name].get("licenseDeclared") != licence:
            yield f"{name}: wrong licence; expected {licence}, got {found[name].get('licenseDeclared')}"
    relations = {(relation.get("spdxElementId"), relation.get("relationshipType"), relation.get("relatedSpdxElement"))
                 for relation in document.get("relationships", [])}
    kiln = found.get("Kiln", {}).get("SPDXID")
    expected = {("SPDXRef-DOCUMENT", "DESCRIBES", kiln)} | {(kiln, "CONTAINS", name) for name in names if name != kiln}
    if relations != expected:
        yield f"relationships: expected {sorted(expected)}, got {sorted(relations)}"


def check_the_check(document, version):
    """Breaks rules, each of which must be found."""
    for words, change in [
        ("document.dataLicense", lambda broken: broken.pop("dataLicense")),
        ("document.documentNamespace", lambda broken: broken.update(documentNamespace="urn:x#y")),
        ("creationInfo.created", lambda broken: broken["creationInfo"].update(created="2026-11-30")),
        ("creators", lambda broken: broken["creationInfo"].update(creators=["someone"])),
        ("package Halide.SPDXID", lambda broken: broken["packages"][3].update(SPDXID="SPDXRef-a b")),
        ("package Halide.downloadLocation", lambda broken: broken["packages"][3].pop("downloadLocation")),
        ("externalRefs of Halide", lambda broken: broken["packages"][3].update(versionInfo="1")),
        ("Halide: wrong licence", lambda broken: broken["packages"][3].update(licenseDeclared="Zlib")),
        ("packages: wrong parts", lambda broken: broken["packages"].pop(3)),
        ("relationships", lambda broken: broken["relationships"].pop()),
    ]:
        broken = json.loads(json.dumps(document))
        change(broken)
        if not any(error.startswith(words) for error in find_errors(broken, version)):
            sys.exit(f"check_spdx: not found in a broken document: {words}")


def main(path, version):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    errors = list(find_errors(document, version))
    if errors:
        sys.exit("\n".join(errors))
    check_the_check(document, version)
    print(f"{len(document['packages'])} packages of SPDX")


if __name__ == "__main__":
    main(*sys.argv[1:])
