// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Weights that are embedded in the archive. A separate file, since only archives with embedded weights define the
 * table. */
#include "core/instance.h"
#include "core/sharding.h"

#include <string.h>

kiln_status_t kiln_bind_embedded(kiln_model_t *model, kiln_error_t *error) {
  kiln_packed_t kind;
  kiln_status_t status;
  char *copy;
  if (!model)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "bind_embedded: null given; expected a model");
  if ((status = kiln_refuse_slices(model, "bind_embedded", error)))
    return status;
  const char *weights = kiln_embedded_weights[model->variant - model->descriptor->variants];
  if (!kiln_packed_is_written(model))
    return kiln_packed_replace(model, (char *)weights, KILN_PACKED_EMBEDDED, error);
  if ((status = kiln_packed_allocate(model, &copy, &kind, error)))
    return status;
  memcpy(copy, weights, (size_t)model->variant->packed_bytes);
  return kiln_packed_replace(model, copy, kind, error);
}
