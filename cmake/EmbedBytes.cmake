# SPDX-License-Identifier: Apache-2.0
#
# cmake -D INPUT=FILE -D OUTPUT=FILE.inc -D NAME=name -P EmbedBytes.cmake: writes the bytes of a file as a C++ array.
file(READ "${INPUT}" bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${OUTPUT}" "static const unsigned char ${NAME}[] = {\n${bytes}};\n")
