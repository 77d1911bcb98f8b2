// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Maps tensor names of third-party checkpoints to the model's, and the row order of rotary heads. */
#include "published/published.h"
#include "weights/convert.h"

#include <string.h>

kiln_status_t kiln_renames_check(const kiln_model_t *model, const char *path, const kiln_renames_t *renames,
                                 bool has_heads, const char *reader, kiln_error_t *error) {
  const char *const missing = !model                                ? "a model"
                              : !path                               ? "a path"
                              : renames->count && !renames->renames ? "renames"
                                                                    : NULL;
  if (missing)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "%s: null given; expected %s", reader, missing);
  for (size_t i = 0; i < renames->count; ++i) {
    const kiln_rename_t *rename = &renames->renames[i];
    if (!rename->from)
      return kiln_error_set(error, KILN_NULL_ARGUMENT,
                            "%s: null given; expected a name that rename " KILN_SIZE " is from", reader, i);
    if (rename->rotary_heads && !has_heads)
      return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                            "%s: rename with rotary heads; expected none, got %u of \"%.*s\"", reader,
                            rename->rotary_heads, KILN_NAME_SHOWN, rename->from);
  }
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

/* A message lists the nearest names until there are NEAREST, or NEAREST_BYTES are used. COMPARED characters of a
 * name are compared. */
enum { NEAREST = 3, NEAREST_BYTES = 60, COMPARED = 255 };

/* The least number of characters to insert, remove or replace in a pattern so that it matches a name. */
static uint32_t distance(const char *pattern, const char *name, size_t length) {
  const char *const hole = strchr(pattern, '*');
  uint32_t row[COMPARED + 1]; /* for the pattern so far, and each beginning of the name */
  length = length < COMPARED ? length : COMPARED;
  for (size_t i = 0; i <= length; ++i)
    row[i] = (uint32_t)i;
  for (const char *at = pattern; *at; ++at) {
    const uint32_t step = at != hole; /* to remove a character, or to insert one */
    uint32_t before = row[0];
    row[0] += step;
    for (size_t i = 1; i <= length; ++i) {
      uint32_t least = before + (*at != name[i - 1]);
      before = row[i];
      least = row[i] + step < least ? row[i] + step : least;
      row[i] = row[i - 1] + step < least ? row[i - 1] + step : least;
    }
  }
  return row[length];
}

bool kiln_renames_next(const void *stored, size_t *at, kiln_tensor_t *tensor) {
  const kiln_tensors_t *const table = stored;
  if (*at == table->count)
    return false;
  *tensor = table->tensors[(*at)++];
  return true;
}

/* Reports a rename that matches none of the names, with the nearest ones. */
static kiln_status_t refuse(const char *pattern, size_t number, kiln_next_name_t next, const void *file,
                            kiln_error_t *error) {
  char list[NEAREST_BYTES + KILN_NAME_SHOWN + 2] = "";
  kiln_tensor_t tensor;
  size_t bytes = 0;
  uint64_t last = 0;
  for (int i = 0; i < NEAREST && bytes < NEAREST_BYTES; ++i) {
    uint64_t least = UINT64_MAX;
    size_t at = 0, added = 0;
    while (next(file, &at, &tensor)) {
      /* The first one of equally near names. */
      const uint64_t key = (uint64_t)distance(pattern, tensor.name, tensor.name_length) << 32 | (uint32_t)at;
      if (key <= last || key >= least)
        continue;
      least = key;
      added = kiln_text_print(list + bytes, sizeof list - bytes, i ? ", %.*s" : "; nearest: %.*s",
                              kiln_shown(tensor.name_length), tensor.name);
    }
    last = least;
    bytes += added;
  }
  return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                        "rename " KILN_SIZE ": fits no tensor; expected a name of the weight file, got \"%.*s\"%s",
                        number, KILN_NAME_SHOWN, pattern, list);
}

kiln_status_t kiln_renames_check_fit(const kiln_renames_t *renames, kiln_next_name_t next, const void *file,
                                     kiln_error_t *error) {
  for (size_t i = 0; i < renames->count; ++i) {
    const kiln_renames_t one = {&renames->renames[i], 1};
    const kiln_rename_t *found = one.renames->flags & KILN_RENAME_OPTIONAL ? one.renames : NULL;
    kiln_tensor_t tensor;
    size_t at = 0;
    while (!found && next(file, &at, &tensor))
      kiln_rename(&one, tensor.name, tensor.name_length, &found, NULL);
    if (!found)
      return refuse(one.renames->from, i, next, file, error);
  }
  return KILN_OK;
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
