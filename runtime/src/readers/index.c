// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Opens a checkpoint of several safetensors files. Its index, a JSON file in the same folder, maps tensors to files:
 *
 *   {"metadata": {...}, "weight_map": {"wte.weight": "model-00001-of-00002.safetensors", ...}}
 *
 *   1. Walk the index to validate it and to count; allocate a table of its names, walk again to fill it, sort it.
 *   2. Map each file once. The tensors of a file must be exactly those that the index assigns to it.
 *   3. Return the table like that of a single file. */
#include "core/instance.h"
#include "readers/files.h"
#include "readers/json.h"

#include <string.h>

/* The name in messages. */
#define DOCUMENT "index of weight files"
/* The maximum size in bytes, which is also that of the header of a file. */
#define INDEX_LIMIT 100000000u
/* Linux's limits of a path and of a name, with the terminator. */
enum { PATH_BYTES = 4096, NAME_BYTES = 256 };

/* A file of the checkpoint; all files stay mapped until everything is packed. */
typedef struct part_t {
  struct part_t *next;
  kiln_file_t file;
  char path[PATH_BYTES];
} part_t;

typedef struct index_t {
  kiln_json_t json;
  const kiln_model_t *model;
  const kiln_allocator_t *allocator;
  const char *folder; /* with its last slash; not terminated */
  size_t folder_length;
  kiln_tensors_t table;
  size_t room; /* bytes of escaped names and files */
  char *names; /* place of the next one; null in the counting pass */
  part_t *parts;
} index_t;

/* Whether a text is a plain name of a file in the index's folder. */
static bool is_plain(const char *name, size_t length) {
  if (length == 0 || length >= NAME_BYTES || (name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.'))))
    return false;
  for (size_t i = 0; i < length; ++i)
    if (kiln_is_separator(name[i]) || name[i] == '\0')
      return false;
  return true;
}

static kiln_status_t read_entry(index_t *index) {
  kiln_json_t *json = &index->json;
  kiln_json_string_t name, file;
  kiln_status_t status;
  if ((status = kiln_json_read_string(json, "the name of a tensor", &name)) ||
      (status = kiln_json_expect(json, ':', "':' after a name")) ||
      (status = kiln_json_read_string(json, "the name of a file", &file)))
    return status;
  if (!index->names) {
    index->room += kiln_json_string_room(&name) + kiln_json_string_room(&file);
  } else {
    kiln_tensor_t tensor = {.name_length = name.decoded_length, .file_length = file.decoded_length};
    tensor.name = kiln_json_string_place(&name, &index->names);
    tensor.file = kiln_json_string_place(&file, &index->names);
    index->table.tensors[index->table.count] = tensor;
    if (!is_plain(tensor.file, tensor.file_length))
      return kiln_error_set(json->error, KILN_FILE_MALFORMED,
                            DOCUMENT ": wrong file; expected one in its folder, got \"%.*s\" for tensor \"%.*s\"",
                            kiln_shown(tensor.file_length), tensor.file, kiln_shown(tensor.name_length), tensor.name);
  }
  ++index->table.count;
  return KILN_OK;
}

static kiln_status_t read_weight_map(index_t *index) {
  kiln_json_t *json = &index->json;
  kiln_status_t status = kiln_json_expect(json, '{', "'{' to begin weight_map");
  if (status || kiln_json_accept(json, '}'))
    return status;
  do {
    if ((status = read_entry(index)))
      return status;
  } while (kiln_json_accept(json, ','));
  return kiln_json_expect(json, '}', "',' or '}' in weight_map");
}

/* One pass. Members other than weight_map are ignored. */
static kiln_status_t read_index(index_t *index) {
  kiln_json_t *json = &index->json;
  bool has_map = false;
  kiln_status_t status = kiln_json_expect(json, '{', "'{' to begin");
  if (status)
    return status;
  if (!kiln_json_accept(json, '}')) {
    do {
      kiln_json_string_t name;
      if ((status = kiln_json_read_string(json, "a name", &name)) ||
          (status = kiln_json_expect(json, ':', "':' after a name")))
        return status;
      const bool is_map = kiln_json_string_equals(&name, "weight_map");
      if (is_map && has_map)
        return kiln_json_fail(json, "weight_map only once");
      has_map |= is_map;
      if ((status = is_map ? read_weight_map(index) : kiln_json_skip(json, "a value")))
        return status;
    } while (kiln_json_accept(json, ','));
    if ((status = kiln_json_expect(json, '}', "',' or '}' after a value")))
      return status;
  }
  if (!kiln_json_at_end(json))
    return kiln_json_fail(json, "nothing but white space after its last '}'");
  return has_map ? KILN_OK : kiln_error_set(json->error, KILN_FILE_MALFORMED, DOCUMENT ": no weight_map; expected one");
}

static kiln_status_t read_names(index_t *index) {
  const kiln_json_t begin = index->json;
  void *memory;
  kiln_status_t status = read_index(index);
  if (status || index->table.count == 0)
    return status;
  const size_t bytes = index->table.count * sizeof(kiln_tensor_t);
  if ((status = kiln_memory_allocate(index->allocator, bytes + index->room, "an index of the weight files", &memory,
                                     begin.error)))
    return status;
  index->table = (kiln_tensors_t){memory, 0};
  index->names = (char *)memory + bytes;
  index->json = begin;
  status = read_index(index);
  return status ? status : kiln_tensors_sort_by_name(&index->table, DOCUMENT, begin.error);
}

static bool is_of(const kiln_tensor_t *entry, const kiln_tensor_t *of) {
  return entry->file_length == of->file_length && memcmp(entry->file, of->file, of->file_length) == 0;
}

/* Fills the entries of the file that contains `of`, whose tensors these are. */
static kiln_status_t fill_entries(index_t *index, const kiln_tensors_t *file, const kiln_tensor_t *of) {
  kiln_error_t *const error = index->json.error;
  const int file_shown = kiln_shown(of->file_length);
  for (size_t i = 0; i < file->count; ++i) {
    const kiln_tensor_t *tensor = &file->tensors[i];
    const kiln_name_t name = {{tensor->name, "", ""}, {tensor->name_length, 0, 0}, ""};
    const int shown = kiln_shown(tensor->name_length);
    kiln_tensor_t *entry = kiln_tensors_find(&index->table, &name);
    if (!entry)
      return kiln_error_set(error, KILN_FILE_MALFORMED,
                            DOCUMENT ": no entry for a tensor; expected one for \"%.*s\", which is in \"%.*s\"", shown,
                            tensor->name, file_shown, of->file);
    if (!is_of(entry, of))
      return kiln_error_set(error, KILN_FILE_MALFORMED,
                            DOCUMENT ": tensor in another file; expected \"%.*s\" in \"%.*s\", got \"%.*s\"", shown,
                            tensor->name, kiln_shown(entry->file_length), entry->file, file_shown, of->file);
    kiln_tensor_t filled = *tensor;
    filled.name = entry->name;
    filled.file = entry->file;
    filled.file_length = entry->file_length;
    *entry = filled;
  }
  for (size_t i = 0; i < index->table.count; ++i) {
    const kiln_tensor_t *entry = &index->table.tensors[i];
    if (!entry->data && is_of(entry, of))
      return kiln_error_set(error, KILN_FILE_MALFORMED, DOCUMENT ": tensor not found; expected \"%.*s\" in \"%.*s\"",
                            kiln_shown(entry->name_length), entry->name, file_shown, of->file);
  }
  return KILN_OK;
}

/* Maps the file that contains the entry. */
static kiln_status_t open_part(index_t *index, const kiln_tensor_t *of) {
  kiln_error_t *const error = index->json.error;
  kiln_tensors_t tensors;
  void *memory;
  kiln_status_t status;
  if (index->folder_length + of->file_length >= PATH_BYTES)
    return kiln_error_set(error, KILN_FILE_ERROR,
                          "path of a weight file: too long; expected less than %d bytes, got " KILN_SIZE, PATH_BYTES,
                          index->folder_length + of->file_length);
  if ((status = kiln_memory_allocate(index->allocator, sizeof(part_t), "a weight file", &memory, error)))
    return status;
  part_t *part = memory;
  memcpy(part->path, index->folder, index->folder_length);
  memcpy(part->path + index->folder_length, of->file, of->file_length);
  part->path[index->folder_length + of->file_length] = '\0';
  if ((status = kiln_source_open(index->model, part->path, &part->file, error))) {
    index->allocator->release(index->allocator->self, part);
    return status;
  }
  part->next = index->parts;
  index->parts = part;
  if ((status = kiln_safetensors_open_file(&part->file, index->allocator, &tensors, error)))
    return kiln_error_name_file(error, status, of->file, of->file_length);
  status = fill_entries(index, &tensors, of);
  kiln_tensors_release(&tensors, index->allocator);
  return status;
}

static kiln_status_t open_parts(index_t *index) {
  kiln_status_t status = read_names(index);
  /* A file fills all of its entries, so the next entry without data belongs to another file. */
  for (size_t i = 0; !status && i < index->table.count; ++i)
    if (!index->table.tensors[i].data)
      status = open_part(index, &index->table.tensors[i]);
  return status;
}

kiln_status_t kiln_index_take(kiln_model_t *model, const char *path, kiln_take_t take, const void *context,
                              kiln_error_t *error) {
  kiln_file_t file;
  kiln_status_t status = kiln_file_map(path, false, &file, error);
  if (status)
    return status;
  if (file.bytes > INDEX_LIMIT) {
    status = kiln_error_set(error, KILN_FILE_MALFORMED,
                            DOCUMENT ": too large; expected at most %u bytes, got " KILN_SIZE, INDEX_LIMIT, file.bytes);
    kiln_file_unmap(&file);
    return status;
  }
  /* Copies the index, since it is walked twice. */
  if ((status = kiln_file_own(&file, &model->allocator, error)))
    return status;
  const char *text = file.image;
  index_t index = {.json = {text, text, text + file.bytes, error, DOCUMENT},
                   .model = model,
                   .allocator = &model->allocator,
                   .folder = path,
                   .folder_length = (size_t)(kiln_base_name(path) - path)};
  if (!(status = kiln_kind_check(text, file.bytes, KILN_KIND_INDEX, error)) && !(status = open_parts(&index)))
    status = take(model, &index.table, context, error);
  kiln_tensors_release(&index.table, index.allocator);
  for (part_t *part = index.parts, *next; part; part = next) {
    next = part->next;
    kiln_file_unmap(&part->file);
    index.allocator->release(index.allocator->self, part);
  }
  kiln_file_unmap(&file);
  return status;
}
