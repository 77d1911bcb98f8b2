/* SPDX-License-Identifier: Apache-2.0 */
/* Runs pair_encode as a C program would: weights from memory, an arena in the program's or in the GPU's memory. */
#include "pair.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* up.weight[o][i] = (o - i) / 8, up.bias[o] = o / 16, and the same for down. */
static float weight(int o, int i) { return (float)(o - i) / 8; }
static float bias(int o) { return (float)o / 16; }

static size_t make_image(char *image) {
  static const char header[] = "{\"up.weight\":{\"dtype\":\"F32\",\"shape\":[10,6],\"data_offsets\":[0,240]},"
                               "\"up.bias\":{\"dtype\":\"F32\",\"shape\":[10],\"data_offsets\":[240,280]},"
                               "\"down.weight\":{\"dtype\":\"F32\",\"shape\":[6,10],\"data_offsets\":[280,520]},"
                               "\"down.bias\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[520,544]}}";
  float data[136], *next = data;
  const uint64_t bytes = sizeof header - 1;
  for (int o = 0; o < 10; ++o)
    for (int i = 0; i < 6; ++i)
      *next++ = weight(o, i);
  for (int o = 0; o < 10; ++o)
    *next++ = bias(o);
  for (int o = 0; o < 6; ++o)
    for (int i = 0; i < 10; ++i)
      *next++ = weight(o, i);
  for (int o = 0; o < 6; ++o)
    *next++ = bias(o);
  memcpy(image, &bytes, sizeof bytes);
  memcpy(image + 8, header, bytes);
  memcpy(image + 8 + bytes, data, sizeof data);
  return 8 + bytes + sizeof data;
}

int main(void) {
  static _Alignas(KILN_ARENA_ALIGNMENT) char host[PAIR_ENCODE_ARENA_BYTES(1)];
  void *arena = host;
  static char image[4096];
  static float x[PAIR_ENCODE_ROWS_MAX * 6], code[PAIR_ENCODE_ROWS_MAX * 10];
  const int rows = 7;
  kiln_error_t error = {KILN_OK, ""};
  pair_t *model = NULL;
  if (pair_create(NULL, &model, &error) || pair_bind_weights_from_memory(model, image, make_image(image), &error)) {
    printf("%s: %s\n", error.message, pair_status_text(error.status));
    return 1;
  }
  for (int i = 0; i < rows * 6; ++i)
    x[i] = (float)(i % 5) / 4 - 0.5f;
  const int is_on_cpu = pair_device(model) == KILN_CPU;
  if (!is_on_cpu && pair_allocate_memory(model, sizeof host, &arena, &error)) {
    printf("%s: %s\n", error.message, pair_status_text(error.status));
    return 1;
  }
  kiln_call_t call = {.arena = arena, .arena_bytes = sizeof host, .error = &error};
  if (pair_encode(model, &call, rows, x, code)) {
    printf("%s: %s\n", error.message, pair_status_text(error.status));
    return 1;
  }
  if (!is_on_cpu)
    pair_release_memory(model, arena);
  pair_destroy(model);
  double worst = 0;
  for (int r = 0; r < rows; ++r)
    for (int o = 0; o < 10; ++o) {
      double sum = bias(o);
      for (int i = 0; i < 6; ++i)
        sum += (double)weight(o, i) * x[r * 6 + i];
      double difference = fabs(tanh(sum) - code[r * 10 + o]);
      worst = difference > worst || isnan(difference) ? difference : worst;
    }
  printf("largest error %.1e on %s\n", worst, is_on_cpu ? "the CPU" : "a GPU");
  return worst < 1e-6 ? 0 : 1;
}
