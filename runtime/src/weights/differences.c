// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The differences between the tensors of a file and the weights of a model: an iteration over all of them, and a
 * message with as many as fit. */
#include "core/instance.h"
#include "core/sharding.h"
#include "weights/bind.h"
#include "weights/convert.h"

#include <string.h>

/* Whether it is a tensor that no model needs: counters of PyTorch's batch norms, and constants that older versions
 * wrote. */
static bool is_ignored(const kiln_tensor_t *tensor) {
  static const char *const names[] = {".num_batches_tracked", ".position_ids"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    const size_t length = strlen(names[i]),
                 skipped = tensor->name_length + 1 == length; /* at the start of a name, without the dot */
    if (tensor->name_length + skipped >= length &&
        memcmp(tensor->name + tensor->name_length + skipped - length, names[i] + skipped, length - skipped) == 0)
      return true;
  }
  return false;
}

/* Whether an earlier weight has its name: the second weight of a tensor that is packed twice. */
static bool is_again(const kiln_descriptor_t *descriptor, uint32_t index) {
  for (uint32_t i = 0; i < index; ++i)
    if (strcmp(descriptor->weights[i].name, descriptor->weights[index].name) == 0)
      return true;
  return false;
}

void kiln_differences_begin(kiln_differences_t *walk, const kiln_model_t *model, const kiln_tensors_t *table) {
  *walk = (kiln_differences_t){.model = model, .table = table};
}

/* Compares the tensor of a copy of *weight with it; false if they do not differ. */
static bool differs(kiln_differences_t *walk, kiln_difference_t *found) {
  const kiln_weight_t *weight = found->weight;
  kiln_weight_name(weight, walk->copy, &walk->name);
  found->name = &walk->name;
  found->tensor = kiln_tensors_find(walk->table, &walk->name);
  found->kind = KILN_DIFFERS_MISSING;
  if (!found->tensor)
    return true;
  found->tensor->is_used = true;
  found->kind = KILN_DIFFERS_SHAPE;
  if (!kiln_weight_has_shape(weight, found->tensor))
    return true;
  found->kind = KILN_DIFFERS_TYPE;
  return !kiln_convert_is_source(found->tensor->dtype, weight->dtype);
}

bool kiln_differences_next(kiln_differences_t *walk, kiln_difference_t *found) {
  const kiln_descriptor_t *descriptor = walk->model->descriptor;
  for (; walk->index < descriptor->weight_count; ++walk->index, walk->copy = 0) {
    found->weight = kiln_whole_weight(descriptor, walk->index, &walk->room);
    while (walk->copy < found->weight->copies) {
      const bool is_different = differs(walk, found);
      ++walk->copy;
      if (is_different && !is_again(descriptor, walk->index))
        return true;
    }
  }
  found->weight = NULL;
  found->kind = KILN_DIFFERS_UNEXPECTED;
  while (walk->tensor < walk->table->count) {
    found->tensor = &walk->table->tensors[walk->tensor++];
    if (!found->tensor->is_used && !is_ignored(found->tensor))
      return true;
  }
  return false;
}

static char character_of(const kiln_name_t *name, size_t at) {
  int part = 0;
  for (; at >= name->lengths[part]; ++part)
    at -= name->lengths[part];
  return name->parts[part][at];
}

/* The length of the part between the common prefix and suffix of two names; SIZE_MAX: they have little in common. */
static size_t distance(const kiln_name_t *name, const kiln_tensor_t *tensor) {
  const size_t length = name->lengths[0] + name->lengths[1] + name->lengths[2], other = tensor->name_length;
  const size_t shorter = length < other ? length : other, longer = length < other ? other : length;
  size_t before = 0, suffix = 0;
  while (before < shorter && character_of(name, before) == tensor->name[before])
    ++before;
  while (suffix < shorter - before && character_of(name, length - suffix - 1) == tensor->name[other - suffix - 1])
    ++suffix;
  const size_t apart = longer - before - suffix;
  return before + suffix == shorter || 3 * apart <= 2 * longer ? apart : SIZE_MAX;
}

const kiln_tensor_t *kiln_nearest(const kiln_tensors_t *table, const kiln_weight_t *weight, const kiln_name_t *name) {
  const kiln_tensor_t *nearest = NULL;
  size_t least = SIZE_MAX;
  for (size_t i = 0; i < table->count; ++i) {
    const kiln_tensor_t *tensor = &table->tensors[i];
    if (tensor->is_used || is_ignored(tensor))
      continue;
    /* Prefers the matching shape among equally near names. */
    size_t apart = distance(name, tensor);
    if (apart != SIZE_MAX)
      apart = 2 * apart + !kiln_weight_has_shape(weight, tensor);
    if (apart < least) {
      least = apart;
      nearest = tensor;
    }
  }
  return nearest;
}

/* A message that is composed of pieces. */
typedef struct message_t {
  char text[sizeof((kiln_error_t *)0)->message];
  size_t length;
} message_t;

/* Appends a text if it fits and leaves `reserved` bytes. */
static bool append(message_t *message, const char *text, size_t reserved) {
  const size_t length = strlen(text);
  if (message->length + length + reserved >= sizeof message->text)
    return false;
  memcpy(message->text + message->length, text, length + 1);
  message->length += length;
  return true;
}

/* Room for ", and 4294967295 more". */
enum { REST_BYTES = 21, ITEM_BYTES = 256 };

/* Prints " (nearest ...)" for a missing tensor, or nothing. */
static void print_nearest(char item[ITEM_BYTES], const kiln_differences_t *walk, const kiln_difference_t *found) {
  const kiln_tensor_t *nearest =
      found->kind == KILN_DIFFERS_MISSING ? kiln_nearest(walk->table, found->weight, found->name) : NULL;
  item[0] = '\0';
  if (nearest)
    kiln_text_print(item, ITEM_BYTES, " (nearest \"%.*s\")", kiln_shown(nearest->name_length), nearest->name);
}

static void print_item(char item[ITEM_BYTES], const kiln_difference_t *found, const char *before) {
  const kiln_weight_t *weight = found->weight;
  const kiln_tensor_t *tensor = found->tensor;
  char name[KILN_NAME_SHOWN + 1], wanted[KILN_SHAPE_TEXT_BYTES], got[KILN_SHAPE_TEXT_BYTES];
  if (!weight)
    kiln_text_print(item, ITEM_BYTES, "%s\"%.*s\" unexpected", before, kiln_shown(tensor->name_length), tensor->name);
  else if (found->kind == KILN_DIFFERS_MISSING)
    kiln_text_print(item, ITEM_BYTES, "%s\"%s\" missing", before, kiln_name_text(found->name, name));
  else if (found->kind == KILN_DIFFERS_SHAPE)
    kiln_text_print(item, ITEM_BYTES, "%s\"%s\" has shape %s, expected %s", before, kiln_name_text(found->name, name),
                    kiln_shape_text(got, tensor->rank, tensor->shape),
                    kiln_shape_text(wanted, weight->rank, weight->shape));
  else
    kiln_text_print(item, ITEM_BYTES, "%s\"%s\" has type %s, expected %s", before, kiln_name_text(found->name, name),
                    kiln_safetensors_dtype_text(tensor->dtype), kiln_convert_sources_text(weight->dtype));
}

/* Appends differences while they fit: either the first of each kind, or the others. Returns their number. */
static uint32_t append_items(message_t *message, kiln_differences_t walk, bool of_first, uint32_t shown) {
  bool is_seen[KILN_DIFFERENCE_KINDS] = {false};
  char item[ITEM_BYTES];
  kiln_difference_t found;
  while (kiln_differences_next(&walk, &found)) {
    const bool is_first = !is_seen[found.kind];
    is_seen[found.kind] = true;
    if (is_first != of_first)
      continue;
    print_item(item, &found, shown ? ", " : "");
    if (!append(message, item, REST_BYTES))
      break;
    ++shown;
    print_nearest(item, &walk, &found);
    (void)append(message, item, REST_BYTES);
  }
  return shown;
}

/* Prints a message about several differences. */
static void print_all(message_t *message, const kiln_differences_t *walk, const uint32_t counts[KILN_DIFFERENCE_KINDS],
                      uint32_t all) {
  static const char kinds[KILN_DIFFERENCE_KINDS][17] = {"missing", "of another shape", "of another type", "unexpected"};
  char item[ITEM_BYTES];
  kiln_text_print(item, sizeof item, "weight file: does not fit model \"%.*s\"; ", KILN_NAME_SHOWN,
                  walk->model->descriptor->name);
  append(message, item, 0);
  for (int kind = 0, listed = 0; kind < KILN_DIFFERENCE_KINDS; ++kind)
    if (counts[kind] > 0) {
      kiln_text_print(item, sizeof item, "%s%u %s", listed++ ? ", " : "", counts[kind], kinds[kind]);
      append(message, item, 0);
    }
  append(message, ": ", 0);
  uint32_t shown = append_items(message, *walk, true, 0);
  shown = append_items(message, *walk, false, shown);
  kiln_text_print(item, sizeof item, "%s%u more", shown ? ", and " : "", all - shown);
  if (shown < all)
    append(message, item, 0);
}

kiln_status_t kiln_differences_check(const kiln_model_t *model, const kiln_tensors_t *table, kiln_error_t *error) {
  static const kiln_status_t statuses[KILN_DIFFERENCE_KINDS] = {KILN_WEIGHT_MISSING, KILN_WEIGHT_SHAPE,
                                                                KILN_WEIGHT_TYPE, KILN_WEIGHT_UNEXPECTED};
  kiln_differences_t begin, walk;
  kiln_difference_t found;
  uint32_t counts[KILN_DIFFERENCE_KINDS] = {0}, all = 0;
  message_t message = {"", 0};
  char nearest[ITEM_BYTES];
  kiln_differences_begin(&begin, model, table);
  walk = begin;
  for (; kiln_differences_next(&walk, &found); ++all)
    ++counts[found.kind];
  if (all == 0)
    return KILN_OK;
  walk = begin;
  kiln_differences_next(&walk, &found);
  const kiln_status_t status = statuses[found.kind];
  if (all > 1) {
    print_all(&message, &begin, counts, all);
    return kiln_error_set(error, status, "%s", message.text);
  }
  if (!found.weight)
    return kiln_check_used(model, table, error);
  kiln_check_weight(found.weight, found.name, found.tensor, error);
  print_nearest(nearest, &begin, &found);
  if (error) {
    append(&message, error->message, 0);
    append(&message, nearest, 0);
    kiln_error_set(error, status, "%s", message.text);
  }
  return status;
}

kiln_status_t kiln_check_used(const kiln_model_t *model, const kiln_tensors_t *table, kiln_error_t *error) {
  for (size_t i = 0; i < table->count; ++i) {
    const kiln_tensor_t *tensor = &table->tensors[i];
    if (!tensor->is_used && !is_ignored(tensor))
      return kiln_error_set(error, KILN_WEIGHT_UNEXPECTED, "model \"%.*s\" has no tensor \"%.*s\", the weight file has",
                            KILN_NAME_SHOWN, model->descriptor->name, kiln_shown(tensor->name_length), tensor->name);
  }
  return KILN_OK;
}
