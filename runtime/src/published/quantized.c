// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* Binds GPTQ and AWQ safetensors files: NAME.qweight, NAME.qzeros, NAME.scales and, for GPTQ, optionally NAME.g_idx
 * form one tensor NAME.weight; fp8 files: NAME.weight and NAME.weight_scale; NVFP4 files: also NAME.weight_scale_2; and
 * MXFP4 files: NAME_blocks and NAME_scales, which form NAME. Other tensors are unchanged.
 * Everything is validated before use: types, matching shapes, valid group indices. */
#include "core/instance.h"
#include "published/published.h"
#include "weights/bind.h"
#include "weights/convert.h"

#include <string.h>

typedef struct join_t {
  const kiln_tensors_t *stored;
  const kiln_quantized_t *how;
  kiln_error_t *error;
  char *scratch; /* buffer for any name */
  /* Only counted in the first pass, in which the pointers are null. */
  kiln_tensors_t table;
  size_t matrix_count, name_bytes;
  kiln_matrix_t *matrices;
  char *names; /* place of the next name */
} join_t;

/* Whether a tensor's name has this ending; *length is the length of the part before it. */
static bool ends_with(const kiln_tensor_t *tensor, const char *ending, size_t *length) {
  const size_t ends = strlen(ending);
  if (tensor->name_length < ends || memcmp(tensor->name + tensor->name_length - ends, ending, ends) != 0)
    return false;
  *length = tensor->name_length - ends;
  return true;
}

static const kiln_tensor_t *find(const join_t *join, const char *prefix, size_t length, const char *ending) {
  const kiln_name_t name = {{prefix, ending, ""}, {length, strlen(ending), 0}, ""};
  return kiln_tensors_find(join->stored, &name);
}

/* Reports an invalid tensor of a file: what is wrong, the requirement and the actual value. */
static kiln_status_t refuse(const join_t *join, const kiln_tensor_t *tensor, kiln_status_t status, const char *wrong,
                            const char *wanted, const char *got) {
  kiln_error_set(join->error, status, "tensor \"%.*s\": %s; expected %s, got %s", kiln_shown(tensor->name_length),
                 tensor->name, wrong, wanted, got);
  return tensor->file_length ? kiln_error_name_file(join->error, status, tensor->file, tensor->file_length) : status;
}

static kiln_status_t refuse_shape(const join_t *join, const kiln_tensor_t *tensor, const char *wanted) {
  char shape[KILN_SHAPE_TEXT_BYTES];
  return refuse(join, tensor, KILN_WEIGHT_SHAPE, "wrong shape", wanted,
                kiln_shape_text(shape, tensor->rank, tensor->shape));
}

/* Checks for a matrix of this shape, or, if columns is 0, a vector. */
static kiln_status_t check_shape(const join_t *join, const kiln_tensor_t *tensor, uint64_t rows, uint64_t columns) {
  const int64_t shape[] = {(int64_t)rows, (int64_t)columns};
  const uint32_t rank = columns ? 2 : 1;
  char wanted[KILN_SHAPE_TEXT_BYTES];
  if (tensor->rank == rank && memcmp(tensor->shape, shape, rank * sizeof *shape) == 0)
    return KILN_OK;
  return refuse_shape(join, tensor, kiln_shape_text(wanted, rank, shape));
}

static kiln_status_t check_type(const join_t *join, const kiln_tensor_t *tensor, bool is_type, const char *wanted) {
  return is_type
             ? KILN_OK
             : refuse(join, tensor, KILN_WEIGHT_TYPE, "wrong type", wanted, kiln_safetensors_dtype_text(tensor->dtype));
}

/* Checks that the group of each input exists. */
static kiln_status_t check_groups(const join_t *join, const kiln_tensor_t *tensor, uint64_t inputs, uint64_t groups) {
  for (uint64_t i = 0; i < inputs; ++i) {
    uint32_t group;
    memcpy(&group, tensor->data + i * sizeof group, sizeof group);
    if (group >= groups)
      return refuse(join, tensor, KILN_FILE_MALFORMED, "unknown group", "one of scales", "another");
  }
  return KILN_OK;
}

/* Checks the parts of a weight: words [a][b], with eight elements each along the first dimension or, for AWQ, the
 * second. */
static kiln_status_t check_parts(const join_t *join, const kiln_tensor_t *words, const kiln_tensor_t *zeros,
                                 const kiln_tensor_t *scales, const kiln_tensor_t *groups, kiln_int4_t *matrix) {
  const bool is_awq = join->how->quantization == KILN_AWQ;
  kiln_status_t status;
  if ((status = check_type(join, words, words->dtype == KILN_I32, "I32")) ||
      (status = check_type(join, zeros, zeros->dtype == KILN_I32, "I32")) ||
      (status = check_type(join, scales, kiln_convert_is_float(scales->dtype), "F32, F16 or BF16")) ||
      (groups && (status = check_type(join, groups, groups->dtype == KILN_I32, "I32"))))
    return status;
  if (words->rank != 2 || words->shape[0] == 0 || words->shape[1] == 0 || (!is_awq && words->shape[1] % 8))
    return refuse_shape(join, words, is_awq ? "a matrix" : "a matrix whose columns are a multiple of 8");
  /* Less than 2^60 each, since the file contains that many words. */
  const uint64_t inputs = (uint64_t)words->shape[0] * (is_awq ? 1 : 8),
                 outputs = (uint64_t)words->shape[1] * (is_awq ? 8 : 1);
  if (scales->rank != 2 || scales->shape[0] == 0 || (!groups && inputs % (uint64_t)scales->shape[0]))
    return refuse_shape(join, scales, "a row for each group of inputs");
  const uint64_t group_count = (uint64_t)scales->shape[0];
  if ((status = check_shape(join, scales, group_count, outputs)) ||
      (status = check_shape(join, zeros, group_count, outputs / 8)) ||
      (groups &&
       ((status = check_shape(join, groups, inputs, 0)) || (status = check_groups(join, groups, inputs, group_count)))))
    return status;
  *matrix = (kiln_int4_t){.words = words->data,
                          .zeros = zeros->data,
                          .scales = scales->data,
                          .groups = groups ? groups->data : NULL,
                          .inputs = inputs,
                          .outputs = outputs,
                          .group = groups ? 0 : inputs / group_count,
                          .group_count = group_count,
                          .scale_dtype = scales->dtype,
                          .is_awq = is_awq,
                          .more = join->how->quantization == KILN_GPTQ};
  return KILN_OK;
}

static bool is_u8(const kiln_tensor_t *tensor) { return strcmp(kiln_safetensors_dtype_text(tensor->dtype), "U8") == 0; }

/* Whether it is the part of a weight that has its numbers; *length is the length of NAME. */
static bool has_numbers(const join_t *join, const kiln_tensor_t *tensor, size_t *length) {
  if (join->how->quantization == KILN_MXFP4)
    return ends_with(tensor, "_blocks", length);
  if (join->how->quantization == KILN_NVFP4)
    return is_u8(tensor) && ends_with(tensor, ".weight", length);
  return join->how->quantization == KILN_FP8 ? tensor->dtype == KILN_F8E4M3 && ends_with(tensor, ".weight", length)
                                             : ends_with(tensor, ".qweight", length);
}

/* join_parts for an fp8 weight: scales for the whole matrix, each row or each block. */
static kiln_status_t join_f8(const join_t *join, const kiln_tensor_t *numbers, size_t length, kiln_tensor_t *tensor,
                             kiln_f8_t *matrix) {
  enum { BLOCK = 128 };
  const kiln_tensor_t *scales = find(join, numbers->name, length, "weight_scale");
  kiln_status_t status;
  if (!scales && !(scales = find(join, numbers->name, length, "weight_scale_inv")))
    return refuse(join, numbers, KILN_WEIGHT_MISSING, "part missing", "weight_scale or weight_scale_inv", "neither");
  if ((status = check_type(join, scales, kiln_convert_is_float(scales->dtype), "F32, F16 or BF16")))
    return status;
  if (numbers->rank != 2 || numbers->shape[0] == 0 || numbers->shape[1] == 0)
    return refuse_shape(join, numbers, "a matrix");
  const uint64_t rows = (uint64_t)numbers->shape[0], columns = (uint64_t)numbers->shape[1],
                 scale_rows = scales->rank > 0 ? (uint64_t)scales->shape[0] : 1,
                 scale_columns = scales->rank > 1 ? (uint64_t)scales->shape[1] : 1;
  *matrix = (kiln_f8_t){numbers->data, scales->data, columns, rows, columns, scale_columns, scales->dtype};
  if (scale_rows == rows && scale_columns == 1)
    matrix->block_rows = 1;
  else if (scale_rows != 1 || scale_columns != 1)
    matrix->block_rows = matrix->block_columns = BLOCK;
  if (scales->rank > 2 || scale_rows != (rows + matrix->block_rows - 1) / matrix->block_rows ||
      scale_columns != (columns + matrix->block_columns - 1) / matrix->block_columns)
    return refuse_shape(join, scales, "one scale, one for each row or one for each block of 128 rows and columns");
  tensor->dtype = KILN_F32;
  tensor->form = &kiln_f8_form;
  tensor->parts = matrix;
  return KILN_OK;
}

/* join_parts for MXFP4: blocks [..., K / 32, 16] and scales [..., K / 32]. */
static kiln_status_t join_f4(const join_t *join, const kiln_tensor_t *numbers, size_t length, kiln_tensor_t *tensor,
                             kiln_f4_t *parts) {
  const kiln_tensor_t *scales = find(join, numbers->name, length, "_scales");
  const uint32_t rank = numbers->rank - 1;
  kiln_status_t status;
  if (!scales)
    return refuse(join, numbers, KILN_WEIGHT_MISSING, "part missing", "scales", "none");
  if ((status = check_type(join, numbers, is_u8(numbers), "U8")) ||
      (status = check_type(join, scales, is_u8(scales), "U8")))
    return status;
  if (numbers->rank < 2 || numbers->rank > KILN_MAX_RANK || numbers->shape[rank] != 16)
    return refuse_shape(join, numbers, "blocks of 16 bytes");
  if (scales->rank != rank || memcmp(scales->shape, numbers->shape, rank * sizeof *scales->shape) != 0)
    return refuse_shape(join, scales, "one scale for each block");
  *parts = (kiln_f4_t){numbers->data, scales->data};
  tensor->dtype = KILN_F32;
  tensor->rank = rank;
  tensor->shape[rank - 1] *= 32;
  tensor->form = &kiln_f4_form;
  tensor->parts = parts;
  return KILN_OK;
}

/* join_parts for NVFP4: numbers [rows, columns / 2], scales [rows, columns / 16] and one outer scale. */
static kiln_status_t join_nvfp4(const join_t *join, const kiln_tensor_t *numbers, size_t length, kiln_tensor_t *tensor,
                                kiln_nvfp4_t *matrix) {
  enum { GROUP_BYTES = 8 };
  const kiln_tensor_t *scales = find(join, numbers->name, length, "weight_scale"),
                      *outer = find(join, numbers->name, length, "weight_scale_2");
  kiln_status_t status;
  if (!scales || !outer)
    return refuse(join, numbers, KILN_WEIGHT_MISSING, "part missing", "weight_scale and weight_scale_2",
                  scales ? "no weight_scale_2" : "no weight_scale");
  if ((status = check_type(join, scales, scales->dtype == KILN_F8E4M3, "F8_E4M3")) ||
      (status = check_type(join, outer, outer->dtype == KILN_F32, "F32")))
    return status;
  if (numbers->rank != 2 || numbers->shape[0] == 0 || numbers->shape[1] == 0 || numbers->shape[1] % GROUP_BYTES)
    return refuse_shape(join, numbers, "a matrix whose columns are a multiple of 8");
  if ((status = check_shape(join, scales, (uint64_t)numbers->shape[0], (uint64_t)numbers->shape[1] / GROUP_BYTES)))
    return status;
  if (outer->rank > 1 || (outer->rank == 1 && outer->shape[0] != 1))
    return refuse_shape(join, outer, "one number");
  *matrix = (kiln_nvfp4_t){numbers->data, scales->data, outer->data, (uint64_t)numbers->shape[1] * 2};
  tensor->dtype = KILN_F32;
  tensor->shape[1] *= 2;
  tensor->form = &kiln_nvfp4_form;
  tensor->parts = matrix;
  return KILN_OK;
}

/* Turns *tensor, a copy of NAME.qweight with the new name, into the weight with all of its parts; length: that of
 * NAME and the dot. */
static kiln_status_t join_parts(const join_t *join, const kiln_tensor_t *words, size_t length, kiln_tensor_t *tensor,
                                kiln_int4_t *matrix) {
  const kiln_tensor_t *zeros = find(join, words->name, length, "qzeros"),
                      *scales = find(join, words->name, length, "scales"),
                      *groups = find(join, words->name, length, "g_idx");
  kiln_status_t status;
  if (!zeros || !scales)
    return refuse(join, words, KILN_WEIGHT_MISSING, "part missing", "scales and qzeros",
                  zeros ? "no scales" : "no qzeros");
  if (join->how->quantization == KILN_AWQ)
    groups = NULL;
  if ((status = check_parts(join, words, zeros, scales, groups, matrix)))
    return status;
  tensor->dtype = KILN_F32;
  tensor->shape[0] = (int64_t)matrix->outputs;
  tensor->shape[1] = (int64_t)matrix->inputs;
  tensor->form = &kiln_int4_form;
  tensor->parts = matrix;
  return KILN_OK;
}

/* Whether it is a part of a weight whose numbers exist. */
static bool is_part(const join_t *join, const kiln_tensor_t *tensor) {
  enum { ENDINGS = 3 };
  static const char *const int4[ENDINGS] = {".qzeros", ".scales", ".g_idx"},
                           *const f8[ENDINGS] = {".weight_scale", ".weight_scale_inv", ".input_scale"},
                           *const nvfp4[ENDINGS] = {".weight_scale", ".weight_scale_2", ".input_scale"};
  const kiln_quantization_t quantization = join->how->quantization;
  const char *const *const endings = quantization == KILN_FP8 ? f8 : quantization == KILN_NVFP4 ? nvfp4 : int4;
  const size_t count = quantization == KILN_AWQ ? ENDINGS - 1 : ENDINGS;
  size_t length, ignored;
  if (quantization == KILN_MXFP4)
    return ends_with(tensor, "_scales", &length) && find(join, tensor->name, length, "_blocks");
  for (size_t i = 0; i < count; ++i)
    if (ends_with(tensor, endings[i], &length)) {
      const kiln_tensor_t *numbers = find(join, tensor->name, length, endings == int4 ? ".qweight" : ".weight");
      return numbers && has_numbers(join, numbers, &ignored);
    }
  return false;
}

/* Checks a tensor that is ignored. */
static kiln_status_t check_zeros(const join_t *join, const kiln_tensor_t *tensor, const kiln_tensor_t *called) {
  uint64_t elements = (tensor->end - tensor->begin) / (tensor->dtype == KILN_F32 ? 4 : 2);
  if (tensor->form) {
    elements = 1;
    for (uint32_t i = 0; i < tensor->rank; ++i)
      elements *= (uint64_t)tensor->shape[i];
  }
  kiln_status_t status = check_type(join, called, kiln_convert_is_float(tensor->dtype), "F32, F16 or BF16");
  return status ? status : kiln_rename_check_zeros(tensor, called->name, called->name_length, elements, join->error);
}

/* Gives *tensor, a tensor of the file, the name of the weight whose words it is; *length: that of the name's part
 * before the dot. Returns whether it is one. */
static bool name_joined(const join_t *join, kiln_tensor_t *tensor, size_t *length) {
  if (!has_numbers(join, tensor, length))
    return false;
  if (join->how->quantization == KILN_MXFP4) {
    tensor->name_length = *length;
    return true;
  }
  memcpy(join->scratch, tensor->name, *length + 1);
  memcpy(join->scratch + *length + 1, "weight", 6);
  tensor->name = join->scratch;
  tensor->name_length = *length + 7;
  return true;
}

/* The names of weights, and of tensors that are no part of one. */
static bool next_name(const void *file, size_t *at, kiln_tensor_t *tensor) {
  const join_t *const join = file;
  size_t length;
  while (kiln_renames_next(join->stored, at, tensor))
    if (!is_part(join, tensor)) {
      name_joined(join, tensor, &length);
      return true;
    }
  return false;
}

/* Adds a tensor of the file, or the weight whose words it is, to the table under its new name. */
static kiln_status_t take_tensor(join_t *join, const kiln_tensor_t *stored) {
  const kiln_rename_t *rename;
  kiln_tensor_t tensor = *stored;
  kiln_matrix_t matrix;
  size_t length;
  kiln_status_t status;
  if (is_part(join, stored))
    return KILN_OK;
  const bool is_joined = name_joined(join, &tensor, &length);
  const kiln_tensor_t called = tensor;
  tensor.name_length = kiln_rename(&join->how->renames, called.name, called.name_length, &rename, join->names);
  const bool is_left_out = rename && !rename->to;
  if (is_left_out && !(rename->flags & KILN_RENAME_ZEROS))
    return KILN_OK;
  if (is_joined &&
      (status = join->how->quantization == KILN_FP8     ? join_f8(join, stored, length + 1, &tensor, &matrix.f8)
                : join->how->quantization == KILN_MXFP4 ? join_f4(join, stored, length, &tensor, &matrix.f4)
                : join->how->quantization == KILN_NVFP4 ? join_nvfp4(join, stored, length + 1, &tensor, &matrix.nvfp4)
                                                        : join_parts(join, stored, length + 1, &tensor, &matrix.int4)))
    return status;
  if (is_left_out)
    return check_zeros(join, &tensor, &called);
  if (join->names) {
    tensor.name = join->names;
    join->names += tensor.name_length;
    if (is_joined) {
      join->matrices[join->matrix_count] = matrix;
      tensor.parts = &join->matrices[join->matrix_count];
    }
    join->table.tensors[join->table.count] = tensor;
  }
  join->name_bytes += tensor.name_length;
  join->matrix_count += is_joined;
  ++join->table.count;
  return KILN_OK;
}

static kiln_status_t take_tensors(join_t *join) {
  kiln_status_t status = KILN_OK;
  for (size_t i = 0; !status && i < join->stored->count; ++i)
    status = take_tensor(join, &join->stored->tensors[i]);
  return status;
}

static kiln_status_t make_table(join_t *join, const kiln_allocator_t *allocator, kiln_tensors_t *table) {
  void *memory;
  kiln_status_t status = kiln_source_check(join->stored, join->error);
  if (status || (status = kiln_renames_check_fit(&join->how->renames, next_name, join, join->error)) ||
      (status = take_tensors(join)))
    return status;
  const size_t count = join->table.count, matrix_bytes = join->matrix_count * sizeof(kiln_matrix_t);
  if ((status = kiln_memory_allocate(allocator, count * sizeof(kiln_tensor_t) + matrix_bytes + join->name_bytes,
                                     "an index of the weights", &memory, join->error)))
    return status;
  join->table = (kiln_tensors_t){memory, 0};
  join->matrices = (kiln_matrix_t *)(void *)(join->table.tensors + count);
  join->matrix_count = 0;
  join->names = (char *)join->matrices + matrix_bytes;
  if (!(status = kiln_source_check(join->stored, join->error)))
    status = take_tensors(join);
  *table = join->table;
  if (status || (status = kiln_tensors_sort_by_name(table, "checkpoint", join->error)))
    kiln_tensors_release(table, allocator);
  return status;
}

kiln_status_t kiln_quantized_join(const kiln_tensors_t *stored, const kiln_quantized_t *how,
                                  const kiln_allocator_t *allocator, kiln_tensors_t *table, kiln_error_t *error) {
  join_t join = {.stored = stored, .how = how, .error = error};
  size_t longest = 0;
  void *memory;
  memset(table, 0, sizeof *table);
  for (size_t i = 0; i < stored->count; ++i)
    longest = stored->tensors[i].name_length > longest ? stored->tensors[i].name_length : longest;
  kiln_status_t status = kiln_memory_allocate(allocator, longest, "the name of a tensor", &memory, error);
  if (status)
    return status;
  join.scratch = memory;
  status = make_table(&join, allocator, table);
  allocator->release(allocator->self, memory);
  return status;
}

static kiln_status_t bind_joined(kiln_model_t *model, kiln_tensors_t *stored, const void *context,
                                 kiln_error_t *error) {
  kiln_tensors_t table;
  kiln_status_t status = kiln_quantized_join(stored, context, &model->allocator, &table, error);
  if (status)
    return status;
  status = kiln_bind_tensors(model, &table, error);
  kiln_tensors_release(&table, &model->allocator);
  return status;
}

kiln_status_t kiln_bind_quantized(kiln_model_t *model, const char *path, kiln_quantization_t quantization,
                                  const kiln_rename_t *renames, size_t count, kiln_error_t *error) {
  const kiln_quantized_t how = {quantization, {renames, count}};
  kiln_status_t status = kiln_renames_check(model, path, &how.renames, false, "bind_quantized", error);
  if (status)
    return status;
  if (quantization < KILN_GPTQ || quantization > KILN_NVFP4)
    return kiln_error_set(error, KILN_INVALID_ARGUMENT,
                          "bind_quantized: unknown format; expected KILN_GPTQ, KILN_GPTQ_V2, KILN_AWQ, KILN_FP8, "
                          "KILN_MXFP4 or KILN_NVFP4, got %d",
                          (int)quantization);
  status = kiln_checkpoint_take(model, path, bind_joined, &how, error);
  if (!status || status == KILN_FILE_ERROR || kiln_is_index(path))
    return status;
  if (error && strncmp(error->message, "file \"", 6) == 0) /* kiln_checkpoint_take names a file that is none */
    return status;
  const char *const name = kiln_base_name(path);
  return kiln_error_name_file(error, status, name, strlen(name));
}
