// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Readers of weight files: each creates a table of tensors. */
#ifndef KILN_FILES_H
#define KILN_FILES_H

#include "core/tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* safetensors.c */

/* Validates the whole header against the image, which the caller owns, and creates a table, the only allocation. */
kiln_status_t kiln_safetensors_open(const void *image, size_t bytes, const kiln_allocator_t *allocator,
                                    kiln_tensors_t *table, kiln_error_t *error);
/* Like kiln_safetensors_open, for a file with the tensors; the table's contents need no further checks. */
kiln_status_t kiln_safetensors_open_file(const kiln_file_t *file, const kiln_allocator_t *allocator,
                                         kiln_tensors_t *table, kiln_error_t *error);
/* "F32"; never null, for any value. */
const char *kiln_safetensors_dtype_text(uint32_t dtype);
/* Bytes of contiguous elements; 0 for an invalid type. */
uint64_t kiln_safetensors_stored_bytes(uint32_t dtype, uint64_t elements);

/* source.c */

/* Opens a file for its tensors; kiln_file_unmap closes it. Maps it, or copies it for a model with KILN_COPY_FILES. */
kiln_status_t kiln_source_open(const kiln_model_t *model, const char *path, kiln_file_t *file, kiln_error_t *error);
/* Replaces the mapping by a copy and closes the file. On any failure the file is unmapped. */
kiln_status_t kiln_file_own(kiln_file_t *file, const kiln_allocator_t *allocator, kiln_error_t *error);
/* Checks, before the data are read, that no file of these tensors has been truncated. */
kiln_status_t kiln_source_check(const kiln_tensors_t *table, kiln_error_t *error);
/* The file formats that are read. */
typedef enum kiln_kind_t {
  KILN_KIND_SAFETENSORS = 1,
  KILN_KIND_INDEX = 2,
  KILN_KIND_GGUF = 3,
  KILN_KIND_PACKED = 4
} kiln_kind_t;
/* The number of leading bytes that are inspected. */
enum { KILN_KIND_BYTES = 264 };
/* For a file that does not start like the expected format: returns KILN_FILE_MALFORMED with a message that names the
 * format that its first bytes indicate, or KILN_OK if they indicate none. */
kiln_status_t kiln_kind_check(const void *begin, size_t bytes, kiln_kind_t expected, kiln_error_t *error);

/* index.c */

/* Processes the tensors of a checkpoint, which live until it returns. */
typedef kiln_status_t (*kiln_take_t)(kiln_model_t *model, kiln_tensors_t *table, const void *context,
                                     kiln_error_t *error);
/* kiln_checkpoint_take for the path of an index. */
kiln_status_t kiln_index_take(kiln_model_t *model, const char *path, kiln_take_t take, const void *context,
                              kiln_error_t *error);

#ifdef __cplusplus
}
#endif
#endif /* KILN_FILES_H */
