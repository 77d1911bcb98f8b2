/* SPDX-License-Identifier: Apache-2.0 */
#include "exports.h"

#include <stdlib.h>
#include <string.h>

kiln_error_t last_error;
uint32_t threads = 1;
const kiln_executor_t *executor;

void *take_memory(size_t bytes) {
  const size_t rounded = (bytes + KILN_ARENA_ALIGNMENT - 1) / KILN_ARENA_ALIGNMENT * KILN_ARENA_ALIGNMENT;
  void *memory = aligned_alloc(KILN_ARENA_ALIGNMENT, rounded);
  if (memory)
    memset(memory, 0, rounded);
  return memory;
}

EXPORT(take) void *take(size_t bytes) { return take_memory(bytes); }
EXPORT(give_back) void give_back(void *memory) { free(memory); }
EXPORT(reason) const char *reason(void) { return last_error.message; }
