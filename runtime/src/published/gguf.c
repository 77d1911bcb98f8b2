// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Validates a GGUF image of version 2 or 3 and indexes its tensors by the model's names.
 *   1. For a file, copy its beginning up to the end of the header: both passes must read the same bytes, even if
 *      another program writes to the file meanwhile.
 *   2. Walk metadata and tensors once to validate them, to count, and to find the start of the data.
 *   3. Allocate the table, its matrices and names; walk the tensors again to fill it.
 *   4. Sort by offset: tensors must not overlap. Sort by name: duplicates are rejected.
 * The only metadata used are the alignment and whether the file is one of several. */
#include "core/instance.h"
#include "published/published.h"
#include "weights/bind.h"

#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "GGUF files are little-endian, and are not swapped"
#endif

/* The name in messages. */
#define DOCUMENT "GGUF file"
enum { DEFAULT_ALIGNMENT = 32, GGUF_RANK = 4, NESTED_ARRAYS = 8 };
/* Bytes that are copied of a file at first, and the growth factor if that is not enough. */
enum { FIRST_BYTES = 1 << 20, MORE_TIMES = 4, MOST_BYTES = 1 << 30 };
/* Metadata types. */
enum { U16 = 2, U32 = 4, STRING = 8, ARRAY = 9 };
static const uint8_t value_bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
enum { VALUE_TYPES = sizeof value_bytes };

typedef struct text_t {
  const char *text;
  uint64_t length;
} text_t;

typedef struct walk_t {
  const char *begin, *next, *end; /* the walked part: the file's first bytes */
  const kiln_file_t *file;        /* null: memory that stays valid */
  const char *image;              /* the file's bytes */
  uint64_t bytes;                 /* size of image */
  bool is_cut;                    /* the walked part ends within the header */
  const char *tensors;            /* where they begin */
  const char *data;               /* null in the first pass */
  uint64_t alignment, count;
  const kiln_renames_t *renames;
  kiln_error_t *error;
  kiln_tensors_t table; /* only counted in the first pass */
  kiln_gguf_matrix_t *matrices;
  char *names; /* place of the next name */
  size_t name_bytes;
} walk_t;

/* Whether the file has these bytes beyond the walked part. */
static bool is_cut(walk_t *walk, uint64_t count, uint64_t bytes) {
  const uint64_t left = walk->bytes - (uint64_t)(walk->next - walk->begin);
  return walk->is_cut = count <= left / bytes;
}

static kiln_status_t take(walk_t *walk, void *to, size_t bytes, const char *what) {
  if ((size_t)(walk->end - walk->next) < bytes)
    return is_cut(walk, 1, bytes) ? KILN_FILE_MALFORMED
                                  : kiln_error_set(walk->error, KILN_FILE_MALFORMED,
                                                   DOCUMENT ": truncated; expected %s, got its end at byte " KILN_SIZE,
                                                   what, (size_t)(walk->next - walk->begin));
  memcpy(to, walk->next, bytes);
  walk->next += bytes;
  return KILN_OK;
}

/* Skips `count` items of this size. */
static kiln_status_t skip(walk_t *walk, uint64_t count, uint64_t bytes, const char *what) {
  if (count > (uint64_t)(walk->end - walk->next) / bytes)
    return is_cut(walk, count, bytes)
               ? KILN_FILE_MALFORMED
               : kiln_error_set(walk->error, KILN_FILE_MALFORMED,
                                DOCUMENT ": truncated; expected %s, got %llu bytes for %llu of %llu", what,
                                (unsigned long long)(walk->bytes - (uint64_t)(walk->next - walk->begin)),
                                (unsigned long long)count, (unsigned long long)bytes);
  walk->next += count * bytes;
  return KILN_OK;
}

static kiln_status_t take_text(walk_t *walk, text_t *text, const char *what) {
  kiln_status_t status = take(walk, &text->length, sizeof text->length, what);
  text->text = walk->next;
  return status ? status : skip(walk, text->length, 1, what);
}

static bool equals(const text_t *text, const char *other) {
  return text->length == strlen(other) && memcmp(text->text, other, text->length) == 0;
}

/* Reads the element type and the number of elements of an array. */
static kiln_status_t take_array(walk_t *walk, uint32_t *element, uint64_t *count, const char *what) {
  const kiln_status_t status = take(walk, element, sizeof *element, what);
  return status ? status : take(walk, count, sizeof *count, what);
}

/* Skips elements that are not arrays. */
static kiln_status_t skip_elements(walk_t *walk, uint32_t element, uint64_t count, const char *what) {
  kiln_status_t status = KILN_OK;
  text_t text;
  if (element >= VALUE_TYPES)
    return kiln_error_set(walk->error, KILN_FILE_MALFORMED,
                          DOCUMENT ": unknown type of metadata; expected a known one, got %u at byte " KILN_SIZE,
                          element, (size_t)(walk->next - walk->begin));
  if (element != STRING)
    return skip(walk, count, value_bytes[element], what);
  for (uint64_t i = 0; !status && i < count; ++i)
    status = take_text(walk, &text, what);
  return status;
}

static kiln_status_t skip_value(walk_t *walk, uint32_t type) {
  static const char what[] = "a value in its metadata";
  uint64_t left[NESTED_ARRAYS] = {1}; /* remaining arrays of each nesting level, innermost last */
  kiln_status_t status;
  if (type != ARRAY)
    return skip_elements(walk, type, 1, what);
  for (int depth = 0; depth >= 0;) {
    uint32_t element;
    uint64_t count;
    if (left[depth] == 0) {
      --depth;
      continue;
    }
    --left[depth];
    if ((status = take_array(walk, &element, &count, what)))
      return status;
    if (element != ARRAY) {
      if ((status = skip_elements(walk, element, count, what)))
        return status;
      continue;
    }
    if (++depth == NESTED_ARRAYS)
      return kiln_error_set(walk->error, KILN_FILE_MALFORMED,
                            DOCUMENT ": metadata too deep; expected at most %d arrays, got more at byte " KILN_SIZE,
                            NESTED_ARRAYS, (size_t)(walk->next - walk->begin));
    left[depth] = count;
  }
  return KILN_OK;
}

static kiln_status_t read_metadata(walk_t *walk) {
  text_t key;
  uint32_t type;
  kiln_status_t status;
  if ((status = take_text(walk, &key, "a name in its metadata")) ||
      (status = take(walk, &type, sizeof type, "a type in its metadata")))
    return status;
  if (type == U32 && equals(&key, "general.alignment")) {
    uint32_t alignment;
    if ((status = take(walk, &alignment, sizeof alignment, "an alignment")))
      return status;
    walk->alignment = alignment;
    return alignment > 0 && (alignment & (alignment - 1)) == 0
               ? KILN_OK
               : kiln_error_set(walk->error, KILN_FILE_MALFORMED,
                                DOCUMENT ": wrong alignment; expected a power of two, got %u", alignment);
  }
  if (type == U16 && equals(&key, "split.count")) {
    uint16_t parts;
    if ((status = take(walk, &parts, sizeof parts, "the number of its parts")))
      return status;
    return parts <= 1 ? KILN_OK
                      : kiln_error_set(walk->error, KILN_FILE_MALFORMED,
                                       DOCUMENT ": split checkpoint; expected all of it, got one of %u parts", parts);
  }
  return skip_value(walk, type);
}

static kiln_status_t read_header(walk_t *walk) {
  char magic[4];
  uint32_t version;
  uint64_t values;
  kiln_status_t status;
  if ((status = kiln_kind_check(walk->begin, (size_t)(walk->end - walk->begin), KILN_KIND_GGUF, walk->error)) ||
      (status = take(walk, magic, sizeof magic, "\"GGUF\" as its first bytes")))
    return status;
  if (memcmp(magic, "GGUF", sizeof magic) != 0)
    return kiln_error_set(walk->error, KILN_FILE_MALFORMED, DOCUMENT ": wrong first bytes; expected \"GGUF\"");
  if ((status = take(walk, &version, sizeof version, "a version")))
    return status;
  if (version != 2 && version != 3)
    return kiln_error_set(walk->error, KILN_FILE_MALFORMED, DOCUMENT ": unknown version; expected 2 or 3, got %u",
                          version);
  if ((status = take(walk, &walk->count, sizeof walk->count, "the number of its tensors")) ||
      (status = take(walk, &values, sizeof values, "the number of its metadata")))
    return status;
  for (uint64_t i = 0; !status && i < values; ++i)
    status = read_metadata(walk);
  return status;
}

static kiln_status_t read_name(walk_t *walk, text_t *name) {
  kiln_status_t status = take_text(walk, name, "the name of a tensor");
  for (uint64_t i = 0; !status && i < name->length; ++i)
    if (name->text[i] < ' ' || name->text[i] > '~')
      status = kiln_error_set(walk->error, KILN_FILE_MALFORMED,
                              DOCUMENT ": wrong name; expected printable ASCII, got 0x%02x at byte " KILN_SIZE,
                              (unsigned char)name->text[i], (size_t)(name->text + i - walk->begin));
  return status;
}

/* Reads the dimensions, of which the file stores the innermost first; *elements: their product. */
static kiln_status_t read_shape(walk_t *walk, const text_t *name, kiln_tensor_t *tensor, uint64_t *elements) {
  const int shown = kiln_shown(name->length);
  kiln_status_t status = take(walk, &tensor->rank, sizeof tensor->rank, "the rank of a tensor");
  if (status)
    return status;
  if (tensor->rank == 0 || tensor->rank > GGUF_RANK)
    return kiln_error_set(walk->error, KILN_FILE_MALFORMED, "tensor \"%.*s\": wrong rank; expected 1 to %d, got %u",
                          shown, name->text, GGUF_RANK, tensor->rank);
  *elements = 1;
  for (uint32_t i = tensor->rank; i-- > 0;) {
    uint64_t extent;
    if ((status = take(walk, &extent, sizeof extent, "the shape of a tensor")))
      return status;
    /* Ensures that no byte count overflows. */
    if (extent == 0 || extent > (uint64_t)(INT64_MAX / 4) / *elements)
      return kiln_error_set(
          walk->error, KILN_FILE_MALFORMED,
          "tensor \"%.*s\": wrong dimension; expected 1 or more, and less than 2^61 elements, got %llu", shown,
          name->text, (unsigned long long)extent);
    *elements *= extent;
    tensor->shape[i] = (int64_t)extent;
  }
  return KILN_OK;
}

/* Computes the model's view of a tensor whose type is supported. */
static kiln_status_t describe(walk_t *walk, const text_t *name, const kiln_rename_t *rename, kiln_tensor_t *tensor,
                              kiln_gguf_matrix_t *matrix, uint64_t elements) {
  const kiln_gguf_type_t *type = matrix->type;
  char shape[KILN_SHAPE_TEXT_BYTES];
  matrix->heads = rename ? rename->rotary_heads : 0;
  matrix->columns = tensor->rank == 1 && matrix->heads ? 1 : (uint64_t)tensor->shape[tensor->rank - 1];
  matrix->rows = elements / matrix->columns;
  if (matrix->columns % type->elements)
    return kiln_error_set(walk->error, KILN_FILE_MALFORMED,
                          "tensor \"%.*s\" of type %s: wrong row length; expected a multiple of %u, got shape %s",
                          kiln_shown(name->length), name->text, type->name, type->elements,
                          kiln_shape_text(shape, tensor->rank, tensor->shape));
  if (matrix->heads && matrix->rows % (2 * (uint64_t)matrix->heads))
    return kiln_error_set(walk->error, KILN_INVALID_ARGUMENT,
                          "tensor \"%.*s\": wrong rows; expected pairs of %u rotary heads, got shape %s",
                          kiln_shown(name->length), name->text, matrix->heads,
                          kiln_shape_text(shape, tensor->rank, tensor->shape));
  tensor->dtype = type->dtype;
  if (type->decode || matrix->heads) {
    tensor->dtype = KILN_F32;
    tensor->form = &kiln_gguf_form;
    tensor->parts = matrix;
  }
  tensor->end = tensor->begin + elements / type->elements * type->bytes;
  return KILN_OK;
}

static kiln_status_t read_tensor(walk_t *walk) {
  text_t name;
  const kiln_rename_t *rename;
  kiln_tensor_t tensor = {0};
  kiln_gguf_matrix_t *matrix, unplaced = {0};
  uint64_t elements = 0;
  uint32_t id;
  kiln_status_t status;
  if ((status = read_name(walk, &name)) || (status = read_shape(walk, &name, &tensor, &elements)) ||
      (status = take(walk, &id, sizeof id, "the type of a tensor")) ||
      (status = take(walk, &tensor.begin, sizeof tensor.begin, "the offset of a tensor")))
    return status;
  tensor.name_length = kiln_rename(walk->renames, name.text, name.length, &rename, walk->data ? walk->names : NULL);
  const bool is_left_out = rename && !rename->to;
  if (is_left_out && !(rename->flags & KILN_RENAME_ZEROS))
    return KILN_OK;
  matrix = walk->data && !is_left_out ? &walk->matrices[walk->table.count] : &unplaced;
  if (!(matrix->type = kiln_gguf_type(id)))
    return kiln_error_set(
        walk->error, KILN_WEIGHT_TYPE,
        "tensor \"%.*s\": wrong type; expected F32, F16, BF16, Q8_0, Q4_0, Q4_K or Q6_K, got number %u",
        kiln_shown(name.length), name.text, id);
  const uint64_t begin = tensor.begin;
  if ((status = describe(walk, &name, rename, &tensor, matrix, elements)))
    return status;
  if (walk->data) {
    const uint64_t held = walk->bytes - (uint64_t)(walk->data - walk->image);
    if (begin % walk->alignment || begin > held || tensor.end - begin > held - begin)
      return kiln_error_set(walk->error, KILN_FILE_MALFORMED,
                            "tensor \"%.*s\": wrong offset; expected %llu bytes at a multiple of %llu within %llu "
                            "bytes of data, got %llu",
                            kiln_shown(name.length), name.text, (unsigned long long)(tensor.end - begin),
                            (unsigned long long)walk->alignment, (unsigned long long)held, (unsigned long long)begin);
    tensor.data = walk->data + begin;
    if (is_left_out)
      return kiln_rename_check_zeros(&tensor, name.text, name.length, elements, walk->error);
    tensor.name = walk->names;
    walk->names += tensor.name_length;
    walk->table.tensors[walk->table.count] = tensor;
  }
  walk->name_bytes += tensor.name_length;
  walk->table.count += !is_left_out;
  return KILN_OK;
}

static kiln_status_t read_tensors(walk_t *walk) {
  kiln_status_t status = KILN_OK;
  for (uint64_t i = 0; !status && i < walk->count; ++i)
    status = read_tensor(walk);
  return status;
}

/* The next name of the walked tensors, which are valid. */
static bool next_name(const void *file, size_t *at, kiln_tensor_t *tensor) {
  const walk_t *const walk = file;
  const char *from = walk->tensors + *at;
  uint64_t length;
  uint32_t rank;
  if (from == walk->next)
    return false;
  memcpy(&length, from, sizeof length);
  tensor->name = from + sizeof length;
  tensor->name_length = (size_t)length;
  from = tensor->name + length;
  memcpy(&rank, from, sizeof rank);
  /* The shape, the type and the offset follow the rank. */
  from += sizeof rank + rank * sizeof(uint64_t) + sizeof(uint32_t) + sizeof(uint64_t);
  *at = (size_t)(from - walk->tensors);
  return true;
}

static kiln_status_t check_overlaps(kiln_tensors_t *table, kiln_error_t *error) {
  kiln_tensors_sort(table, kiln_tensors_order_by_offset);
  for (size_t i = 1; i < table->count; ++i) {
    const kiln_tensor_t *before = &table->tensors[i - 1], *tensor = &table->tensors[i];
    if (tensor->begin < before->end)
      return kiln_error_set(error, KILN_FILE_MALFORMED,
                            "tensor \"%.*s\": overlaps another; expected an offset from %llu on, got %llu",
                            kiln_shown(tensor->name_length), tensor->name, (unsigned long long)before->end,
                            (unsigned long long)tensor->begin);
  }
  return kiln_tensors_sort_by_name(table, DOCUMENT, error);
}

/* Creates a table of a file from its first bytes. */
static kiln_status_t open_walk(walk_t *walk, const kiln_allocator_t *allocator, kiln_tensors_t *table) {
  void *memory;
  kiln_status_t status = read_header(walk);
  if (status)
    return status;
  walk->tensors = walk->next;
  if ((status = read_tensors(walk)) || (status = kiln_renames_check_fit(walk->renames, next_name, walk, walk->error)))
    return status;
  const size_t count = walk->table.count;
  if (count == 0)
    return KILN_OK;
  if ((status = kiln_memory_allocate(allocator,
                                     count * (sizeof(kiln_tensor_t) + sizeof(kiln_gguf_matrix_t)) + walk->name_bytes,
                                     "an index of the weight file", &memory, walk->error)))
    return status;
  const uint64_t read = (uint64_t)(walk->next - walk->begin), data = read + (-read & (walk->alignment - 1));
  walk->data = walk->image + (data < walk->bytes ? data : walk->bytes);
  walk->next = walk->tensors;
  walk->table = (kiln_tensors_t){memory, 0};
  walk->matrices = (kiln_gguf_matrix_t *)(void *)(walk->table.tensors + count);
  walk->names = (char *)(walk->matrices + count);
  *table = walk->table;
  if (walk->file && (status = kiln_file_check(walk->file, walk->error))) {
    kiln_tensors_release(table, allocator);
    return status;
  }
  if (!(status = read_tensors(walk))) {
    table->count = walk->table.count;
    status = check_overlaps(table, walk->error);
  }
  if (status)
    kiln_tensors_release(table, allocator);
  return status;
}

static walk_t begin_walk(const void *begin, size_t length, const void *image, size_t bytes,
                         const kiln_renames_t *renames, kiln_error_t *error) {
  return (walk_t){.begin = begin,
                  .next = begin,
                  .end = (const char *)begin + length,
                  .image = image,
                  .bytes = bytes,
                  .alignment = DEFAULT_ALIGNMENT,
                  .renames = renames,
                  .error = error};
}

kiln_status_t kiln_gguf_open(const void *image, size_t bytes, const kiln_renames_t *renames,
                             const kiln_allocator_t *allocator, kiln_tensors_t *table, kiln_error_t *error) {
  walk_t walk = begin_walk(image, bytes, image, bytes, renames, error);
  memset(table, 0, sizeof *table);
  return open_walk(&walk, allocator, table);
}

/* Uses a copy of the first `length` bytes. */
static kiln_status_t open_copy(const kiln_file_t *file, size_t length, const kiln_renames_t *renames,
                               const kiln_allocator_t *allocator, kiln_tensors_t *table, bool *is_more,
                               kiln_error_t *error) {
  void *begin;
  kiln_status_t status = kiln_memory_allocate(allocator, length, "the header of the weight file", &begin, error);
  if (status)
    return status;
  walk_t walk = begin_walk(begin, length, file->image, file->bytes, renames, error);
  walk.file = file;
  if (!(status = kiln_file_read(file, 0, begin, length, error)))
    status = open_walk(&walk, allocator, table);
  *is_more = walk.is_cut;
  allocator->release(allocator->self, begin);
  return status;
}

kiln_status_t kiln_gguf_open_file(const kiln_file_t *file, const kiln_renames_t *renames,
                                  const kiln_allocator_t *allocator, kiln_tensors_t *table, kiln_error_t *error) {
  kiln_status_t status = KILN_OK;
  bool is_more = true;
  memset(table, 0, sizeof *table);
  if (file->handle == -1) /* no other process can write to it */
    return kiln_gguf_open(file->image, file->bytes, renames, allocator, table, error);
  for (size_t length = FIRST_BYTES; is_more; length *= MORE_TIMES) {
    if (length > MOST_BYTES)
      return kiln_error_set(error, KILN_FILE_MALFORMED, DOCUMENT ": header too long; expected at most %d bytes",
                            MOST_BYTES);
    is_more = false;
    status = open_copy(file, length < file->bytes ? length : file->bytes, renames, allocator, table, &is_more, error);
  }
  for (size_t i = 0; i < table->count; ++i)
    table->tensors[i].source = file;
  return status;
}

static kiln_status_t bind_file(kiln_model_t *model, const kiln_file_t *file, const kiln_renames_t *renames,
                               kiln_error_t *error) {
  kiln_tensors_t table;
  kiln_status_t status = kiln_gguf_open_file(file, renames, &model->allocator, &table, error);
  if (status)
    return status;
  status = kiln_bind_tensors(model, &table, error);
  kiln_tensors_release(&table, &model->allocator);
  return status;
}

kiln_status_t kiln_bind_gguf(kiln_model_t *model, const char *path, const kiln_rename_t *renames, size_t count,
                             kiln_error_t *error) {
  const kiln_renames_t names = {renames, count};
  kiln_file_t file;
  kiln_status_t status;
  if ((status = kiln_renames_check(model, path, &names, true, "bind_gguf", error)) ||
      (status = kiln_source_open(model, path, &file, error)))
    return status;
  status = bind_file(model, &file, &names, error);
  kiln_file_unmap(&file);
  const char *const name = kiln_base_name(path);
  return status ? kiln_error_name_file(error, status, name, strlen(name)) : status;
}
