// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Creates the archive's model. A separate file, so that code without an archive can use the rest of the runtime. */
#include "core/instance.h"

kiln_status_t kiln_create(const kiln_allocator_t *allocator, kiln_model_t **model, kiln_error_t *error) {
  const kiln_options_t options = {.allocator = allocator};
  const kiln_cpu_t cpu = kiln_cpu_detect();
  return kiln_model_create(&kiln_descriptor, &cpu, &options, model, error);
}
