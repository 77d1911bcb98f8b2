#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks a shared object for another system: shared.sh OBJECT TOOL [CC RUN ...]; the folder of OBJECT has net.h. TOOL is
# llvm-readobj for a DLL, llvm-objdump for a dylib, llvm-readelf for a shared object for Android.
#   - it exports the functions that net.h declares, and nothing else
#   - DLL: programs that CC links with its import library, and programs that load it, call it, run by RUN
#   - dylib: programs find it by @rpath
#   - for Android: systems with pages of 16 KiB can load it
set -eu
object=$1 tool=$2
shift 2
folder=$(dirname "$object")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "shared: $1" >&2; exit 1; }

echo '#include "net.h"' | cc -E -P -I "$folder" -x c - | tr '\n' ' ' | grep -oE '\bnet_[A-Za-z0-9_]+ ?\(' | tr -d ' (' | sort -u >"$work/declared"
[ -s "$work/declared" ] || fail "net.h declares no function"
case $object in
*.dll) "$tool" --coff-exports "$object" | sed -n 's/^ *Name: //p' ;;
*.so) "$tool" -W --dyn-syms "$object" | awk '$7 != "UND" && $5 == "GLOBAL" && $4 == "FUNC" { sub(/@.*/, "", $8); print $8 }' ;;
*.dylib) "$tool" --macho --exports-trie "$object" | sed -n 's/^0x[0-9A-F]* *_//p' ;;
esac | sort -u >"$work/exported"
diff "$work/declared" "$work/exported" || fail "it must export what net.h declares; < is declared, > is exported"
case $object in
*.so) exec "$(dirname "$0")/android/pages.sh" "$tool" "$object" ;;
*.dylib)
  id=$("$tool" --macho --dylib-id "$object" | tail -n 1)
  [ "$id" = "@rpath/$(basename "$object")" ] || fail "its name is $id; expected @rpath/$(basename "$object")"
  exit 0
  ;;
esac

cat >"$work/linked.c" <<'END'
#include "net.h"
#include <stdio.h>

int main(void) {
  kiln_error_t error;
  net_t *model = NULL;
  if (net_create(NULL, &model, &error) != KILN_OK)
    return puts(error.message), 1;
  net_destroy(model);
  return net_abi_version() == KILN_ABI_VERSION ? 0 : 2;
}
END
cat >"$work/loads.c" <<'END'
#include "net.h"
#include <windows.h>

typedef size_t (*arena_bytes)(uint32_t workers);

int main(void) {
  HMODULE library = LoadLibraryA("net.dll");
  if (!library)
    return 1;
  arena_bytes bytes = (arena_bytes)(void (*)(void))GetProcAddress(library, "net_forward_arena_bytes");
  if (!bytes || bytes(3) != NET_FORWARD_ARENA_BYTES(3))
    return 2;
  return FreeLibrary(library) ? 0 : 3;
}
END
cc=$1
shift
cp "$object" "$work"
cd "$work"
"$cc" -std=c11 -Wall -Wextra -Werror -I "$folder" linked.c "$folder/libnet.dll.a" -o linked.exe
"$cc" -std=c11 -Wall -Wextra -Werror -I "$folder" loads.c -o loads.exe
for program in linked loads; do
  "$@" "$work/$program.exe" || fail "$program.c ends with status $?"
done
