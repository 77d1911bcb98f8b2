// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Packed files: the packed weights of one variant in their memory layout, after a header page that identifies them.
 * Binding checks that page and maps the file, so it takes no time and processes share the pages. Any bits are safe
 * as weights, so the rest of the file is not validated. */
#include "core/instance.h"
#include "core/sharding.h"
#include "weights/bind.h"

#include <stddef.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "packed files are little-endian, and are not swapped"
#endif

/* The version of the file format. */
enum { VERSION = 1 };
/* The size of a piece that is copied from a device. */
enum { PIECE_BYTES = 1 << 20 };

static const char magic[16] = "kiln packed\n";

/* The file's header; zeros follow, up to KILN_PACKED_HEAD_BYTES. */
typedef struct head_t {
  char magic[sizeof magic];
  uint32_t version, head_bytes;
  uint64_t packed_bytes;
  uint64_t digest[4];
  char target[64],
      model[384]; /* zero-padded, and truncated, for messages: the digest covers both, except rank and stage */
} head_t;
_Static_assert(sizeof(head_t) == 512, "the head has no padding");

static head_t make_head(const kiln_model_t *model) {
  const kiln_variant_t *variant = model->variant;
  head_t head = {.version = VERSION, .head_bytes = KILN_PACKED_HEAD_BYTES, .packed_bytes = model->role.packed_bytes};
  memcpy(head.magic, magic, sizeof magic);
  memcpy(head.digest, variant->digest, sizeof head.digest);
  kiln_text_print(head.target, sizeof head.target, "%s", variant->target);
  if (model->descriptor->sharding)
    model->descriptor->sharding->name(model, head.target, sizeof head.target);
  kiln_text_print(head.model, sizeof head.model, "%s", model->descriptor->name);
  return head;
}

/* Checks that the file belongs to this model and is complete. */
static kiln_status_t check_file(const kiln_model_t *model, const kiln_file_t *file, kiln_error_t *error) {
  const head_t wanted = make_head(model);
  const unsigned long long bytes = KILN_PACKED_HEAD_BYTES + wanted.packed_bytes;
  head_t head;
  kiln_status_t status;
  char begin[KILN_KIND_BYTES];
  const size_t seen = file->bytes < sizeof begin ? file->bytes : sizeof begin;
  if ((status = kiln_file_read(file, 0, begin, seen, error)) ||
      (status = kiln_kind_check(begin, seen, KILN_KIND_PACKED, error)))
    return status;
  if (file->bytes < KILN_PACKED_HEAD_BYTES)
    return kiln_error_set(error, KILN_FILE_MALFORMED, "packed file: wrong size; expected %llu bytes, got " KILN_SIZE,
                          bytes, file->bytes);
  if ((status = kiln_file_read(file, 0, &head, sizeof head, error)))
    return status;
  if (memcmp(head.magic, magic, sizeof magic) != 0)
    return kiln_error_set(error, KILN_FILE_MALFORMED, "packed file: wrong first bytes; expected \"kiln packed\"");
  if (head.version != VERSION)
    return kiln_error_set(error, KILN_FILE_MISMATCH, "packed file: wrong version; expected %d, got %u", VERSION,
                          head.version);
  if (memcmp(head.model, wanted.model, sizeof head.model) != 0)
    return kiln_error_set(error, KILN_FILE_MISMATCH,
                          "packed file: built for another model; expected \"%.*s\", got \"%.*s\"", KILN_NAME_SHOWN,
                          wanted.model, KILN_NAME_SHOWN, head.model);
  if (memcmp(head.target, wanted.target, sizeof head.target) != 0)
    return kiln_error_set(error, KILN_FILE_MISMATCH, "packed file: built for another target; expected %s, got %.*s",
                          wanted.target, (int)sizeof head.target, head.target);
  /* head_bytes, packed_bytes, digest */
  if (memcmp(&head.head_bytes, &wanted.head_bytes, offsetof(head_t, target) - offsetof(head_t, head_bytes)) != 0)
    return kiln_error_set(
        error, KILN_FILE_MISMATCH,
        "packed file: built for another library; expected weights as this library of \"%.*s\" stores them",
        KILN_NAME_SHOWN, wanted.model);
  if (file->bytes != bytes)
    return kiln_error_set(error, KILN_FILE_MALFORMED, "packed file: wrong size; expected %llu bytes, got " KILN_SIZE,
                          bytes, file->bytes);
  return KILN_OK;
}

/* Copies the weights of a checked file to memory of the model, and unmaps the file. */
static kiln_status_t bind_copy(kiln_model_t *model, kiln_file_t *file, kiln_error_t *error) {
  char *packed;
  kiln_packed_t kind;
  kiln_status_t status = kiln_packed_allocate(model, &packed, &kind, error);
  if (!status && (status = kiln_file_read(file, KILN_PACKED_HEAD_BYTES, packed, model->role.packed_bytes, error)))
    kiln_packed_release(model, packed, kind);
  kiln_file_unmap(file);
  return status ? status : kiln_packed_replace(model, packed, kind, error);
}

kiln_status_t kiln_bind_packed(kiln_model_t *model, const char *path, kiln_error_t *error) {
  kiln_file_t file;
  kiln_status_t status;
  if (!model || !path)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "bind_packed: null given; expected %s",
                          model ? "a path" : "a model");
  if ((status = kiln_file_map(path, kiln_packed_is_written(model), &file, error)))
    return status;
  if ((status = check_file(model, &file, error))) {
    const char *const name = kiln_base_name(path);
    kiln_file_unmap(&file);
    return status == KILN_FILE_ERROR ? status : kiln_error_name_file(error, status, name, strlen(name));
  }
  if (model->copies_files)
    return bind_copy(model, &file, error);
  kiln_file_close(&file);
  return kiln_packed_replace(model, (char *)file.image + KILN_PACKED_HEAD_BYTES, KILN_PACKED_FILE, error);
}

/* Writes packed weights from device memory. */
static kiln_status_t write_from_device(const kiln_model_t *model, const kiln_output_t *output, kiln_error_t *error) {
  const uint64_t all = model->role.packed_bytes;
  void *piece;
  kiln_status_t status = kiln_memory_allocate(&model->allocator, PIECE_BYTES, "a piece of the weights", &piece, error);
  if (status)
    return status;
  for (uint64_t at = 0, bytes; !status && at < all; at += bytes) {
    bytes = all - at < PIECE_BYTES ? all - at : PIECE_BYTES;
    status = model->variant->backend->copy(model, KILN_COPY_OUT, piece, model->packed + at, bytes, error);
    if (!status)
      status = kiln_file_write(output, piece, bytes, error);
  }
  model->allocator.release(model->allocator.self, piece);
  return status;
}

static kiln_status_t write_packed(const void *context, const kiln_output_t *output, kiln_error_t *error) {
  const kiln_model_t *model = context;
  union {
    head_t head;
    char bytes[KILN_PACKED_HEAD_BYTES];
  } first;
  kiln_status_t status;
  memset(&first, 0, sizeof first);
  first.head = make_head(model);
  if ((status = kiln_file_write(output, first.bytes, sizeof first.bytes, error)))
    return status;
  return model->variant->backend ? write_from_device(model, output, error)
                                 : kiln_file_write(output, model->packed, model->role.packed_bytes, error);
}

kiln_status_t kiln_save_packed(const kiln_model_t *model, const char *path, kiln_error_t *error) {
  if (!model || !path)
    return kiln_error_set(error, KILN_NULL_ARGUMENT, "save_packed: null given; expected %s",
                          model ? "a path" : "a model");
  if (!model->packed)
    return kiln_error_set(error, KILN_WEIGHTS_NOT_BOUND, "save_packed: no weights; expected bound ones");
  return kiln_file_replace(path, write_packed, model, error);
}
