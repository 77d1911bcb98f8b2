#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks an XCFramework of tiny_gpt for several systems: xcframework.sh CLANG LD SCRIPT FOLDER ...; LLVM's tools are next
# to CLANG's own programs.
#   - Info.plist names the folders, and their archives have the architectures that it names
#   - each archive in a universal one is the compiled one
#   - for each architecture program.c compiles with the headers, also as a module, and is linked with the archive
#   - it is the same as another one of the same libraries, and wrong arguments are errors
set -eu
clang=$1 ld=$2 script=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
tools=$(dirname "$("$clang" -print-prog-name=llvm-nm)")
declarations=$here/../../../runtime
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "xcframework: $1" >&2; exit 1; }

made=$work/tiny_gpt.xcframework
"$script" "$made" "$@"
"$script" "$work/again.xcframework" "$@"
diff -r "$made" "$work/again.xcframework" || fail "it must be the same each time"

# A line for each architecture: FOLDER ARCHITECTURE SYSTEM VARIANT; the keys are those that Xcode writes.
python3 - "$made" >"$work/list" <<'END'
import pathlib, plistlib, sys
root = pathlib.Path(sys.argv[1])
facts = plistlib.loads((root / "Info.plist").read_bytes())
assert (facts["CFBundlePackageType"], facts["XCFrameworkFormatVersion"]) == ("XFWK", "1.0"), facts
folders = {path.name for path in root.iterdir() if path.is_dir()}
assert folders == {entry["LibraryIdentifier"] for entry in facts["AvailableLibraries"]}, (folders, facts)
for entry in facts["AvailableLibraries"]:
    folder = root / entry["LibraryIdentifier"]
    assert (folder / entry["LibraryPath"]).is_file() and (folder / entry["HeadersPath"]).is_dir(), entry
    for architecture in entry["SupportedArchitectures"]:
        print(folder, architecture, entry["SupportedPlatform"], entry.get("SupportedPlatformVariant", ""))
END
[ "$(wc -l <"$work/list")" -eq $# ] || fail "it must have $# libraries, got $(cat "$work/list")"
while read -r folder architecture system variant; do
  case $system$variant in
  macos) triple=$architecture-apple-macosx11.0.0 platform="macos 11.0" ;;
  ios) triple=$architecture-apple-ios14.0 platform="ios 14.0" ;;
  iossimulator) triple=$architecture-apple-ios14.0-simulator platform="ios-simulator 14.0" ;;
  *) fail "another system: $system $variant" ;;
  esac
  echo "$triple"
  "$clang" "--target=$triple" -nostdlibinc -isystem "$declarations/posix" -isystem "$declarations/darwin" \
    -fno-stack-protector -I "$folder/Headers/tiny_gpt" -c "$here/../program.c" -o "$work/program.o"
  echo '@import tiny_gpt; const unsigned long bytes = TINY_GPT_WEIGHT_BYTES;' |
    "$clang" "--target=$triple" -ffreestanding -nostdlibinc -fmodules "-fmodules-cache-path=$work/modules" -Werror \
      -I "$folder/Headers" -x objective-c -fsyntax-only - || fail "the headers are no module"
  "$ld" -arch "$architecture" -platform_version $platform "${platform#* }" -all_load -fatal_warnings \
    "$work/program.o" "$folder/libtiny_gpt.a" "$here/libSystem.tbd" -o "$work/program" || fail "$triple is not linked"
  "$tools/llvm-lipo" "$folder/libtiny_gpt.a" -thin "$architecture" -output "$work/one.a" 2>/dev/null ||
    cp "$folder/libtiny_gpt.a" "$work/one.a" # of one architecture
  grep -q "$(sha256sum <"$work/one.a" | cut -d ' ' -f 1)" <<END || fail "the archive for $triple must be the compiled one"
$(for given in "$@"; do sha256sum "$given/libtiny_gpt.a"; done)
END
done <"$work/list"

# refused WORDS ARGUMENT ...
refused() {
  words=$1
  shift
  said=$("$script" "$@" 2>&1) && fail "$*: expected \"$words\", but it succeeded"
  case $said in *"$words"*) ;; *) fail "$*: expected \"$words\", got \"$said\"" ;; esac
}
refused "exists already; expected a new folder" "$made" "$@"
refused "wrong name; expected NAME.xcframework" "$work/other" "$@"
refused "the same architecture and system as" "$work/twice.xcframework" "$1" "$1"
refused "no output folder of kiln compile; expected one libNAME.a, got 0" "$work/none.xcframework" "$work/modules"
