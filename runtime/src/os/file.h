// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* System memory, files and paths: pages.c, file.c and path.c. */
#ifndef KILN_FILE_H
#define KILN_FILE_H

#include "kiln/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Allocate zeroed system memory, or map (or copy) an open file from its first byte; null on failure. is_written: the
 * mapping is private and writable. */
char *kiln_pages_allocate(size_t bytes);
char *kiln_pages_of_file(int descriptor, size_t bytes, bool is_written);
void kiln_pages_release(void *memory, size_t bytes);
/* A number that no other process has at the same time. */
long kiln_process(void);

/* Whether the character ends the folder part of a path; on Windows also that of a drive. */
static inline bool kiln_is_separator(char character) {
#if defined(_WIN32)
  return character == '/' || character == '\\' || character == ':';
#else
  return character == '/';
#endif
}
/* Returns the name of a file without its folders (path.c). */
const char *kiln_base_name(const char *path);

typedef struct kiln_file_t {
  const void *image;
  size_t bytes;
  const char *path;                      /* for messages; owned by the caller */
  intptr_t handle;                       /* of the open file; -1: no other process can change the image */
  const struct kiln_allocator_t *copied; /* allocator of the image; null: pages of the file */
} kiln_file_t;
/* Maps a file. is_written: the mapping is private and writable; else it is read-only. The file stays open. If
 * another process truncates it meanwhile, reading the lost pages ends the process: data that must be consistent are
 * read by kiln_file_read. */
kiln_status_t kiln_file_map(const char *path, bool is_written, kiln_file_t *file, kiln_error_t *error);
/* Reads bytes of the file at an offset by a system call, not from the mapping; KILN_FILE_ERROR: there are no such
 * bytes. */
kiln_status_t kiln_file_read(const kiln_file_t *file, uint64_t offset, void *to, size_t bytes, kiln_error_t *error);
/* Returns KILN_FILE_ERROR if the file is now shorter than its mapping. */
kiln_status_t kiln_file_check(const kiln_file_t *file, kiln_error_t *error);
/* Closes the file and keeps the mapping. */
void kiln_file_close(kiln_file_t *file);
/* Closes the file and unmaps the image. */
void kiln_file_unmap(kiln_file_t *file);
/* Releases the pages of bytes that were read, and neighbouring pages, so that they no longer count as memory of the
 * process. Bytes that are needed again are read again. */
void kiln_file_give_back(const kiln_file_t *file, const char *begin, const char *end);

typedef struct kiln_output_t {
  intptr_t handle; /* a file descriptor, or a Windows HANDLE */
  const char *path;
} kiln_output_t;
typedef kiln_status_t (*kiln_write_t)(const void *context, const kiln_output_t *output, kiln_error_t *error);
/* Writes a temporary file next to the path, then renames it to the path: another process may have mapped the old
 * file, and a program that ends meanwhile leaves it intact. Symbolic links are followed, and the new file has the
 * mode of the one that it replaces, which must be a regular file. */
kiln_status_t kiln_file_replace(const char *path, kiln_write_t write, const void *context, kiln_error_t *error);
/* For `write`. kiln_file_keep flushes the data so far to disk, as happens to all data before kiln_file_replace
 * returns. */
kiln_status_t kiln_file_write(const kiln_output_t *output, const void *bytes, uint64_t count, kiln_error_t *error);
kiln_status_t kiln_file_keep(const kiln_output_t *output, kiln_error_t *error);

#ifdef __cplusplus
}
#endif
#endif /* KILN_FILE_H */
