// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* A table of tensors, sorted by name, tensors.c, and how files have it, safetensors.c. */
#ifndef KILN_TENSORS_H
#define KILN_TENSORS_H

#include "file.h"
#include "model.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_tensor_t {
  const char *name; /* not terminated */
  size_t name_length;
  const char *file; /* of several with an index, the name of the one that it is in; not terminated */
  size_t file_length;
  const kiln_file_t *source;    /* the mapped file that the data are in; null: memory that stays */
  const char *data;             /* its first byte; null in an index whose files are not read yet */
  uint64_t begin, end;          /* bytes of the file's data section */
  int64_t shape[KILN_MAX_RANK]; /* the first extents, where rank is larger */
  uint32_t rank;
  uint16_t dtype;                 /* kiln_dtype_t, or a larger number for a type that no model has */
  bool is_used;                   /* for the binder */
  const struct kiln_form_t *form; /* null: elements of dtype lie side by side */
  const void *parts;              /* for the form */
} kiln_tensor_t;
/* A part of a matrix: `depth` elements of each of `rows` rows, in groups. */
typedef struct kiln_part_t {
  size_t row, rows, first, depth, group;
} kiln_part_t;
/* How numbers are read that do not lie side by side as f32, f16 or bf16: by the reader that made the tensor, whose
 * dtype is f32 then. Works between kiln_rounding_begin and _end. */
typedef struct kiln_form_t {
  /* `count` numbers from element `first` on. */
  void (*read)(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count);
  /* Whether the numbers are int4 in groups of so many along rows, as they are stored; is_centred: 8 always stands for
   * 0. Then read_groups gives what kiln_quantize_groups would make, of whole groups. Null: they are not. */
  bool (*has_groups)(const kiln_tensor_t *tensor, uint32_t group, bool is_centred);
  void (*read_groups)(const kiln_tensor_t *tensor, const kiln_part_t *part, uint32_t *words, char *scales,
                      signed char *zeros);
} kiln_form_t;
typedef struct kiln_tensors_t {
  kiln_tensor_t *tensors;
  size_t count;
} kiln_tensors_t;
/* A name in three parts: what is before a "{}", the number in its place, what follows. */
typedef struct kiln_name_t {
  const char *parts[3];
  size_t lengths[3];
  char digits[12];
} kiln_name_t;

/* Sorts by any order, whatever the tensors are: no allocation, no bad case. */
void kiln_tensors_sort(kiln_tensors_t *table, int (*order)(const kiln_tensor_t *left, const kiln_tensor_t *right));
/* For it: by where they begin, then by where they end. */
int kiln_tensors_order_by_offset(const kiln_tensor_t *left, const kiln_tensor_t *right);
/* Sorts by name; two of one name are KILN_FILE_MALFORMED, of what messages call the document. */
kiln_status_t kiln_tensors_sort_by_name(kiln_tensors_t *table, const char *document, kiln_error_t *error);
/* The order of a name in parts and of a text: negative, 0 or positive. */
int kiln_name_order(const kiln_name_t *name, const char *text, size_t length);
/* Null when there is none. */
kiln_tensor_t *kiln_tensors_find(const kiln_tensors_t *table, const kiln_name_t *name);
/* Lets go of what was allocated for a table that a file's reader made. */
void kiln_tensors_release(kiln_tensors_t *table, const kiln_allocator_t *allocator);

/* safetensors.c */

/* Checks the whole header against the image, which stays the caller's, and makes a table, the only thing allocated. */
kiln_status_t kiln_safetensors_open(const void *image, size_t bytes, const kiln_allocator_t *allocator,
                                    kiln_tensors_t *table, kiln_error_t *error);
/* The same of a file, from which the tensors are; what the table says is checked once and for all. */
kiln_status_t kiln_safetensors_open_file(const kiln_file_t *file, const kiln_allocator_t *allocator,
                                         kiln_tensors_t *table, kiln_error_t *error);
/* "F32"; never null, for any value. */
const char *kiln_safetensors_dtype_text(uint32_t dtype);
/* Bytes of so many elements that lie together; 0 for a value that is no type. */
uint64_t kiln_safetensors_stored_bytes(uint32_t dtype, uint64_t elements);

#ifdef __cplusplus
}
#endif
#endif /* KILN_TENSORS_H */
