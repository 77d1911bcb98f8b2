# SPDX-License-Identifier: Apache-2.0
#
# Puts the rows of ops.def that declare elementwise operations into elementwise.h, since Doxygen documents no
# declarations of an included file.
FILENAME ~ /elementwise\.h$/ && /^#include "kiln\/ops.def"/ {
  rows = FILENAME
  sub(/[^\/]*$/, "ops.def", rows)
  while ((getline line < rows) > 0)
    if (line ~ /^KILN_(UNARY|BINARY|COMPARISON|LOGIC)\(/) {
      name = about = line
      gsub(/^[A-Z_]*\(|\).*/, "", name)
      if (sub(/.*\/\/ */, ": ", about) == 0) about = ""
      print "/// The operation `" name "` of dsl/SPEC.md" about ".\nKILN_" substr(line, 6, index(line, ")") - 5)
    }
  next
}
{ print }
