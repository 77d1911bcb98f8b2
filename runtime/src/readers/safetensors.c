// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Validates a safetensors image and indexes its tensors by name.
 *   1. For a file, copy the header: both passes must read the same bytes, even if another program writes to the file
 *      meanwhile.
 *   2. Walk the header once to validate it and to count tensors and the bytes of names.
 *   3. Allocate the index, with the names, the only allocation that stays; walk again to fill it.
 *   4. Sort by offset: the tensors must be contiguous from 0 to the end of the data, as the format requires.
 *   5. Sort by name: equal neighbours are duplicates; afterwards a name is found by binary search.
 * No recursion, O(n log n). The header has a fixed nesting depth, so deeper nesting is an error. */
#include "core/instance.h"
#include "kiln/formats.h"
#include "readers/files.h"
#include "readers/json.h"

#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors files are little-endian, and are not swapped"
#endif

/* The format's own limit. */
#define HEADER_LIMIT 100000000u
enum { LENGTH_BYTES = 8 };
#define KILN_ELEMENT_TYPE(name, NAME, file, kind, bits, digits, c_type, mlir)                                          \
  _Static_assert((int)KILN_ROW_##NAME == (int)KILN_##NAME, "kiln_dtype_t has the rows of element_types.def");
#include "kiln/element_types.def"
/* The name in messages. */
#define DOCUMENT "safetensors header"

/* Types of kiln_dtype_t first, with the same numbers; types that files do not have have an empty text. */
static const struct {
  char text[11];
  uint8_t bits;
} dtypes[] = {
#define KILN_ELEMENT_TYPE(name, NAME, file, kind, bits, digits, c_type, mlir) {file, bits},
#include "kiln/element_types.def"
    {"F64", 64}, {"I64", 64}, {"U64", 64}, {"U32", 32},    {"I16", 16},
    {"U16", 16}, {"U8", 8},   {"C64", 64}, {"F8_E5M2", 8},
};
enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

const char *kiln_safetensors_dtype_text(uint32_t dtype) {
  return dtype < DTYPE_COUNT && *dtypes[dtype].text ? dtypes[dtype].text : "?";
}
uint64_t kiln_safetensors_stored_bytes(uint32_t dtype, uint64_t elements) {
  return dtype < DTYPE_COUNT ? (elements * dtypes[dtype].bits + 7) / 8 : 0;
}

/* One pass over the header. */
typedef struct walk_t {
  kiln_json_t json;
  const char *data;
  uint64_t data_bytes;
  kiln_tensor_t *tensors; /* null in the counting pass */
  char *names;            /* place of the next decoded name */
  size_t count;
  size_t name_bytes;
} walk_t;

/* Reads "[n, n, ...]"; *elements is the product of the dimensions. */
static kiln_status_t read_shape(walk_t *walk, kiln_tensor_t *tensor, uint64_t *elements) {
  kiln_json_t *json = &walk->json;
  kiln_status_t status = kiln_json_expect(json, '[', "a shape");
  *elements = 1;
  tensor->rank = 0;
  if (status || kiln_json_accept(json, ']'))
    return status;
  do {
    int64_t extent;
    if ((status = kiln_json_read_integer(json, "an integer dimension below 2^63", &extent)))
      return status;
    if (extent > 0 && *elements > (uint64_t)INT64_MAX / (uint64_t)extent)
      return kiln_json_fail(json, "a shape of less than 2^63 elements");
    *elements *= (uint64_t)extent;
    if (tensor->rank < KILN_MAX_RANK)
      tensor->shape[tensor->rank] = extent;
    ++tensor->rank;
  } while (kiln_json_accept(json, ','));
  return kiln_json_expect(json, ']', "',' or ']' in a shape");
}

static kiln_status_t read_offsets(walk_t *walk, kiln_tensor_t *tensor) {
  kiln_json_t *json = &walk->json;
  kiln_status_t status;
  int64_t begin, end;
  if ((status = kiln_json_expect(json, '[', "two offsets")) ||
      (status = kiln_json_read_integer(json, "an integer offset below 2^63", &begin)) ||
      (status = kiln_json_expect(json, ',', "',' between offsets")) ||
      (status = kiln_json_read_integer(json, "an integer offset below 2^63", &end)) ||
      (status = kiln_json_expect(json, ']', "']' after two offsets")))
    return status;
  tensor->begin = (uint64_t)begin;
  tensor->end = (uint64_t)end;
  return KILN_OK;
}

static kiln_status_t read_dtype(walk_t *walk, kiln_tensor_t *tensor) {
  kiln_json_string_t text;
  kiln_status_t status = kiln_json_read_string(&walk->json, "an element type", &text);
  if (status)
    return status;
  for (int dtype = 0; dtype < DTYPE_COUNT; ++dtype)
    if (*dtypes[dtype].text && kiln_json_string_equals(&text, dtypes[dtype].text)) {
      tensor->dtype = (uint16_t)dtype;
      return KILN_OK;
    }
  return kiln_error_set(walk->json.error, KILN_FILE_MALFORMED,
                        "tensor \"%.*s\": unknown type; expected one of safetensors, got \"%.*s\"",
                        kiln_shown(tensor->name_length), tensor->name, kiln_shown(text.length), text.text);
}

static kiln_status_t check_size(const walk_t *walk, const kiln_tensor_t *tensor, uint64_t elements) {
  char shape[KILN_SHAPE_TEXT_BYTES];
  unsigned long long begin = tensor->begin, end = tensor->end;
  if (tensor->begin > tensor->end || tensor->end > walk->data_bytes)
    return kiln_error_set(
        walk->json.error, KILN_FILE_MALFORMED,
        "tensor \"%.*s\": wrong offsets; expected rising ones within %llu bytes of data, got [%llu, %llu]",
        kiln_shown(tensor->name_length), tensor->name, (unsigned long long)walk->data_bytes, begin, end);
  uint64_t held = (tensor->end - tensor->begin) * 8;
  uint32_t bits = dtypes[tensor->dtype].bits;
  if (held / bits != elements || held % bits != 0)
    return kiln_error_set(
        walk->json.error, KILN_FILE_MALFORMED,
        "tensor \"%.*s\" of shape %s: wrong size; expected %u bytes an element, got offsets [%llu, %llu]",
        kiln_shown(tensor->name_length), tensor->name, kiln_shape_text(shape, tensor->rank, tensor->shape), bits / 8,
        begin, end);
  return KILN_OK;
}

/* Reads {"dtype": ..., "shape": ..., "data_offsets": ...}, in any order. */
static kiln_status_t read_tensor(walk_t *walk, kiln_tensor_t *tensor) {
  static const char fields[3][13] = {"dtype", "shape", "data_offsets"};
  kiln_json_t *json = &walk->json;
  uint64_t elements = 0;
  unsigned seen = 0;
  kiln_status_t status = kiln_json_expect(json, '{', "'{' to begin a tensor");
  if (status)
    return status;
  do {
    kiln_json_string_t field;
    unsigned which = 0;
    if ((status = kiln_json_read_string(json, "a field of a tensor", &field)) ||
        (status = kiln_json_expect(json, ':', "':' after a name")))
      return status;
    while (which < 3 && !kiln_json_string_equals(&field, fields[which]))
      ++which;
    if (which == 3 || seen & 1u << which)
      return kiln_error_set(
          json->error, KILN_FILE_MALFORMED,
          "tensor \"%.*s\": wrong field; expected dtype, shape and data_offsets once each, got \"%.*s\"",
          kiln_shown(tensor->name_length), tensor->name, kiln_shown(field.length), field.text);
    seen |= 1u << which;
    status = which == 0   ? read_dtype(walk, tensor)
             : which == 1 ? read_shape(walk, tensor, &elements)
                          : read_offsets(walk, tensor);
    if (status)
      return status;
  } while (kiln_json_accept(json, ','));
  if ((status = kiln_json_expect(json, '}', "',' or '}' in a tensor")))
    return status;
  if (seen != 7)
    return kiln_error_set(json->error, KILN_FILE_MALFORMED, "tensor \"%.*s\": field missing; expected %s",
                          kiln_shown(tensor->name_length), tensor->name, fields[seen & 1 ? seen & 2 ? 2 : 1 : 0]);
  return check_size(walk, tensor, elements);
}

/* Skips an object of strings. */
static kiln_status_t skip_metadata(kiln_json_t *json) {
  kiln_json_string_t text;
  kiln_status_t status = kiln_json_expect(json, '{', "'{' to begin __metadata__");
  if (status || kiln_json_accept(json, '}'))
    return status;
  do {
    if ((status = kiln_json_read_string(json, "a name in __metadata__", &text)) ||
        (status = kiln_json_expect(json, ':', "':' after a name")) ||
        (status = kiln_json_read_string(json, "a string in __metadata__", &text)))
      return status;
  } while (kiln_json_accept(json, ','));
  return kiln_json_expect(json, '}', "',' or '}' in __metadata__");
}

static kiln_status_t read_member(walk_t *walk, bool *has_metadata) {
  kiln_json_t *json = &walk->json;
  kiln_json_string_t name;
  kiln_tensor_t tensor;
  kiln_status_t status;
  if ((status = kiln_json_read_string(json, "the name of a tensor", &name)) ||
      (status = kiln_json_expect(json, ':', "':' after a name")))
    return status;
  if (kiln_json_string_equals(&name, "__metadata__")) {
    if (*has_metadata)
      return kiln_json_fail(json, "__metadata__ only once");
    *has_metadata = true;
    return skip_metadata(json);
  }
  memset(&tensor, 0, sizeof tensor);
  tensor.name = name.text;
  tensor.name_length = name.length;
  if ((status = read_tensor(walk, &tensor)))
    return status;
  if (walk->tensors) {
    tensor.name = walk->names;
    tensor.name_length = name.decoded_length;
    walk->names = kiln_json_string_copy(&name, walk->names);
    tensor.data = walk->data + tensor.begin;
    walk->tensors[walk->count] = tensor;
  } else {
    walk->name_bytes += name.decoded_length;
  }
  ++walk->count;
  return KILN_OK;
}

static kiln_status_t read_header(walk_t *walk) {
  kiln_json_t *json = &walk->json;
  bool has_metadata = false;
  kiln_status_t status;
  if (json->next == json->end || *json->next != '{')
    return kiln_json_fail(json, "'{' as its first byte");
  ++json->next;
  if (!kiln_json_accept(json, '}')) {
    do {
      if ((status = read_member(walk, &has_metadata)))
        return status;
    } while (kiln_json_accept(json, ','));
    if ((status = kiln_json_expect(json, '}', "',' or '}' after a tensor")))
      return status;
  }
  return kiln_json_at_end(json) ? KILN_OK : kiln_json_fail(json, "nothing but white space after its last '}'");
}

static kiln_status_t check_offsets(kiln_tensors_t *table, uint64_t data_bytes, kiln_error_t *error) {
  uint64_t next = 0;
  kiln_tensors_sort(table, kiln_tensors_order_by_offset);
  for (size_t i = 0; i < table->count; ++i) {
    const kiln_tensor_t *tensor = &table->tensors[i];
    if (tensor->begin != next)
      return kiln_error_set(error, KILN_FILE_MALFORMED,
                            "tensor \"%.*s\": not contiguous; expected offset %llu, got %llu (%s)",
                            kiln_shown(tensor->name_length), tensor->name, (unsigned long long)next,
                            (unsigned long long)tensor->begin, tensor->begin < next ? "an overlap" : "a gap");
    next = tensor->end;
  }
  if (next != data_bytes)
    return kiln_error_set(error, KILN_FILE_MALFORMED,
                          "safetensors data: wrong size; expected the %llu bytes of its tensors, got %llu",
                          (unsigned long long)next, (unsigned long long)data_bytes);
  return KILN_OK;
}

/* Creates a table from a header and separate data. */
static kiln_status_t open_header(const char *header, uint64_t header_bytes, const char *data, uint64_t data_bytes,
                                 const kiln_allocator_t *allocator, kiln_tensors_t *table, kiln_error_t *error) {
  const walk_t begin = {
      .json = {header, header, header + header_bytes, error, DOCUMENT}, .data = data, .data_bytes = data_bytes};
  walk_t walk = begin;
  kiln_status_t status = read_header(&walk);
  if (status)
    return status;
  if (walk.count > 0) {
    void *index;
    size_t index_bytes = walk.count * sizeof(kiln_tensor_t);
    if ((status = kiln_memory_allocate(allocator, index_bytes + walk.name_bytes, "an index of the weight file", &index,
                                       error)))
      return status;
    table->tensors = index;
    walk = begin;
    walk.tensors = table->tensors;
    walk.names = (char *)index + index_bytes;
    status = read_header(&walk);
    table->count = walk.count;
  }
  if (status || (status = check_offsets(table, begin.data_bytes, error)) ||
      (status = kiln_tensors_sort_by_name(table, DOCUMENT, error)))
    kiln_tensors_release(table, allocator);
  return status;
}

/* Reads the length of the header of a file of `bytes` bytes from its first bytes. */
static kiln_status_t read_length(const unsigned char *begin, size_t bytes, uint64_t *length, kiln_error_t *error) {
  kiln_status_t status;
  const uint64_t rest = bytes - LENGTH_BYTES;
  *length = 0;
  if (bytes >= LENGTH_BYTES)
    for (int i = LENGTH_BYTES; i-- > 0;)
      *length = *length << 8 | begin[i];
  const bool is_possible = bytes >= LENGTH_BYTES && *length <= rest && *length <= HEADER_LIMIT;
  if (is_possible && *length > 0 && begin[LENGTH_BYTES] == '{')
    return KILN_OK;
  status = kiln_kind_check(begin, bytes, KILN_KIND_SAFETENSORS, error);
  if (status || is_possible)
    return status;
  if (bytes < LENGTH_BYTES)
    return kiln_error_set(error, KILN_FILE_MALFORMED,
                          "safetensors file: too small; expected at least %d bytes, got " KILN_SIZE, LENGTH_BYTES,
                          bytes);
  return kiln_error_set(error, KILN_FILE_MALFORMED,
                        "safetensors header: too large; expected at most %llu bytes, got %llu",
                        (unsigned long long)(rest < HEADER_LIMIT ? rest : HEADER_LIMIT), (unsigned long long)*length);
}

kiln_status_t kiln_safetensors_open(const void *image, size_t bytes, const kiln_allocator_t *allocator,
                                    kiln_tensors_t *table, kiln_error_t *error) {
  const char *header = (const char *)image + LENGTH_BYTES;
  uint64_t length;
  memset(table, 0, sizeof *table);
  const kiln_status_t status = read_length(image, bytes, &length, error);
  return status ? status
                : open_header(header, length, header + length, bytes - LENGTH_BYTES - length, allocator, table, error);
}

/* Uses a copy of the header. */
static kiln_status_t open_file(const kiln_file_t *file, const kiln_allocator_t *allocator, kiln_tensors_t *table,
                               kiln_error_t *error) {
  unsigned char begin[KILN_KIND_BYTES];
  uint64_t length;
  void *header;
  kiln_status_t status;
  if ((status = kiln_file_read(file, 0, begin, file->bytes < sizeof begin ? file->bytes : sizeof begin, error)) ||
      (status = read_length(begin, file->bytes, &length, error)) ||
      (status = kiln_memory_allocate(allocator, length, "the header of the weight file", &header, error)))
    return status;
  if (!(status = kiln_file_read(file, LENGTH_BYTES, header, (size_t)length, error)))
    status = open_header(header, length, (const char *)file->image + LENGTH_BYTES + length,
                         file->bytes - LENGTH_BYTES - length, allocator, table, error);
  allocator->release(allocator->self, header);
  return status;
}

kiln_status_t kiln_safetensors_open_file(const kiln_file_t *file, const kiln_allocator_t *allocator,
                                         kiln_tensors_t *table, kiln_error_t *error) {
  memset(table, 0, sizeof *table);
  if (file->handle == -1) /* no other process can write to it */
    return kiln_safetensors_open(file->image, file->bytes, allocator, table, error);
  const kiln_status_t status = open_file(file, allocator, table, error);
  for (size_t i = 0; i < table->count; ++i)
    table->tensors[i].source = file;
  return status;
}
