// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The part of JSON that weight files need, parsed in place, json.c. */
#ifndef KILN_JSON_H
#define KILN_JSON_H

#include "kiln/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_json_t {
  const char *begin, *next, *end;
  kiln_error_t *error;
  const char *document; /* its name in messages: "safetensors header" */
} kiln_json_t;
/* A validated string, still escaped, without its quotes. */
typedef struct kiln_json_string_t {
  const char *text;
  size_t length;
  size_t decoded_length; /* bytes of UTF-8; equal to length if and only if nothing is escaped */
} kiln_json_string_t;
/* All functions skip white space first. Failures are KILN_FILE_MALFORMED; `what` describes the expected item in the
 * message. */
kiln_status_t kiln_json_fail(const kiln_json_t *json, const char *what);
bool kiln_json_accept(kiln_json_t *json, char wanted);
kiln_status_t kiln_json_expect(kiln_json_t *json, char wanted, const char *what);
kiln_status_t kiln_json_read_string(kiln_json_t *json, const char *what, kiln_json_string_t *string);
/* Reads an integer from 0 to INT64_MAX. */
kiln_status_t kiln_json_read_integer(kiln_json_t *json, const char *what, int64_t *value);
bool kiln_json_at_end(kiln_json_t *json);
bool kiln_json_string_equals(const kiln_json_string_t *string, const char *text);
/* The bytes that kiln_json_string_place writes. */
static inline size_t kiln_json_string_room(const kiln_json_string_t *string) {
  return string->decoded_length == string->length ? 0 : string->decoded_length;
}
/* Returns the decoded_length bytes of a string, without a terminator: in place if nothing is escaped, else written
 * to *room, which is advanced past them. */
const char *kiln_json_string_place(const kiln_json_string_t *string, char **room);
/* Writes the decoded_length bytes of a string, and returns their end. */
char *kiln_json_string_copy(const kiln_json_string_t *string, char *to);
/* Skips a value of any kind. */
kiln_status_t kiln_json_skip(kiln_json_t *json, const char *what);

#ifdef __cplusplus
}
#endif
#endif /* KILN_JSON_H */
