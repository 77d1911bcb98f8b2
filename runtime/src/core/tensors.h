// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* A table of tensors, sorted by name, tensors.c, and its parser for safetensors files, safetensors.c. */
#ifndef KILN_TENSORS_H
#define KILN_TENSORS_H

#include "base/status.h"
#include "core/model.h"
#include "kiln/formats.h"
#include "os/file.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_tensor_t {
  const char *name; /* not terminated */
  size_t name_length;
  const char *file; /* with an index, the name of its file; not terminated */
  size_t file_length;
  const kiln_file_t *source;    /* the mapped file of the data; null: memory that stays valid */
  const char *data;             /* first byte; null for an index whose files are not read yet */
  uint64_t begin, end;          /* bytes of the file's data section */
  int64_t shape[KILN_MAX_RANK]; /* the first dimensions, if rank is larger */
  uint32_t rank;
  uint16_t dtype;                 /* kiln_dtype_t, or a larger number for a type that no model has */
  bool is_used;                   /* for the binder */
  const struct kiln_form_t *form; /* null: contiguous elements of dtype */
  const void *parts;              /* for the form */
} kiln_tensor_t;
/* A part of a matrix: `k_extent` elements of each of `rows` rows, in groups; 0: without groups. */
typedef struct kiln_part_t {
  size_t row, rows, first, k_extent, group;
} kiln_part_t;
/* Reads tensors that are not contiguous f32, f16 or bf16; set by the reader that created the tensor, whose dtype is
 * then f32. Must be called between kiln_rounding_begin and _end. */
typedef struct kiln_form_t {
  /* Reads `count` values from element `first` on. */
  void (*read)(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count);
  /* Whether the numbers are those of a storage format with groups of this size along rows, so that they need not be
   * quantised. If so, read_groups returns whole groups, or blocks, as the arrays of the format, [items][rows] each.
   * Null: they are not. */
  bool (*has_groups)(const kiln_tensor_t *tensor, const kiln_format_t *format, uint32_t group);
  void (*read_groups)(const kiln_tensor_t *tensor, const kiln_part_t *part, char *const arrays[KILN_FORMAT_ARRAYS]);
} kiln_form_t;
typedef struct kiln_tensors_t {
  kiln_tensor_t *tensors;
  size_t count;
} kiln_tensors_t;
/* A name in three parts: the text before a "{}", the number in its place, and the text after it. */
typedef struct kiln_name_t {
  const char *parts[3];
  size_t lengths[3];
  char digits[12];
} kiln_name_t;

/* Room for the text of any shape: KILN_MAX_RANK numbers, separators and an ellipsis. */
enum { KILN_SHAPE_TEXT_BYTES = 24 * KILN_MAX_RANK };
/* Formats "[3, 4]"; dimensions past KILN_MAX_RANK, which shape does not hold, show as "...". Returns buffer. */
const char *kiln_shape_text(char buffer[KILN_SHAPE_TEXT_BYTES], uint32_t rank, const int64_t *shape);

/* Sorts by any order without allocation, and without a quadratic worst case. */
void kiln_tensors_sort(kiln_tensors_t *table, int (*order)(const kiln_tensor_t *left, const kiln_tensor_t *right));
/* Orders by begin, then by end. */
int kiln_tensors_order_by_offset(const kiln_tensor_t *left, const kiln_tensor_t *right);
/* Sorts by name; duplicates are KILN_FILE_MALFORMED, with the document's name in the message. */
kiln_status_t kiln_tensors_sort_by_name(kiln_tensors_t *table, const char *document, kiln_error_t *error);
/* Compares a name in parts with a text: negative, 0 or positive. */
int kiln_name_order(const kiln_name_t *name, const char *text, size_t length);
/* Returns null if there is none. */
kiln_tensor_t *kiln_tensors_find(const kiln_tensors_t *table, const kiln_name_t *name);
/* Releases the allocations of a table that a file reader created. */
void kiln_tensors_release(kiln_tensors_t *table, const kiln_allocator_t *allocator);

#ifdef __cplusplus
}
#endif
#endif /* KILN_TENSORS_H */
