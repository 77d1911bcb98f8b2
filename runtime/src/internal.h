// SPDX-License-Identifier: Apache-2.0
/* What the runtime's own files share. Every name keeps the kiln_ prefix, since the emitter renames all of them to the
 * model's when it makes an archive. Nothing here is seen by a user. */
#ifndef KILN_INTERNAL_H
#define KILN_INTERNAL_H

#include "model.h"

#if !defined(__SSE__)
#include <fenv.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* How much of a name a message shows. */
enum { KILN_NAME_SHOWN = 80 };
/* Room for the text of any shape: KILN_MAX_RANK numbers, separators and an ellipsis. */
enum { KILN_SHAPE_TEXT_BYTES = 24 * KILN_MAX_RANK };

/* For a size_t; some C libraries of Windows do not know "%zu". */
#if defined(_WIN32)
#define KILN_SIZE "%llu"
#else
#define KILN_SIZE "%zu"
#endif

/* status.c */

/* As snprintf, which does not fail with the formats used here. */
size_t kiln_text_print(char *to, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Writes status and words to error, which may be null; returns status. */
kiln_status_t kiln_error_set(kiln_error_t *error, kiln_status_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Clears error, which may be null; returns KILN_OK. */
kiln_status_t kiln_error_clear(kiln_error_t *error);
/* Puts a file's name before the words of error, which may be null; returns status. */
kiln_status_t kiln_error_name_file(kiln_error_t *error, kiln_status_t status, const char *file, size_t length);
/* KILN_FILE_ERROR: "cannot open weight file ...". */
kiln_status_t kiln_file_error(kiln_error_t *error, const char *action, const char *path, const char *reason);
/* "[3, 4]"; extents past KILN_MAX_RANK, which shape does not hold, show as "...". Returns buffer. */
const char *kiln_shape_text(char buffer[KILN_SHAPE_TEXT_BYTES], uint32_t rank, const int64_t *shape);

/* cpu.c */

/* The words of CPUID and XGETBV that the x86-64 levels are made of, and what Linux says of an Arm CPU (AT_HWCAP). */
typedef struct kiln_cpu_t {
  uint32_t leaf1_ecx, leaf7_ebx, extended1_ecx;
  uint64_t saved_state; /* XCR0: the registers that the system saves; 0 without XGETBV */
  uint32_t leaf7_ecx;
  uint64_t arm_capabilities, riscv_capabilities; /* AT_HWCAP */
  bool is_wasm;
} kiln_cpu_t;
/* What another architecture has is zero. */
kiln_cpu_t kiln_cpu_detect(void);
/* KILN_CPU_ bits of what the CPU and its system can run. */
uint64_t kiln_cpu_features(const kiln_cpu_t *cpu);
/* "x86-64-v2", of the highest level among the features; never null. */
const char *kiln_cpu_text(uint64_t features);

/* json.c: the part of JSON that weight files need, read in place. */

typedef struct kiln_json_t {
  const char *begin, *next, *end;
  kiln_error_t *error;
  const char *document; /* what messages call it: "safetensors header" */
} kiln_json_t;
/* A checked string, still escaped, without its quotes. */
typedef struct kiln_json_string_t {
  const char *text;
  size_t length;
  size_t decoded_length; /* bytes of UTF-8; equal to length if and only if nothing is escaped */
} kiln_json_string_t;
/* All skip white space first. Failures are KILN_FILE_MALFORMED; `what` says in the message what was wanted. */
kiln_status_t kiln_json_fail(const kiln_json_t *json, const char *what);
bool kiln_json_accept(kiln_json_t *json, char wanted);
kiln_status_t kiln_json_expect(kiln_json_t *json, char wanted, const char *what);
kiln_status_t kiln_json_read_string(kiln_json_t *json, const char *what, kiln_json_string_t *string);
/* A whole number from 0 to INT64_MAX. */
kiln_status_t kiln_json_read_integer(kiln_json_t *json, const char *what, int64_t *value);
bool kiln_json_at_end(kiln_json_t *json);
bool kiln_json_string_equals(const kiln_json_string_t *string, const char *text);
/* The bytes that kiln_json_string_place writes. */
static inline size_t kiln_json_string_room(const kiln_json_string_t *string) {
  return string->decoded_length == string->length ? 0 : string->decoded_length;
}
/* The decoded_length bytes of a string, without a terminator: where they are, if nothing is escaped, else written to
 * *room, which moves on behind them. */
const char *kiln_json_string_place(const kiln_json_string_t *string, char **room);
/* Reads a value of any kind and forgets it. */
kiln_status_t kiln_json_skip(kiln_json_t *json, const char *what);

/* file.c */

/* Memory of the system, zero: null if there is none. That of an open file from its first byte on, or a copy of it; what
 * is written there stays the process's own. */
char *kiln_pages_allocate(size_t bytes);
char *kiln_pages_of_file(int descriptor, size_t bytes, bool is_written);
void kiln_pages_release(void *memory, size_t bytes);
/* A number that no other process has at the time. */
long kiln_process(void);

/* Whether what stands before it in a path is no part of a file's name; on Windows it may be a drive. */
static inline bool kiln_is_separator(char character) {
#if defined(_WIN32)
  return character == '/' || character == '\\' || character == ':';
#else
  return character == '/';
#endif
}
/* The name of a file without its folders (rename.c). */
const char *kiln_base_name(const char *path);

typedef struct kiln_file_t {
  const void *image;
  size_t bytes;
} kiln_file_t;
/* is_written: what is written to the map stays the process's own; else it is for reading. */
kiln_status_t kiln_file_map(const char *path, bool is_written, kiln_file_t *file, kiln_error_t *error);
void kiln_file_unmap(kiln_file_t *file);
/* Bytes of the file were read: the pages that hold them no longer count as memory of the process, nor do their
 * neighbours. What is needed again is read again. */
void kiln_file_give_back(const kiln_file_t *file, const char *begin, const char *end);

typedef struct kiln_output_t {
  intptr_t handle; /* a descriptor, or a HANDLE of Windows */
  const char *path;
} kiln_output_t;
typedef kiln_status_t (*kiln_write_t)(const void *context, const kiln_output_t *output, kiln_error_t *error);
/* Writes a file beside the path, which then takes the place of what is there: another process may have mapped that, and
 * a program that ends meanwhile leaves it whole. */
kiln_status_t kiln_file_replace(const char *path, kiln_write_t write, const void *context, kiln_error_t *error);
/* For `write`; and what was written so far comes to the disk, as all of it does before the function returns. */
kiln_status_t kiln_file_write(const kiln_output_t *output, const void *bytes, uint64_t count, kiln_error_t *error);
kiln_status_t kiln_file_keep(const kiln_output_t *output, kiln_error_t *error);

/* tensors.c: a table of tensors, sorted by name. */

typedef struct kiln_tensor_t {
  const char *name; /* not terminated */
  size_t name_length;
  const char *file; /* of several with an index, the name of the one that it is in; not terminated */
  size_t file_length;
  const kiln_file_t *source;    /* the mapped file that the data are in; null: memory of the caller's */
  const char *data;             /* its first byte; null in an index whose files are not read yet */
  uint64_t begin, end;          /* bytes of the file's data section */
  int64_t shape[KILN_MAX_RANK]; /* the first extents, where rank is larger */
  uint32_t rank;
  uint16_t dtype;                 /* kiln_dtype_t, or a larger number for a type that no model has */
  bool is_used;                   /* for the binder */
  const struct kiln_form_t *form; /* null: elements of dtype lie side by side */
  const void *parts;              /* for the form */
} kiln_tensor_t;
/* A part of a matrix: `depth` elements of each of `rows` rows, in groups. */
typedef struct kiln_part_t {
  size_t row, rows, first, depth, group;
} kiln_part_t;
/* How numbers are read that do not lie side by side as f32, f16 or bf16: by the reader that made the tensor, whose
 * dtype is f32 then. Works between kiln_rounding_begin and _end. */
typedef struct kiln_form_t {
  /* `count` numbers from element `first` on. */
  void (*read)(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count);
  /* Whether the numbers are int4 in groups of so many along rows, as they are stored; is_centred: 8 always stands for
   * 0. Then read_groups gives what kiln_quantize_groups would make, of whole groups. Null: they are not. */
  bool (*has_groups)(const kiln_tensor_t *tensor, uint32_t group, bool is_centred);
  void (*read_groups)(const kiln_tensor_t *tensor, const kiln_part_t *part, uint32_t *words, char *scales,
                      signed char *zeros);
} kiln_form_t;
typedef struct kiln_tensors_t {
  kiln_tensor_t *tensors;
  size_t count;
} kiln_tensors_t;
/* A name in three parts: what is before a "{}", the number in its place, what follows. */
typedef struct kiln_name_t {
  const char *parts[3];
  size_t lengths[3];
  char digits[12];
} kiln_name_t;

/* Sorts by any order, whatever the tensors are: no allocation, no bad case. */
void kiln_tensors_sort(kiln_tensors_t *table, int (*order)(const kiln_tensor_t *left, const kiln_tensor_t *right));
/* For it: by where they begin, then by where they end. */
int kiln_tensors_order_by_offset(const kiln_tensor_t *left, const kiln_tensor_t *right);
/* Sorts by name; two of one name are KILN_FILE_MALFORMED, of what messages call the document. */
kiln_status_t kiln_tensors_sort_by_name(kiln_tensors_t *table, const char *document, kiln_error_t *error);
/* The order of a name in parts and of a text: negative, 0 or positive. */
int kiln_name_order(const kiln_name_t *name, const char *text, size_t length);
/* Null when there is none. */
kiln_tensor_t *kiln_tensors_find(const kiln_tensors_t *table, const kiln_name_t *name);
/* Lets go of what was allocated for a table that a file's reader made. */
void kiln_tensors_release(kiln_tensors_t *table, const kiln_allocator_t *allocator);
/* As many bytes of a text as a message shows, for "%.*s". */
static inline int kiln_shown(size_t length) { return length < KILN_NAME_SHOWN ? (int)length : KILN_NAME_SHOWN; }

/* safetensors.c */

/* Checks the whole header against the image, which stays the caller's, and makes a table, the only thing allocated. */
kiln_status_t kiln_safetensors_open(const void *image, size_t bytes, const kiln_allocator_t *allocator,
                                    kiln_tensors_t *table, kiln_error_t *error);
/* "F32"; never null, for any value. */
const char *kiln_safetensors_dtype_text(uint32_t dtype);
/* Bytes of so many elements that lie together; 0 for a value that is no type. */
uint64_t kiln_safetensors_stored_bytes(uint32_t dtype, uint64_t elements);

/* convert.c */

/* f32, f16 or bf16. */
bool kiln_convert_is_float(uint32_t dtype);
/* Whether a weight of the type `to` is made of a file's elements of the type `from`. */
bool kiln_convert_is_source(uint32_t from, uint32_t to);
/* The types of which that is true: "F32, F16 or BF16". */
const char *kiln_convert_sources_text(uint32_t to);
/* `count` elements of f32, f16 or bf16, at any address, as f32. */
void kiln_convert_widen(float *to, const char *from, size_t count, uint32_t dtype);
/* The same of a tensor's, from element `first` on, whatever its form. */
void kiln_convert_read(const kiln_tensor_t *tensor, float *to, uint64_t first, size_t count);
/* The nearest f16 or bf16 of numbers that have a finite one, between kiln_rounding_begin and _end; or the same f32. */
void kiln_convert_narrow(char *to, const float *from, size_t count, uint32_t dtype);

/* quantize.c */

/* The caller's modes of floating-point arithmetic. */
#if defined(__SSE__)
typedef unsigned kiln_rounding_t;
#else
typedef fenv_t kiln_rounding_t;
#endif
/* To the nearest number, of two the even one, with subnormals; what raises a flag does not trap. */
kiln_rounding_t kiln_rounding_begin(void);
void kiln_rounding_end(kiln_rounding_t callers);

/* The rest works between those two. False: an element is NaN, infinite or too large to be stored, and what was written
 * is of no use. */

/* Raises the largest magnitudes, of each row or of each column, to those of a matrix that begins with the tensor's
 * element `first`. They begin as zeros. */
void kiln_quantize_raise(float *most, const kiln_tensor_t *tensor, uint64_t first, size_t rows, size_t columns,
                         bool of_rows);
/* Makes scales of them, for a matrix that becomes i8. */
bool kiln_quantize_scales(float *most, size_t count);
/* Makes elements of the type `stored` of a matrix; scales, for i8, are those of its columns. */
bool kiln_quantize(char *to, uint32_t stored, const float *from, size_t rows, size_t columns, const float *scales);
/* Whether all elements can be stored so. */
bool kiln_quantize_fits(const float *from, size_t count, uint32_t stored);
/* The first element that cannot be stored, with its value; count: there is none. As f32 those can that are finite. */
uint64_t kiln_quantize_find(const kiln_tensor_t *tensor, uint64_t count, uint32_t stored, float *value);

/* quantize_groups.c */

/* Elements of int4 in a word; columns that are quantised together, at most. */
enum { KILN_WORD_ELEMENTS = 8, KILN_GROUP_COLUMNS = 32 };
/* The lowest bit of an element in its word: of k and k + 4 in the halves of byte k % 4. */
static inline unsigned kiln_bit_in_word(uint64_t k) { return (unsigned)(k % 4 * 8 + k / 4 % 2 * 4); }
/* Makes int4 of whole groups of a matrix [depth][columns]: words [depth / 8][columns], scales, which are f16, and
 * zeros, null if 8 stands for 0, [depth / group][columns]. Elements and zeros are less 8. Works between
 * kiln_rounding_begin and _end; false as of kiln_quantize. */
bool kiln_quantize_groups(uint32_t *words, char *scales, signed char *zeros, const float *from, size_t depth,
                          size_t columns, size_t group);

/* index.c */

/* What is done with the tensors of a checkpoint, which live until it returns. */
typedef kiln_status_t (*kiln_take_t)(kiln_model_t *model, kiln_tensors_t *table, const void *context,
                                     kiln_error_t *error);
/* kiln_checkpoint_take for a path of an index. */
kiln_status_t kiln_index_take(kiln_model_t *model, const char *path, kiln_take_t take, const void *context,
                              kiln_error_t *error);

/* bind.c */

/* Whether a path is that of an index of several files. */
bool kiln_is_index(const char *path);
/* Maps a safetensors file, or the files of an index, hands their tensors to `take`, and unmaps them. */
kiln_status_t kiln_checkpoint_take(kiln_model_t *model, const char *path, kiln_take_t take, const void *context,
                                   kiln_error_t *error);

/* Marks the tensor of a copy of a weight as used, and checks it; null: the file has none. */
kiln_status_t kiln_check_weight(const kiln_weight_t *weight, const kiln_name_t *name, kiln_tensor_t *tensor,
                                kiln_error_t *error);
/* That the table has no tensor that is not used. */
kiln_status_t kiln_check_used(const kiln_model_t *model, const kiln_tensors_t *table, kiln_error_t *error);
/* A copy of a weight that is bound. */
typedef struct kiln_packing_t {
  const kiln_weight_t *weight;
  const kiln_placement_t *placement;
  const kiln_name_t *name;
  char *packed;              /* the placement's offset for that copy, zeros; null: it is checked, and not packed yet */
  const kiln_shard_t *shard; /* of a slice: which one it is; else null, or without sections */
  uint32_t rank;             /* whose */
} kiln_packing_t;
/* Checks a tensor, or packs it. */
kiln_status_t kiln_take_tensor(const kiln_packing_t *packing, kiln_tensor_t *tensor, kiln_error_t *error);
/* Checks all tensors against the model's weights, but those that are used already, and packs them. */
kiln_status_t kiln_bind_tensors(kiln_model_t *model, const kiln_tensors_t *table, kiln_error_t *error);
/* Bytes of one copy in a weight file. */
uint64_t kiln_weight_bytes(const kiln_weight_t *weight);
/* A training's step and seed in a weight file, as kiln_training_t has them. */
enum { KILN_TRAINING_NUMBERS = 2 };
extern const kiln_weight_t kiln_training_numbers[KILN_TRAINING_NUMBERS];
/* The weight's name for one copy: "{}" becomes the copy's number. */
void kiln_weight_name(const kiln_weight_t *weight, uint32_t copy, kiln_name_t *name);

/* placement.c */

/* Whether a weight of f32 is stored in fewer bits. */
static inline bool kiln_is_stored(const kiln_weight_t *weight, const kiln_placement_t *placement) {
  return weight->dtype != placement->dtype;
}
/* Whether calls may change the weight: a variable that lies as it is. */
bool kiln_weight_changes(const kiln_model_t *model, uint32_t index);
/* Elements of one copy of a weight, dense and of its type; written: of one that changes. */
kiln_status_t kiln_read_elements(const kiln_model_t *model, uint32_t index, uint32_t copy, uint64_t first,
                                 uint64_t count, void *values, kiln_error_t *error);
kiln_status_t kiln_write_elements(kiln_model_t *model, uint32_t index, uint32_t copy, uint64_t first, uint64_t count,
                                  const void *values, kiln_error_t *error);
/* Bytes from a placement's offset to the end of what a copy of the weight covers, with scales; 0 if the placement makes
 * no sense. */
uint64_t kiln_pack_bytes(const kiln_weight_t *weight, const kiln_placement_t *placement);
/* The elements beside each of a dimension; all of them for one that the weight lacks. */
uint64_t kiln_elements_beside(const kiln_weight_t *weight, uint32_t dim);
/* How many elements of the depth lie together. */
uint64_t kiln_word_of(const kiln_placement_t *placement);
/* Where an element lies, in elements from the placement's offset for its copy: of a weight as a matrix, whose columns
 * are all dimensions but the first. */
uint64_t kiln_pack_place(const kiln_placement_t *placement, uint64_t rows, uint64_t columns, uint64_t row,
                         uint64_t column);

/* pack.c */

/* Stores one copy's elements, which are of the type `dtype` in data, at their place. packed points at the placement's
 * offset for that copy. False: an element cannot be stored as the placement's type (kiln_quantize_find says which), and
 * what was written is of no use. */
bool kiln_pack_weight(char *packed, const char *data, uint32_t dtype, const kiln_weight_t *weight,
                      const kiln_placement_t *placement);
/* The same of a tensor. Pages of its source are given back to the system as they are read. */
bool kiln_pack_tensor(char *packed, const kiln_tensor_t *tensor, const kiln_weight_t *weight,
                      const kiln_placement_t *placement);

/* A mapped file that is read. */
typedef struct kiln_reader_t {
  const kiln_file_t *file;
  const char *kept; /* where pages begin that are not given back yet */
} kiln_reader_t;
/* Where a weight goes: if it is tiled, element (n along the dimension `dim`, k along the other) of `depth`. */
typedef struct kiln_tiling_t {
  char *packed;
  size_t tile, dim, shift, depth, bytes;
  uint32_t dtype;
  float *scales;         /* of n = 0; null: none */
  size_t word;           /* elements of the depth that lie together */
  int32_t *sums;         /* of words of four, of n = 0: 128 times the sum of the elements; null: none */
  kiln_reader_t *reader; /* null: data are no file's */
} kiln_tiling_t;
/* What lies before `end` was read: pages are given back, if there are enough of them. */
void kiln_pack_pass(const kiln_tiling_t *tiling, const char *end);
/* Stores a weight as a matrix, past the caches; one that is dense is a row. */
void kiln_pack_matrix(const kiln_tiling_t *tiling, const char *data, size_t rows, size_t columns);

/* pack_groups.c */

/* kiln_pack_weight of int4; rows, columns: of the weight as a matrix. */
bool kiln_pack_groups(const kiln_tiling_t *tiling, const kiln_placement_t *placement, const kiln_tensor_t *tensor,
                      size_t rows, size_t columns);
/* Whether the placement can hold a tensor of int4 as it is. */
bool kiln_pack_groups_fit(const kiln_placement_t *placement, const kiln_tensor_t *tensor);
/* Bytes from the placement's offset to the end of int4, of so many outputs in whole tiles; 0 if it makes no sense. */
uint64_t kiln_pack_groups_bytes(const kiln_placement_t *placement, uint64_t outputs, uint64_t depth);
/* The number that element k of the depth of output n stands for. */
float kiln_pack_groups_value(const char *packed, const kiln_placement_t *placement, uint64_t depth, uint64_t n,
                             uint64_t k);

/* save.c: files of bound weights, also with what a training goes on from. */

/* What a file has. */
typedef struct kiln_contents_t {
  const kiln_model_t *model;
  const char *arena; /* of a training; null: the weights alone */
  const kiln_training_t *training;
} kiln_contents_t;
/* Whether it has a weight or, behind the weights, a state: of what is packed twice, only the first; of a training what
 * that changes. */
bool kiln_contents_has(const kiln_contents_t *contents, uint32_t index);
/* Elements of a copy of one, of what the model has. */
kiln_status_t kiln_contents_read(const kiln_contents_t *contents, uint32_t index, uint32_t copy, uint64_t first,
                                 uint64_t count, void *values, kiln_error_t *error);
/* Writes what is before all tensors, whose order is that of the indices, and what is behind them. */
kiln_status_t kiln_contents_begin(const kiln_contents_t *contents, const kiln_output_t *output, kiln_error_t *error);
kiln_status_t kiln_contents_end(const kiln_contents_t *contents, const kiln_output_t *output, kiln_error_t *error);

/* model.c */

/* Whose memory the host's packed weights are: the allocator's, the system's, a packed file's behind its head, the
 * program's own. */
typedef enum kiln_packed_t {
  KILN_PACKED_ALLOCATED,
  KILN_PACKED_PAGES,
  KILN_PACKED_FILE,
  KILN_PACKED_EMBEDDED
} kiln_packed_t;
/* A page. */
enum { KILN_PACKED_HEAD_BYTES = 4096 };

/* What a model computes of its entries, and has of weights and states. Of one that is no stage it is all. */
typedef struct kiln_role_t {
  uint32_t number;                    /* KILN_ROLE_; 0 of one that is no stage */
  const kiln_body_t *bodies;          /* one an entry */
  const kiln_placement_t *placements; /* one a weight */
  uint64_t packed_bytes;
  bool is_silent; /* it has no outputs */
} kiln_role_t;

struct kiln_model_t {
  const kiln_descriptor_t *descriptor;
  const kiln_variant_t *variant;
  kiln_allocator_t allocator;
  char *packed; /* null until weights are bound; on a device, if the variant has a backend */
  kiln_packed_t packed_kind;
  kiln_role_t role;
  uint32_t rank, stage; /* of descriptor->ranks, descriptor->stages */
  uint32_t replica;     /* of descriptor->replicas, where these share out states */
  void *device;         /* the backend's */
};

/* Where a copy that the model has of a state lies, in bytes from the beginning of the arena. */
static inline uint64_t kiln_state_place(const kiln_model_t *model, const kiln_state_t *state, uint32_t copy) {
  return state->offsets[model->role.number] + copy * state->stride;
}

/* Where a copy goes: between the host and the variant's memory, or within that; zeros come from nowhere. */
typedef enum kiln_copy_t { KILN_COPY_IN, KILN_COPY_OUT, KILN_COPY_WITHIN, KILN_COPY_ZEROS } kiln_copy_t;

/* Values of an entry's symbols; of a batch, also what each sequence has of its own. */
typedef struct kiln_extents_t {
  const int64_t *values;
  const kiln_sequence_t *sequences; /* null: the entry is of one */
} kiln_extents_t;

/* What runs a variant whose memory is a device's. Only the variant refers to it, so that a program without such a
 * variant links none of it. */
typedef struct kiln_backend_t {
  kiln_device_t kind;
  /* Makes model->device, of the variant that model->variant is. KILN_NO_DEVICE: the next variant may do. */
  kiln_status_t (*create)(kiln_model_t *model, const kiln_options_t *options, kiln_error_t *error);
  /* Lets go of model->device and model->packed. */
  void (*destroy)(kiln_model_t *model);
  /* Makes a copy of the host's packed weights, which takes the place of model->packed. */
  kiln_status_t (*bind)(kiln_model_t *model, const char *packed, kiln_error_t *error);
  kiln_status_t (*allocate)(const kiln_model_t *model, uint64_t bytes, void **memory, kiln_error_t *error);
  void (*release)(const kiln_model_t *model, void *memory);
  kiln_status_t (*copy)(const kiln_model_t *model, kiln_copy_t kind, void *to, const void *from, uint64_t bytes,
                        kiln_error_t *error);
  /* A call that kiln_run has checked, but for stream and memory. */
  kiln_status_t (*run)(const kiln_model_t *model, const kiln_call_t *call, uint32_t entry,
                       const kiln_extents_t *extents, void *const *arguments);
} kiln_backend_t;
extern const kiln_backend_t kiln_cuda_backend; /* cuda.c */

/* kiln_create_on for any descriptor and CPU; options null: none. */
kiln_status_t kiln_model_create(const kiln_descriptor_t *descriptor, const kiln_cpu_t *cpu,
                                const kiln_options_t *options, kiln_model_t **model, kiln_error_t *error);
/* KILN_ARENA_ALIGNMENT aligned memory from the allocator; `what` is for the message. */
kiln_status_t kiln_memory_allocate(const kiln_allocator_t *allocator, uint64_t bytes, const char *what, void **memory,
                                   kiln_error_t *error);
/* Zeroed memory for the packed weights: the allocator's, or without one of the caller's the system's. */
kiln_status_t kiln_packed_allocate(const kiln_model_t *model, char **packed, kiln_packed_t *kind, kiln_error_t *error);
/* Whether calls may change packed weights where they lie, in the host's memory. */
bool kiln_packed_is_written(const kiln_model_t *model);
/* null is fine. */
void kiln_packed_release(const kiln_model_t *model, char *packed, kiln_packed_t kind);
/* Packed weights take the place of those that the model had; on a device a copy of them does. */
kiln_status_t kiln_packed_replace(kiln_model_t *model, char *packed, kiln_packed_t kind, kiln_error_t *error);

/* counter.c */

/* Elements of an input of a call with these extents, computed from its name and a seed. */
void kiln_counter_fill(const kiln_argument_t *argument, const int64_t *extents, uint64_t seed, void *to,
                       uint64_t count);
/* Binds weights that are computed from their names. */
kiln_status_t kiln_bind_counter(kiln_model_t *model, kiln_error_t *error);

/* trace.c */

/* A traced call. */
typedef struct kiln_tracing_t {
  const kiln_trace_t *trace;
  kiln_event_t event; /* of the kernel that runs */
  /* Waits for the kernels that worker 0 has launched; null: they are done when they return. */
  void (*wait)(kiln_worker_t *worker);
  kiln_worker_t *worker;
} kiln_tracing_t;
/* Of an entry; null if the call is not traced, else *tracing. */
kiln_tracing_t *kiln_trace_call(kiln_tracing_t *tracing, const kiln_call_t *call, const kiln_entry_t *entry);
/* Around a task of the kernel that runs. */
void kiln_trace_begin_task(const kiln_tracing_t *tracing, kiln_event_t *event, int64_t task, uint32_t worker);
void kiln_trace_end_task(const kiln_tracing_t *tracing, const kiln_event_t *event);

#include "sharding.h"

/* run.c */

/* The value of an extent, and the elements of an argument, with the extents of a call. */
int64_t kiln_extent_value(const kiln_extent_t *extent, const int64_t *extents);
int64_t kiln_argument_elements(const kiln_argument_t *argument, const int64_t *extents);
/* Runs the body of an entry: its result as a status. */
kiln_status_t kiln_body_run(const kiln_model_t *model, uint32_t entry, const kiln_frame_t *frame, kiln_error_t *error);

#ifdef __cplusplus
}
#endif
#endif /* KILN_INTERNAL_H */
