// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* What the readers of quantised checkpoints share. A program links none of them that it does not call. */
#ifndef KILN_PUBLISHED_H
#define KILN_PUBLISHED_H

#include "internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rename.c */

typedef struct kiln_renames_t {
  const kiln_rename_t *renames;
  size_t count;
} kiln_renames_t;
/* `reader` is for the message. */
kiln_status_t kiln_renames_check(const kiln_renames_t *renames, const char *reader, kiln_error_t *error);
/* That none has rotary heads, whose rows are llama.cpp's. */
kiln_status_t kiln_renames_check_rows(const kiln_renames_t *renames, const char *reader, kiln_error_t *error);
/* The length of what a tensor's name becomes, which is written to `to` if that is not null. *rename is the one that
 * fits; null: the name stays. */
size_t kiln_rename(const kiln_renames_t *renames, const char *name, size_t length, const kiln_rename_t **rename,
                   char *to);
/* That a tensor of that name in the file, which is left out, is zeros. */
kiln_status_t kiln_rename_check_zeros(const kiln_tensor_t *tensor, const char *name, size_t length, uint64_t elements,
                                      kiln_error_t *error);
/* The row of a file's matrix that row `row` of the model is. */
uint64_t kiln_rotary_row(uint64_t rows, uint32_t heads, uint64_t row);

/* renamed.c */

/* Makes a table of tensors under the model's names, the only thing allocated. A rename that fits none is
 * KILN_INVALID_ARGUMENT. */
kiln_status_t kiln_renamed(const kiln_tensors_t *stored, const kiln_renames_t *renames,
                           const kiln_allocator_t *allocator, kiln_tensors_t *table, kiln_error_t *error);

/* gguf_blocks.c */

/* An element type of GGUF: blocks of so many elements along rows. */
typedef struct kiln_gguf_type_t {
  uint32_t id;
  char name[8];
  uint16_t dtype; /* of elements that lie side by side */
  uint16_t elements, bytes;
  void (*decode)(const unsigned char *block, size_t run, float *to); /* KILN_GGUF_RUN elements; null: dtype says it */
} kiln_gguf_type_t;
enum { KILN_GGUF_RUN = 32 };
/* The parts of a tensor with this form. */
typedef struct kiln_gguf_matrix_t {
  const kiln_gguf_type_t *type;
  uint64_t rows, columns;
  uint32_t heads; /* as of a rename */
} kiln_gguf_matrix_t;
extern const kiln_form_t kiln_gguf_form;
/* Null for a type that is not read. */
const kiln_gguf_type_t *kiln_gguf_type(uint32_t id);

/* gguf.c */

/* Checks the image of a GGUF file, which stays the caller's, and makes a table under the model's names, the only thing
 * allocated. */
kiln_status_t kiln_gguf_open(const void *image, size_t bytes, const kiln_renames_t *renames,
                             const kiln_allocator_t *allocator, kiln_tensors_t *table, kiln_error_t *error);
/* The same of a file, from which the tensors are; what the table says is checked once and for all. */
kiln_status_t kiln_gguf_open_file(const kiln_file_t *file, const kiln_renames_t *renames,
                                  const kiln_allocator_t *allocator, kiln_tensors_t *table, kiln_error_t *error);

/* int4_words.c */

/* The parts of a matrix [outputs, inputs] of 4 bits in words of 32. */
typedef struct kiln_int4_t {
  const char *words, *zeros, *scales;
  const char *groups; /* the group of each input; null: they follow each other */
  uint64_t inputs, outputs, group, group_count;
  uint32_t scale_dtype;
  bool is_awq;  /* eight outputs in a word, else eight inputs */
  uint8_t more; /* than what zeros hold: what stands for 0 */
} kiln_int4_t;
extern const kiln_form_t kiln_int4_form;

/* quantized.c */

typedef struct kiln_quantized_t {
  kiln_quantization_t quantization;
  kiln_renames_t renames;
} kiln_quantized_t;
/* Makes weights of the tensors of safetensors files, sorted by name: a table under the model's names. */
kiln_status_t kiln_quantized_join(const kiln_tensors_t *stored, const kiln_quantized_t *how,
                                  const kiln_allocator_t *allocator, kiln_tensors_t *table, kiln_error_t *error);

#ifdef __cplusplus
}
#endif
#endif /* KILN_PUBLISHED_H */
