// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Texts of messages, status.c. */
#ifndef KILN_STATUS_H
#define KILN_STATUS_H

#include "kiln/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of characters of a name that a message shows. */
enum { KILN_NAME_SHOWN = 80 };
/* The number of bytes of a text that a message shows, for "%.*s". */
static inline int kiln_shown(size_t length) { return length < KILN_NAME_SHOWN ? (int)length : KILN_NAME_SHOWN; }

/* The format of a size_t; some C libraries of Windows do not support "%zu". */
#if defined(_WIN32)
#define KILN_SIZE "%llu"
#else
#define KILN_SIZE "%zu"
#endif

/* Like snprintf, which does not fail with the formats used here. */
size_t kiln_text_print(char *to, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Writes status and message to error, which may be null; returns status. */
kiln_status_t kiln_error_set(kiln_error_t *error, kiln_status_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Clears error, which may be null; returns KILN_OK. */
kiln_status_t kiln_error_clear(kiln_error_t *error);
/* Prefixes the message of error, which may be null, with a file's name; returns status. */
kiln_status_t kiln_error_name_file(kiln_error_t *error, kiln_status_t status, const char *file, size_t length);
/* KILN_FILE_ERROR: "cannot open weight file ...". */
kiln_status_t kiln_file_error(kiln_error_t *error, const char *action, const char *path, const char *reason);

#ifdef __cplusplus
}
#endif
#endif /* KILN_STATUS_H */
