/* SPDX-License-Identifier: Apache-2.0 */
/* Runs pair_encode as a C program would, in C89: weights from memory, an arena in the program's or in the GPU's memory.
 */
#include "pair.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 7 };

/* up.weight[o][i] = (o - i) / 8, up.bias[o] = o / 16, and the same for down. */
static float weight(int o, int i) { return (float)(o - i) / 8; }
static float bias(int o) { return (float)o / 16; }

static size_t make_image(char *image) {
  static const char header[] = "{\"up.weight\":{\"dtype\":\"F32\",\"shape\":[10,6],\"data_offsets\":[0,240]},"
                               "\"up.bias\":{\"dtype\":\"F32\",\"shape\":[10],\"data_offsets\":[240,280]},"
                               "\"down.weight\":{\"dtype\":\"F32\",\"shape\":[6,10],\"data_offsets\":[280,520]},"
                               "\"down.bias\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[520,544]}}";
  const uint64_t bytes = sizeof header - 1;
  float data[136], *next = data;
  int o, i;
  for (o = 0; o < 10; ++o)
    for (i = 0; i < 6; ++i)
      *next++ = weight(o, i);
  for (o = 0; o < 10; ++o)
    *next++ = bias(o);
  for (o = 0; o < 6; ++o)
    for (i = 0; i < 10; ++i)
      *next++ = weight(o, i);
  for (o = 0; o < 6; ++o)
    *next++ = bias(o);
  memcpy(image, &bytes, sizeof bytes);
  memcpy(image + 8, header, (size_t)bytes);
  memcpy(image + 8 + bytes, data, sizeof data);
  return 8 + (size_t)bytes + sizeof data;
}

/* Encodes the rows of x in an arena of the model's memory. */
static kiln_status_t encode(const pair_t *model, const float *x, float *code, kiln_error_t *error) {
  static char host[PAIR_ENCODE_ARENA_BYTES(1) + KILN_ARENA_ALIGNMENT];
  const int is_on_cpu = pair_device(model) == KILN_CPU;
  kiln_call_t call;
  kiln_status_t status = KILN_OK;
  memset(&call, 0, sizeof call);
  call.arena = host + (KILN_ARENA_ALIGNMENT - (uintptr_t)host % KILN_ARENA_ALIGNMENT);
  call.arena_bytes = PAIR_ENCODE_ARENA_BYTES(1);
  call.error = error;
  if (!is_on_cpu)
    status = pair_allocate_memory(model, call.arena_bytes, &call.arena, error);
  if (status == KILN_OK)
    status = pair_encode(model, &call, ROWS, x, code);
  if (!is_on_cpu)
    pair_release_memory(model, call.arena);
  return status;
}

static double worst_difference(const float *x, const float *code) {
  double worst = 0, sum, difference;
  int r, o, i;
  for (r = 0; r < ROWS; ++r)
    for (o = 0; o < 10; ++o) {
      sum = bias(o);
      for (i = 0; i < 6; ++i)
        sum += (double)weight(o, i) * x[r * 6 + i];
      difference = fabs(tanh(sum) - code[r * 10 + o]);
      worst = difference > worst || difference != difference ? difference : worst; /* NaN remains */
    }
  return worst;
}

int main(void) {
  static char image[4096];
  static float x[PAIR_ENCODE_ROWS_MAX * 6], code[PAIR_ENCODE_ROWS_MAX * 10];
  kiln_error_t error = {KILN_OK, ""};
  pair_t *model = NULL;
  double worst;
  int i, is_on_cpu;
  for (i = 0; i < ROWS * 6; ++i)
    x[i] = (float)(i % 5) / 4 - 0.5f;
  if (pair_create(NULL, &model, &error) || pair_bind_weights_from_memory(model, image, make_image(image), &error) ||
      encode(model, x, code, &error)) {
    printf("%s: %s\n", error.message, pair_status_text(error.status));
    return 1;
  }
  is_on_cpu = pair_device(model) == KILN_CPU;
  pair_destroy(model);
  worst = worst_difference(x, code);
  printf("largest error %.1e on %s\n", worst, is_on_cpu ? "the CPU" : "a GPU");
  return worst < 1e-6 ? 0 : 1;
}
