// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Opens the files whose tensors a model binds: mapped or, with KILN_COPY_FILES, copied first; and identifies other
 * files by their first bytes. */
#include "core/instance.h"
#include "readers/files.h"

#include <string.h>

kiln_status_t kiln_file_own(kiln_file_t *file, const kiln_allocator_t *allocator, kiln_error_t *error) {
  void *memory;
  kiln_status_t status = kiln_memory_allocate(allocator, file->bytes, "a copy of the weight file", &memory, error);
  if (!status && (status = kiln_file_read(file, 0, memory, file->bytes, error)))
    allocator->release(allocator->self, memory);
  const kiln_file_t own = {memory, file->bytes, file->path, -1, allocator};
  kiln_file_unmap(file);
  if (!status)
    *file = own;
  return status;
}

kiln_status_t kiln_source_open(const kiln_model_t *model, const char *path, kiln_file_t *file, kiln_error_t *error) {
  const kiln_status_t status = kiln_file_map(path, false, file, error);
  return status || !model->copies_files ? status : kiln_file_own(file, &model->allocator, error);
}

kiln_status_t kiln_source_check(const kiln_tensors_t *table, kiln_error_t *error) {
  const kiln_file_t *checked = NULL;
  kiln_status_t status = KILN_OK;
  for (size_t i = 0; !status && i < table->count; ++i) {
    const kiln_file_t *source = table->tensors[i].source;
    if (source && source != checked)
      status = kiln_file_check(source, error);
    checked = source;
  }
  return status;
}

/* File formats by bytes near their beginning; the first that fits. */
static const struct {
  char begin[24];
  uint16_t at; /* the first of these bytes */
  uint8_t length;
  uint8_t kind; /* KILN_KIND_ of supported formats */
  char text[66];
} beginnings[] = {
    /* The header's length in eight bytes, and the start of the header; the length may be the first bytes of others. */
    {"\0\0\0\0{", 4, 5, KILN_KIND_SAFETENSORS, "a safetensors file, which bind_weights reads"},
    {"version https://git-lfs", 0, 23, 0, "a pointer of git-lfs, for which `git lfs pull` gets the file"},
    {"PK\3\4", 0, 4, 0, "a ZIP archive, as .bin and .pt of PyTorch are"},
    {"\x80\2", 0, 2, 0, "a pickle, as older .bin and .pt of PyTorch are"},
    {"\x80\3", 0, 2, 0, "a pickle of Python"},
    {"\x80\4", 0, 2, 0, "a pickle of Python"},
    {"\x80\5", 0, 2, 0, "a pickle of Python"},
    {"GGUF\0", 0, 5, 0, "a big-endian GGUF file"},
    {"GGUF", 0, 4, KILN_KIND_GGUF, "a GGUF file, which bind_gguf reads"},
    {"tjgg", 0, 4, 0, "a GGML file, which is older than GGUF"},
    {"lmgg", 0, 4, 0, "a GGML file, which is older than GGUF"},
    {"kiln packed\n", 0, 12, KILN_KIND_PACKED, "a packed file, which bind_packed maps"},
    {"\x89HDF", 0, 4, 0, "an HDF5 file"},
    {"\x93NUMPY", 0, 6, 0, "a file of NumPy"},
    {"TFL3", 4, 4, 0, "a TensorFlow Lite file"},
    /* The version, and the tag of the producer's name. */
    {"\x08\3\x12", 0, 3, 0, "an ONNX file"},
    {"\x08\4\x12", 0, 3, 0, "an ONNX file"},
    {"\x08\5\x12", 0, 3, 0, "an ONNX file"},
    {"\x08\6\x12", 0, 3, 0, "an ONNX file"},
    {"\x08\7\x12", 0, 3, 0, "an ONNX file"},
    {"\x08\x08\x12", 0, 3, 0, "an ONNX file"},
    {"\x08\x09\x12", 0, 3, 0, "an ONNX file"},
    {"\x08\x0A\x12", 0, 3, 0, "an ONNX file"},
    {"\x08\x0B\x12", 0, 3, 0, "an ONNX file"},
    {"\x08\x0C\x12", 0, 3, 0, "an ONNX file"},
    {"\x08\x0D\x12", 0, 3, 0, "an ONNX file"},
    {"\xA6params", 1, 7, 0, "a msgpack file, as those of Flax are"},
    {"\x1F\x8B", 0, 2, 0, "a gzip archive"},
    {"\x28\xB5\x2F\xFD", 0, 4, 0, "a Zstandard archive"},
    {"\xFD"
     "7zXZ",
     0, 6, 0, "an xz archive"},
    {"BZh", 0, 3, 0, "a bzip2 archive"},
    {"ustar", 257, 5, 0, "a tar archive"},
    {"\x7F"
     "ELF",
     0, 4, 0, "a program or shared object"},
    {"\x89PNG", 0, 4, 0, "a PNG picture"},
    {"%PDF", 0, 4, 0, "a PDF document"},
    {"\xFF\xFE", 0, 2, 0, "text of UTF-16"},
    {"\xFE\xFF", 0, 2, 0, "text of UTF-16"},
    {"\0\0\0\0\0\0\0\0", 0, 8, 0, "zeros"},
    /* The header's length, below 16 MB. */
    {"\0\0\0\0\0", 0, 5, 0, "a big-endian safetensors file, or zeros at the beginning"},
};

/* Shorter files are truncated files of any kind. */
enum { LEAST_TEXT = 8 };
/* Identifies text by its first character. */
static const char *text_kind(const unsigned char *begin, size_t bytes, uint8_t *kind) {
  const size_t start = bytes >= 3 && memcmp(begin, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
  size_t first = start;
  while (first < bytes && begin[first] <= ' ')
    ++first;
  if (first + 1 < bytes && begin[first] == '<' && begin[first + 1] > ' ')
    return "HTML or XML, which a server may send instead of a file";
  if (bytes < LEAST_TEXT)
    return bytes == 0 ? "an empty file" : NULL;
  for (size_t i = start; i < bytes; ++i)
    if (begin[i] < '\t' || (begin[i] > '\r' && begin[i] < ' ') || begin[i] >= 0x7F)
      return NULL;
  *kind = KILN_KIND_INDEX; /* the index reader will report what is wrong with it */
  return first < bytes && begin[first] == '{' ? "JSON, as the index of several files, whose name ends with .json"
                                              : "text";
}

static const char *kind_of(const unsigned char *begin, size_t bytes, uint8_t *kind) {
  *kind = 0;
  for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; ++i)
    if (bytes >= (size_t)beginnings[i].at + beginnings[i].length &&
        memcmp(begin + beginnings[i].at, beginnings[i].begin, beginnings[i].length) == 0) {
      *kind = beginnings[i].kind;
      return beginnings[i].text;
    }
  return text_kind(begin, bytes, kind);
}

kiln_status_t kiln_kind_check(const void *begin, size_t bytes, kiln_kind_t expected, kiln_error_t *error) {
  static const char *const names[] = {"", "a safetensors file", "an index of safetensors files",
                                      "a little-endian GGUF file", "a packed file"};
  uint8_t kind;
  const char *text = kind_of(begin, bytes < KILN_KIND_BYTES ? bytes : KILN_KIND_BYTES, &kind);
  return !text || kind == expected
             ? KILN_OK
             : kiln_error_set(error, KILN_FILE_MALFORMED, "weight file: of another kind; expected %s, got %s",
                              names[expected], text);
}
