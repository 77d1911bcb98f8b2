// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Binds weights whose elements are computed, computed.c. */
#ifndef KILN_COMPUTED_H
#define KILN_COMPUTED_H

#include "core/tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The parameters from which a form computes the elements of a tensor; they are the tensor's `parts`. */
typedef struct kiln_computed_t {
  uint64_t key, seed;
  float number;
  uint32_t kind;
} kiln_computed_t;
/* `digest` is that of the tensor's name. */
typedef void (*kiln_describe_t)(const kiln_weight_t *weight, uint64_t digest, uint64_t seed, kiln_computed_t *computed);
/* Binds weights whose elements the form computes. */
kiln_status_t kiln_bind_computed(kiln_model_t *model, const kiln_form_t *form, kiln_describe_t describe, uint64_t seed,
                                 kiln_error_t *error);

#ifdef __cplusplus
}
#endif
#endif /* KILN_COMPUTED_H */
