# SPDX-License-Identifier: Apache-2.0
#
# cmake -D INPUT=FILE.ll -D OUTPUT=FILE.ll -D FORMAT=elf|coff|macho [-D LAYOUT=...] -P retarget.cmake
# Rewrites functions for ELF for another object format, with this data layout unless they name one. In COFF a weak
# definition may be in several objects only if it is a COMDAT.
file(READ "${INPUT}" text)
if(LAYOUT)
  string(PREPEND text "target datalayout = \"${LAYOUT}\"\n")
endif()
if(FORMAT STREQUAL coff)
  string(REPLACE "e-m:e-" "e-m:w-" text "${text}")
  string(REPLACE "x86_64-unknown-linux-gnu" "x86_64-pc-windows-msvc" text "${text}")
  string(REGEX REPLACE "define weak_odr ([^@\n]*)@([a-z0-9_]+)([^{\n]*) {" "$\\2 = comdat any\ndefine weak_odr \\1@\\2\\3 comdat {" text "${text}")
elseif(FORMAT STREQUAL macho)
  string(REPLACE "e-m:e-i8:8:32-i16:16:32-" "e-m:o-" text "${text}") # Armv8-A
  string(REPLACE "e-m:e-" "e-m:o-" text "${text}")
  string(REPLACE "x86_64-unknown-linux-gnu" "x86_64-apple-macosx" text "${text}")
endif()
file(WRITE "${OUTPUT}" "${text}")
