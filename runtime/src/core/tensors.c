// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* A table of tensors by name, which the readers of weight files create and the binder queries. */
#include "core/tensors.h"

#include <string.h>

static int order_by_name(const kiln_tensor_t *left, const kiln_tensor_t *right) {
  size_t shorter = left->name_length < right->name_length ? left->name_length : right->name_length;
  int order = memcmp(left->name, right->name, shorter);
  return order ? order : left->name_length < right->name_length ? -1 : left->name_length > right->name_length;
}

int kiln_tensors_order_by_offset(const kiln_tensor_t *left, const kiln_tensor_t *right) {
  if (left->begin != right->begin)
    return left->begin < right->begin ? -1 : 1;
  return left->end < right->end ? -1 : left->end > right->end;
}

/* Heapsort. */
void kiln_tensors_sort(kiln_tensors_t *table, int (*order)(const kiln_tensor_t *left, const kiln_tensor_t *right)) {
  kiln_tensor_t *const tensors = table->tensors;
  for (size_t rooted = table->count / 2, end = table->count; end > 1;) {
    size_t root;
    if (rooted > 0) {
      root = --rooted;
    } else {
      kiln_tensor_t last = tensors[--end];
      tensors[end] = tensors[0];
      tensors[0] = last;
      root = 0;
    }
    kiln_tensor_t sinking = tensors[root];
    for (size_t child; (child = 2 * root + 1) < end; root = child) {
      if (child + 1 < end && order(&tensors[child], &tensors[child + 1]) < 0)
        ++child;
      if (order(&sinking, &tensors[child]) >= 0)
        break;
      tensors[root] = tensors[child];
    }
    tensors[root] = sinking;
  }
}

kiln_status_t kiln_tensors_sort_by_name(kiln_tensors_t *table, const char *document, kiln_error_t *error) {
  kiln_tensors_sort(table, order_by_name);
  for (size_t i = 1; i < table->count; ++i)
    if (order_by_name(&table->tensors[i - 1], &table->tensors[i]) == 0)
      return kiln_error_set(error, KILN_FILE_MALFORMED, "%s: repeated name; expected distinct ones, got \"%.*s\"",
                            document, kiln_shown(table->tensors[i].name_length), table->tensors[i].name);
  return KILN_OK;
}

int kiln_name_order(const kiln_name_t *name, const char *text, size_t length) {
  size_t at = 0;
  for (int i = 0; i < 3; ++i) {
    size_t left = length - at;
    size_t common = name->lengths[i] < left ? name->lengths[i] : left;
    int order = memcmp(name->parts[i], text + at, common);
    if (order || common < name->lengths[i])
      return order ? order : 1;
    at += common;
  }
  return at < length ? -1 : 0;
}

kiln_tensor_t *kiln_tensors_find(const kiln_tensors_t *table, const kiln_name_t *name) {
  for (size_t low = 0, high = table->count; low < high;) {
    size_t middle = low + (high - low) / 2;
    int order = kiln_name_order(name, table->tensors[middle].name, table->tensors[middle].name_length);
    if (order == 0)
      return &table->tensors[middle];
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

void kiln_tensors_release(kiln_tensors_t *table, const kiln_allocator_t *allocator) {
  if (table->tensors)
    allocator->release(allocator->self, table->tensors);
  memset(table, 0, sizeof *table);
}

const char *kiln_shape_text(char buffer[KILN_SHAPE_TEXT_BYTES], uint32_t rank, const int64_t *shape) {
  size_t length = 0;
  buffer[length++] = '[';
  for (uint32_t i = 0; i < rank && i < KILN_MAX_RANK; ++i)
    length +=
        kiln_text_print(buffer + length, KILN_SHAPE_TEXT_BYTES - length, i ? ", %lld" : "%lld", (long long)shape[i]);
  kiln_text_print(buffer + length, KILN_SHAPE_TEXT_BYTES - length, rank > KILN_MAX_RANK ? ", ...]" : "]");
  return buffer;
}
