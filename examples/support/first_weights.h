// SPDX-License-Identifier: Apache-2.0
/* Initial weights of a training run, for C and C++ programs: random numbers that depend only on a seed, and a
 * safetensors file in memory with the weights of a generated header.
 *
 *   first_weights_t file = {.value = normal_weight, .random = {1611}};
 *   #define ADD(...) FIRST_WEIGHTS_ADD(&file, __VA_ARGS__)
 *   NAME_WEIGHTS(ADD)
 *   status = NAME_bind_weights_from_memory(model, first_weights_image(&file), file.bytes, &error);
 *   first_weights_release(&file); */
#ifndef EXAMPLES_FIRST_WEIGHTS_H
#define EXAMPLES_FIRST_WEIGHTS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SplitMix64 (Steele, Lea and Flood 2014), the same on every machine. */
typedef struct random_t {
  uint64_t state;
} random_t;
static inline uint64_t random_bits(random_t *random) {
  uint64_t z = random->state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}
/* Returns the generator of a training step, independent of earlier draws, so that a resumed run draws the same
   numbers. */
static inline random_t random_of_step(uint64_t seed, int32_t step) {
  random_t random = {seed * UINT64_C(0xD1342543DE82EF95) + (uint64_t)step * UINT64_C(0xA24BAED4963EE407)};
  (void)random_bits(&random);
  return random;
}
/* Returns a uniform number in (0, 1). */
static inline double random_uniform(random_t *random) { return ((double)(random_bits(random) >> 11) + 0.5) * 0x1p-53; }
/* Returns a uniform f32 that is neither 0 nor 1. */
static inline float random_uniform_float(random_t *random) {
  return (float)(random_uniform(random) * (1 - 0x1p-20) + 0x1p-21);
}
/* Returns a normal number of mean 0 and variance 1 (Box and Muller 1958). */
static inline double random_normal(random_t *random) {
  const double length = sqrt(-2 * log(random_uniform(random)));
  return length * cos(6.283185307179586 * random_uniform(random));
}

/* Returns an element of a weight, by its name in the file: "h.3.mlp.fc1.weight". */
typedef float (*first_value_t)(random_t *random, const char *name, int rank, const long *shape);

/* Initialises with the variance of PyTorch's layers: matrices and convolution kernels by their fan-in; norms with 1,
 * biases with 0. */
static inline float first_value_of_layer(random_t *random, const char *name, int rank, const long *shape) {
  const size_t length = strlen(name);
  if (rank < 2)
    return length >= 6 && strcmp(name + length - 6, "weight") == 0 ? 1.0f : 0.0f;
  double inputs = 1;
  for (int i = 1; i < rank; ++i)
    inputs *= (double)shape[i];
  return (float)(random_normal(random) / sqrt(3 * inputs));
}

typedef struct first_weights_t {
  first_value_t value;
  random_t random;
  char *header, *data, *image;
  size_t header_bytes, data_bytes, bytes; /* bytes: of the image */
} first_weights_t;

static inline void *first_weights_grow(void *memory, size_t bytes) {
  void *grown = realloc(memory, bytes);
  if (!grown) {
    fprintf(stderr, "no memory for %zu bytes of weights\n", bytes);
    exit(1);
  }
  return grown;
}

/* Adds all copies of an f32 weight of a header's table. */
static inline void first_weights_add(first_weights_t *file, const char *pattern, long copies, int rank,
                                     const long *shape) {
  char name[256], extents[128] = "";
  size_t count = 1;
  for (int i = 0; i < rank; ++i) {
    count *= (size_t)shape[i];
    snprintf(extents + strlen(extents), sizeof extents - strlen(extents), i ? ",%ld" : "%ld", shape[i]);
  }
  for (long copy = 0; copy < copies; ++copy) {
    const char *hole = strstr(pattern, "{}");
    if (hole)
      snprintf(name, sizeof name, "%.*s%ld%s", (int)(hole - pattern), pattern, copy, hole + 2);
    else
      snprintf(name, sizeof name, "%s", pattern);
    file->header = (char *)first_weights_grow(file->header, file->header_bytes + sizeof name + sizeof extents + 128);
    file->data = (char *)first_weights_grow(file->data, file->data_bytes + count * sizeof(float));
    const size_t end = file->data_bytes + count * sizeof(float);
    file->header_bytes += (size_t)sprintf(file->header + file->header_bytes,
                                          "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                                          file->header_bytes ? "," : "{", name, extents, file->data_bytes, end);
    for (float value; file->data_bytes < end; file->data_bytes += sizeof value) {
      value = file->value(&file->random, name, rank, shape);
      memcpy(file->data + file->data_bytes, &value, sizeof value);
    }
  }
}
#define FIRST_WEIGHTS_ADD(file, name, type, copies, ...)                                                               \
  {                                                                                                                    \
    const long shape_[] = {__VA_ARGS__};                                                                               \
    first_weights_add(file, name, copies, (int)(sizeof shape_ / sizeof *shape_), shape_);                              \
  }

/* Returns the file, which is valid as long as `file`. */
static inline const void *first_weights_image(first_weights_t *file) {
  const uint64_t header = file->header_bytes + 1;
  file->bytes = sizeof header + header + file->data_bytes;
  file->image = (char *)first_weights_grow(file->image, file->bytes);
  memcpy(file->image, &header, sizeof header);
  memcpy(file->image + sizeof header, file->header, file->header_bytes);
  file->image[sizeof header + file->header_bytes] = '}';
  memcpy(file->image + sizeof header + header, file->data, file->data_bytes);
  return file->image;
}
static inline void first_weights_release(first_weights_t *file) {
  free(file->header);
  free(file->data);
  free(file->image);
}

#endif
