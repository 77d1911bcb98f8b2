#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""parts.py VERSION FOLDER [SYSROOT]: writes licences of all parts of a package to FOLDER/licenses, and the list of the parts with
their versions to FOLDER/sbom.spdx.json (SPDX 2.3). Versions and licence texts are those of the Debian packages with
which Kiln was built, those of a folder of sysroot.sh for another architecture. Time stamps are SOURCE_DATE_EPOCH."""
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import urllib.parse
import uuid

# Name of the part, Debian package, licence. Parts whose headers are compiled into Kiln count.
PARTS = [
    ("LLVM and MLIR 22", "libmlir-22-dev", "Apache-2.0 WITH LLVM-exception"),
    ("LLVM 14", "llvm-14-dev", "Apache-2.0 WITH LLVM-exception"),
    ("Halide", "libhalide14-0-dev", "MIT"),
    ("CLI11", "libcli11-dev", "BSD-3-Clause"),
    ("fmt", "libfmt-dev", "MIT"),
    ("JSON for Modern C++", "nlohmann-json3-dev", "MIT"),
    ("libgcc", "libgcc-12-dev", "GPL-3.0-or-later WITH GCC-exception-3.1"),
    ("libstdc++", "libstdc++-12-dev", "GPL-3.0-or-later WITH GCC-exception-3.1"),
    ("zlib", "zlib1g-dev", "Zlib"),
    ("Zstandard", "libzstd-dev", "BSD-3-Clause"),
]


def debian_version(package, root):
    query = ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f=${Version}\t${db:Status-Status}", package]
    found = subprocess.run(query, capture_output=True, text=True)
    version, _, status = found.stdout.partition("\t")
    if found.returncode or status != "installed":
        sys.exit(f'package "{package}": not installed; expected it, since Kiln contains it')
    return version


def copy_licence(package, root, folder):
    shutil.copyfile(f"{root}/usr/share/doc/{package}/copyright", folder / f"{package}.txt")


def entry(name, version, licence, identifier, reference=None):
    """Returns a package of SPDX."""
    made = {
        "SPDXID": f"SPDXRef-{identifier}",
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
    }
    if reference:
        made["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                 "referenceLocator": reference}]
    return made


def main(version, folder, root):
    licences = folder / "licenses"
    licences.mkdir(exist_ok=True)
    for text in ("Apache-2.0", "GPL-3"): # to which the others refer
        shutil.copyfile(f"/usr/share/common-licenses/{text}", licences / f"{text}.txt")
    packages = [entry("Kiln", version, "Apache-2.0 WITH LLVM-exception", "Kiln")]
    for name, package, licence in PARTS:
        found = debian_version(package, root)
        copy_licence(package, root, licences)
        identifier = "".join(letter if letter.isalnum() else "-" for letter in package)
        reference = f"pkg:deb/debian/{urllib.parse.quote(package)}@{urllib.parse.quote(found)}"
        packages.append(entry(name, found, licence, identifier, reference))
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                  "relatedSpdxElement": "SPDXRef-Kiln"}]
    relations += [{"spdxElementId": "SPDXRef-Kiln", "relationshipType": "CONTAINS", "relatedSpdxElement": part["SPDXID"]}
                  for part in packages[1:]]
    created = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    content = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(packages))
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"kiln-{version}",
        "documentNamespace": f"urn:uuid:{content}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Organization: The Kiln Authors"]},
        "packages": packages,
        "relationships": relations,
    }
    (folder / "sbom.spdx.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
