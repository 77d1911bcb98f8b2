# SPDX-License-Identifier: Apache-2.0
#
# Turns the comments of a C header into Doxygen's: the first one documents the file; one before a prototype documents it
# and the prototypes in the following lines; one after a declaration documents that declaration.
/^\/\* SPDX/ { print ""; next }
/^\/\*/ {
  sub(/\/\*/, has_file ? "/**" : "/** \\file\n *")
  has_file = in_comment = 1
  comment = is_prototype = ""
}
in_comment {
  comment = comment $0 "\n"
  in_comment = !/\*\//
  print
  next
}
/^$/ || /^[#}]/ || /^(static|typedef|enum|struct)/ { comment = is_prototype = "" }
/^[a-z].*\(/ && !/^(static|typedef)/ {
  if (is_prototype) printf "%s", comment
  is_prototype = 1
}
/^ +\/\*/ { sub(/\/\*/, "/**") }
/[^ ] *\/\*[^*]/ && !/^ *\/\*/ { sub(/\/\*/, "/**<") }
{ print }
