// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The parts of a path. */
#include "os/file.h"

const char *kiln_base_name(const char *path) {
  const char *name = path;
  for (const char *at = path; *at; ++at)
    if (kiln_is_separator(*at))
      name = at + 1;
  return name;
}
