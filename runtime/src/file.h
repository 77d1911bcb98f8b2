// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Memory of the system, and files, pages.c and file.c. */
#ifndef KILN_FILE_H
#define KILN_FILE_H

#include "kiln/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Memory of the system, zero: null if there is none. That of an open file from its first byte on, or a copy of it; what
 * is written there stays the process's own. */
char *kiln_pages_allocate(size_t bytes);
char *kiln_pages_of_file(int descriptor, size_t bytes, bool is_written);
void kiln_pages_release(void *memory, size_t bytes);
/* A number that no other process has at the time. */
long kiln_process(void);

/* Whether what stands before it in a path is no part of a file's name; on Windows it may be a drive. */
static inline bool kiln_is_separator(char character) {
#if defined(_WIN32)
  return character == '/' || character == '\\' || character == ':';
#else
  return character == '/';
#endif
}
/* The name of a file without its folders (rename.c). */
const char *kiln_base_name(const char *path);

typedef struct kiln_file_t {
  const void *image;
  size_t bytes;
  const char *path;                      /* for messages; the caller's */
  intptr_t handle;                       /* of the open file; -1: nobody else changes the image */
  const struct kiln_allocator_t *copied; /* whose memory the image is; null: pages of the file */
} kiln_file_t;
/* is_written: what is written to the map stays the process's own; else it is for reading. The file stays open. Whoever
 * cuts it meanwhile takes pages from the map, whose reading then ends the process: what must be consistent is read by
 * kiln_file_read. */
kiln_status_t kiln_file_map(const char *path, bool is_written, kiln_file_t *file, kiln_error_t *error);
/* Bytes of the file from an offset on, by the system and not from the map; KILN_FILE_ERROR: it has no such bytes. */
kiln_status_t kiln_file_read(const kiln_file_t *file, uint64_t offset, void *to, size_t bytes, kiln_error_t *error);
/* KILN_FILE_ERROR if the file is shorter than its map by now. */
kiln_status_t kiln_file_check(const kiln_file_t *file, kiln_error_t *error);
/* Closes the file, whose map stays. */
void kiln_file_close(kiln_file_t *file);
/* Closes it, and the image is gone. */
void kiln_file_unmap(kiln_file_t *file);
/* Bytes of the file were read: the pages that hold them no longer count as memory of the process, nor do their
 * neighbours. What is needed again is read again. */
void kiln_file_give_back(const kiln_file_t *file, const char *begin, const char *end);

typedef struct kiln_output_t {
  intptr_t handle; /* a descriptor, or a HANDLE of Windows */
  const char *path;
} kiln_output_t;
typedef kiln_status_t (*kiln_write_t)(const void *context, const kiln_output_t *output, kiln_error_t *error);
/* Writes a file next to the one at the path, which then takes its place: another process may have mapped that, and a
 * program that ends meanwhile leaves it whole. Symbolic links are followed, and the new file has the mode of the one
 * that it replaces, which must be a regular file. */
kiln_status_t kiln_file_replace(const char *path, kiln_write_t write, const void *context, kiln_error_t *error);
/* For `write`; and what was written so far comes to the disk, as all of it does before the function returns. */
kiln_status_t kiln_file_write(const kiln_output_t *output, const void *bytes, uint64_t count, kiln_error_t *error);
kiln_status_t kiln_file_keep(const kiln_output_t *output, kiln_error_t *error);

#ifdef __cplusplus
}
#endif
#endif /* KILN_FILE_H */
