# SPDX-License-Identifier: Apache-2.0
#
# Warnings and sanitizers shared by every target of the project.
add_library(kiln_warnings INTERFACE)
target_compile_options(kiln_warnings INTERFACE -Wall -Wextra
  $<$<BOOL:${KILN_WERROR}>:-Werror>)
add_library(kiln::warnings ALIAS kiln_warnings)

if(KILN_SANITIZE)
  add_compile_options(-fsanitize=${KILN_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${KILN_SANITIZE})
endif()
