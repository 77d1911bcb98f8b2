/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rate schedules, for C and C++ programs that train. */
#ifndef KILN_LEARNING_RATE_H
#define KILN_LEARNING_RATE_H

#include <math.h>
#include <stdint.h>

/* Cosine decay from the highest to the lowest rate over the steps, 1 .. steps (Loshchilov and Hutter 2017, equation
 * 5), with a linear rise during the first warm_up steps. */
static inline float kiln_cosine_rate(float highest, float lowest, int32_t step, int32_t steps, int32_t warm_up) {
  const double part = steps > 0 && step < steps ? (double)step / steps : 1;
  const double rate = lowest + 0.5 * ((double)highest - lowest) * (1 + cos(3.141592653589793 * part));
  return (float)(step < warm_up ? rate * step / warm_up : rate);
}

#endif
