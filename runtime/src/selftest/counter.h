// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Weights and inputs for self-tests and benchmarks, counter.c. */
#ifndef KILN_COUNTER_H
#define KILN_COUNTER_H

#include "core/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills an input of a call with these dimensions with elements computed from its name and a seed. */
void kiln_counter_fill(const kiln_argument_t *argument, const int64_t *extents, uint64_t seed, void *to,
                       uint64_t count);
/* Binds weights that are computed from their names. */
kiln_status_t kiln_bind_counter(kiln_model_t *model, kiln_error_t *error);

#ifdef __cplusplus
}
#endif
#endif /* KILN_COUNTER_H */
