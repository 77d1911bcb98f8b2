// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Maps tensor names of third-party checkpoints to the model's, and the row order of rotary heads. */
#include "readers/published.h"
#include "weights/convert.h"

#include <string.h>

kiln_status_t kiln_renames_check(const kiln_renames_t *renames, const char *reader, kiln_error_t *error) {
  if (renames->count > 0 && !renames->renames)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s: null given; expected renames", reader);
  for (size_t i = 0; i < renames->count; ++i)
    if (!renames->renames[i].from)
      return kiln_error_set(error, KILN_NULL_ARGUMENT,
                            "%s: null given; expected a name that rename " KILN_SIZE " is from", reader, i);
  return KILN_OK;
}

kiln_status_t kiln_renames_check_rows(const kiln_renames_t *renames, const char *reader, kiln_error_t *error) {
  for (size_t i = 0; i < renames->count; ++i)
    if (renames->renames[i].rotary_heads)
      return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                            "%s: rename with rotary heads; expected none, got %u of \"%.*s\"", reader,
                            renames->renames[i].rotary_heads, KILN_NAME_SHOWN, renames->renames[i].from);
  return KILN_OK;
}

/* Whether a name matches a pattern; then the characters of * are those from *star to the end, without the last
 * *rest. */
static bool fits(const char *pattern, const char *name, size_t length, size_t *star, size_t *rest) {
  const size_t all = strlen(pattern);
  const char *const hole = strchr(pattern, '*');
  if (!hole)
    return all == length && memcmp(pattern, name, length) == 0;
  *star = (size_t)(hole - pattern);
  *rest = all - *star - 1;
  return *star + *rest <= length && memcmp(pattern, name, *star) == 0 &&
         memcmp(hole + 1, name + length - *rest, *rest) == 0;
}

/* Appends if `to` is not null; returns the new length. */
static size_t append(char *to, size_t at, const char *from, size_t length) {
  if (to)
    memcpy(to + at, from, length);
  return at + length;
}

size_t kiln_rename(const kiln_renames_t *renames, const char *name, size_t length, const kiln_rename_t **rename,
                   char *to) {
  for (size_t i = 0; i < renames->count; ++i) {
    const kiln_rename_t *each = &renames->renames[i];
    size_t star = 0, rest = length; /* without a *, the match is empty */
    if (!fits(each->from, name, length, &star, &rest))
      continue;
    *rename = each;
    if (!each->to)
      return 0;
    const char *const hole = strchr(each->to, '*');
    if (!hole)
      return append(to, 0, each->to, strlen(each->to));
    size_t at = append(to, 0, each->to, (size_t)(hole - each->to));
    at = append(to, at, name + star, length - star - rest);
    return append(to, at, hole + 1, strlen(hole + 1));
  }
  *rename = NULL;
  return append(to, 0, name, length);
}

kiln_status_t kiln_rename_check_zeros(const kiln_tensor_t *tensor, const char *name, size_t length, uint64_t elements,
                                      kiln_error_t *error) {
  for (uint64_t i = 0; i < elements; ++i) {
    float value;
    kiln_convert_read(tensor, &value, i, 1);
    if (!(value == 0))
      return kiln_error_set(error, KILN_WEIGHT_UNEXPECTED,
                            "tensor \"%.*s\": left out, not zero; expected zeros, got %.9g at element %llu",
                            kiln_shown(length), name, (double)value, (unsigned long long)i);
  }
  return KILN_OK;
}

/* Model: the first halves of a head's pairs, then the second halves. File: interleaved pairs. */
uint64_t kiln_rotary_row(uint64_t rows, uint32_t heads, uint64_t row) {
  if (heads == 0)
    return row;
  const uint64_t pairs = rows / heads / 2, within = row % (2 * pairs);
  return row - within + (within < pairs ? 2 * within : 2 * (within - pairs) + 1);
}

const char *kiln_base_name(const char *path) {
  const char *name = path;
  for (const char *at = path; *at; ++at)
    if (kiln_is_separator(*at))
      name = at + 1;
  return name;
}
