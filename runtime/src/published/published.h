// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Shared declarations of the readers of third-party quantised checkpoints. A program links only the readers that it
 * calls. */
#ifndef KILN_PUBLISHED_H
#define KILN_PUBLISHED_H

#include "core/tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rename.c */

typedef struct kiln_renames_t {
  const kiln_rename_t *renames;
  size_t count;
} kiln_renames_t;
/* Checks the arguments of the function `reader`: that none is null, and that no rename has rotary heads, which only
 * llama.cpp's row order needs, unless has_heads. */
kiln_status_t kiln_renames_check(const kiln_model_t *model, const char *path, const kiln_renames_t *renames,
                                 bool has_heads, const char *reader, kiln_error_t *error);
/* Sets the name of *tensor to the next one of a file to which renames apply; *at is 0 at first, and grows. False: there
 * are no more. */
typedef bool (*kiln_next_name_t)(const void *file, size_t *at, kiln_tensor_t *tensor);
/* That of a file's kiln_tensors_t. */
bool kiln_renames_next(const void *stored, size_t *at, kiln_tensor_t *tensor);
/* Checks that each rename matches a name of the file, unless it is optional; the message lists the nearest names. */
kiln_status_t kiln_renames_check_fit(const kiln_renames_t *renames, kiln_next_name_t next, const void *file,
                                     kiln_error_t *error);
/* Returns the length of a tensor's new name, and writes it to `to` unless that is null. *rename is the match; null:
 * the name is unchanged. */
size_t kiln_rename(const kiln_renames_t *renames, const char *name, size_t length, const kiln_rename_t **rename,
                   char *to);
/* Checks that a tensor of that name in the file, which is ignored, is zero. */
kiln_status_t kiln_rename_check_zeros(const kiln_tensor_t *tensor, const char *name, size_t length, uint64_t elements,
                                      kiln_error_t *error);
/* Returns the row of the file's matrix that corresponds to row `row` of the model. */
uint64_t kiln_rotary_row(uint64_t rows, uint32_t heads, uint64_t row);

/* renamed.c */

/* Creates a table of tensors under the model's names, the only allocation. */
kiln_status_t kiln_renamed(const kiln_tensors_t *stored, const kiln_renames_t *renames,
                           const kiln_allocator_t *allocator, kiln_tensors_t *table, kiln_error_t *error);

/* gguf_blocks.c */

/* An element type of GGUF: blocks of `elements` elements along rows. */
typedef struct kiln_gguf_type_t {
  uint32_t id;
  char name[8];
  uint16_t dtype; /* of unblocked elements */
  uint16_t elements, bytes;
  void (*decode)(const unsigned char *block, size_t run,
                 float *to); /* decodes KILN_GGUF_RUN elements; null: use dtype */
} kiln_gguf_type_t;
enum { KILN_GGUF_RUN = 32 };
/* The parts of a tensor with this form. */
typedef struct kiln_gguf_matrix_t {
  const kiln_gguf_type_t *type;
  uint64_t rows, columns;
  uint32_t heads; /* as in a rename */
} kiln_gguf_matrix_t;
extern const kiln_form_t kiln_gguf_form;
/* Returns null for a type that is not supported. */
const kiln_gguf_type_t *kiln_gguf_type(uint32_t id);

/* gguf.c */

/* Validates the image of a GGUF file, which the caller owns, and creates a table under the model's names, the only
 * allocation. */
kiln_status_t kiln_gguf_open(const void *image, size_t bytes, const kiln_renames_t *renames,
                             const kiln_allocator_t *allocator, kiln_tensors_t *table, kiln_error_t *error);
/* Like kiln_gguf_open, for a file with the tensors; the table's contents need no further checks. */
kiln_status_t kiln_gguf_open_file(const kiln_file_t *file, const kiln_renames_t *renames,
                                  const kiln_allocator_t *allocator, kiln_tensors_t *table, kiln_error_t *error);

/* int4_words.c */

/* The parts of a matrix [outputs, inputs] of 4-bit elements in 32-bit words. */
typedef struct kiln_int4_t {
  const char *words, *zeros, *scales;
  const char *groups; /* the group of each input; null: groups are contiguous */
  uint64_t inputs, outputs, group, group_count;
  uint32_t scale_dtype;
  bool is_awq;  /* a word holds eight outputs, else eight inputs */
  uint8_t more; /* added to the stored zeros to get the zero points */
} kiln_int4_t;
extern const kiln_form_t kiln_int4_form;

/* small_float_numbers.c */

/* The parts of a matrix of e4m3 numbers with a scale for each block of rows and columns. */
typedef struct kiln_f8_t {
  const char *numbers, *scales;
  uint64_t columns, block_rows, block_columns, scale_columns;
  uint32_t scale_dtype;
} kiln_f8_t;
extern const kiln_form_t kiln_f8_form;

/* The parts of a tensor of e2m1 numbers, two in a byte, of which 32 along the last dimension share an e8m0. */
typedef struct kiln_f4_t {
  const char *numbers, *scales;
} kiln_f4_t;
extern const kiln_form_t kiln_f4_form;

/* The parts of a matrix of e2m1 numbers, two in a byte, of which 16 along a row share an e4m3; all share an f32. */
typedef struct kiln_nvfp4_t {
  const char *numbers, *scales, *outer;
  uint64_t columns;
} kiln_nvfp4_t;
extern const kiln_form_t kiln_nvfp4_form;

typedef union kiln_matrix_t {
  kiln_int4_t int4;
  kiln_f8_t f8;
  kiln_f4_t f4;
  kiln_nvfp4_t nvfp4;
} kiln_matrix_t;

/* Spreads four elements of a word to the low nibbles of its bytes. */
static inline uint32_t kiln_spread_nibbles(uint32_t half) {
  half = (half | half << 8) & 0x00FF00FF;
  return (half | half << 4) & 0x0F0F0F0F;
}
/* Returns the word of a storage format, see KILN_FORMAT_BIT, of eight 4-bit elements, the first in the lowest bits. */
static inline uint32_t kiln_order_nibbles(uint32_t word) {
  return kiln_spread_nibbles(word & 0xFFFF) | kiln_spread_nibbles(word >> 16) << 4;
}

/* kept_numbers.c; kept_numbers_none.c takes its place in libraries without groups. The functions of these forms, as in
 * kiln_form_t. */

bool kiln_gguf_has_groups(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group);
void kiln_gguf_read_groups(const kiln_tensor_t *tensor, const kiln_part_t *part,
                           char *const arrays[KILN_FORMAT_ARRAYS]);
bool kiln_int4_has_groups(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group);
void kiln_int4_read_groups(const kiln_tensor_t *tensor, const kiln_part_t *part,
                           char *const arrays[KILN_FORMAT_ARRAYS]);
bool kiln_f8_has_groups(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group);
void kiln_f8_read_groups(const kiln_tensor_t *tensor, const kiln_part_t *part, char *const arrays[KILN_FORMAT_ARRAYS]);
bool kiln_nvfp4_has_groups(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group);
void kiln_nvfp4_read_groups(const kiln_tensor_t *tensor, const kiln_part_t *part,
                            char *const arrays[KILN_FORMAT_ARRAYS]);

/* quantized.c */

typedef struct kiln_quantized_t {
  kiln_quantization_t quantization;
  kiln_renames_t renames;
} kiln_quantized_t;
/* Combines tensors of safetensors files, sorted by name, to weights: a table under the model's names. */
kiln_status_t kiln_quantized_join(const kiln_tensors_t *stored, const kiln_quantized_t *how,
                                  const kiln_allocator_t *allocator, kiln_tensors_t *table, kiln_error_t *error);

#ifdef __cplusplus
}
#endif
#endif /* KILN_PUBLISHED_H */
