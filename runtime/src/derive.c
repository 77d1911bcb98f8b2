// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Computes what follows from weights as soon as these are packed, such as the scales of batch norms: each operation is
 * rounded, as in kernels, so that the bits are those that an entry would compute. */
#include "convert.h"
#include "internal.h"

#include <string.h>

static float load(const char *packed, uint64_t index) {
  float number;
  memcpy(&number, packed + index * sizeof number, sizeof number);
  return number;
}

/* The element of a copy. */
static float evaluate(const kiln_model_t *model, const char *packed, const kiln_derived_t *derived, uint32_t copy,
                      uint64_t element) {
  float stack[KILN_FORMULA_DEPTH + 1] = {0}, *top = stack; /* below the first one is room */
  for (uint32_t i = 0; i < derived->step_count; ++i) {
    const kiln_step_t *step = &derived->steps[i];
    if (step->kind == KILN_FORMULA_WEIGHT) {
      const kiln_placement_t *placement = &model->role.placements[step->value];
      *++top = load(packed + placement->offset + copy * placement->stride, placement->shift + element);
    } else if (step->kind == KILN_FORMULA_NUMBER) {
      memcpy(++top, &step->value, sizeof *top);
    } else if (step->kind == KILN_FORMULA_SQRT) {
      *top = __builtin_sqrtf(*top);
    } else {
      const float right = *top--, left = *top;
      *top = step->kind == KILN_FORMULA_ADD   ? left + right
             : step->kind == KILN_FORMULA_SUB ? left - right
             : step->kind == KILN_FORMULA_MUL ? left * right
                                              : left / right;
    }
  }
  return *top;
}

void kiln_derive(const kiln_model_t *model, char *packed) {
  const kiln_rounding_t callers = kiln_rounding_begin();
  for (uint32_t i = 0; i < model->variant->derived_count; ++i) {
    const kiln_derived_t *derived = &model->variant->derived[i];
    for (uint32_t copy = 0; copy < derived->copies; ++copy)
      for (uint64_t element = 0; element < derived->elements; ++element) {
        const float value = evaluate(model, packed, derived, copy, element);
        memcpy(packed + derived->offset + copy * derived->stride + element * sizeof value, &value, sizeof value);
      }
  }
  kiln_rounding_end(callers);
}
