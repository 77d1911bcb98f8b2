// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

enum { POINTS = 64 };

/* Draws points in a square, as a function of the seed; class 1 means in the ring. */
static void draw_points(uint32_t seed, float *points, int32_t *classes) {
  for (int i = 0; i < POINTS; ++i) {
    for (int axis = 0; axis < 2; ++axis) {
      seed = seed * 1664525u + 1013904223u;
      points[2 * i + axis] = (float)(seed >> 8) / (float)(1 << 23) - 1;
    }
    const float square = points[2 * i] * points[2 * i] + points[2 * i + 1] * points[2 * i + 1];
    classes[i] = square > 0.25f && square < 0.8f;
  }
}
