// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Texts of messages, status.c. */
#ifndef KILN_STATUS_H
#define KILN_STATUS_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How much of a name a message shows. */
enum { KILN_NAME_SHOWN = 80 };
/* As many bytes of a text as a message shows, for "%.*s". */
static inline int kiln_shown(size_t length) { return length < KILN_NAME_SHOWN ? (int)length : KILN_NAME_SHOWN; }
/* Room for the text of any shape: KILN_MAX_RANK numbers, separators and an ellipsis. */
enum { KILN_SHAPE_TEXT_BYTES = 24 * KILN_MAX_RANK };

/* For a size_t; some C libraries of Windows do not know "%zu". */
#if defined(_WIN32)
#define KILN_SIZE "%llu"
#else
#define KILN_SIZE "%zu"
#endif

/* As snprintf, which does not fail with the formats used here. */
size_t kiln_text_print(char *to, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Writes status and words to error, which may be null; returns status. */
kiln_status_t kiln_error_set(kiln_error_t *error, kiln_status_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Clears error, which may be null; returns KILN_OK. */
kiln_status_t kiln_error_clear(kiln_error_t *error);
/* Puts a file's name before the words of error, which may be null; returns status. */
kiln_status_t kiln_error_name_file(kiln_error_t *error, kiln_status_t status, const char *file, size_t length);
/* KILN_FILE_ERROR: "cannot open weight file ...". */
kiln_status_t kiln_file_error(kiln_error_t *error, const char *action, const char *path, const char *reason);
/* "[3, 4]"; extents past KILN_MAX_RANK, which shape does not hold, show as "...". Returns buffer. */
const char *kiln_shape_text(char buffer[KILN_SHAPE_TEXT_BYTES], uint32_t rank, const int64_t *shape);

#ifdef __cplusplus
}
#endif
#endif /* KILN_STATUS_H */
