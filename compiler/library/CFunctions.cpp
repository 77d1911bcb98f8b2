// SPDX-License-Identifier: Apache-2.0
//
// Writes the prototypes of NAME.h for the functions that models have whatever their entries: to create a model, bind
// and save its weights, begin sessions and trainings, and use a device.
#include "compiler/library/CText.h"

#include <fmt/format.h>

namespace kiln {

/// Returns the prototypes that every model has.
static std::string modelPrototypes(const std::string &name) {
  return fmt::format(R"(
#ifdef __cplusplus
extern "C" {{
#endif

typedef struct {0}_t {0}_t;

/* Creates a model without weights. A null allocator stands for the C library's, and for pages of the system for the
 * weights. The struct is copied; what it points to must outlive the model. */
kiln_status_t {0}_create(const kiln_allocator_t *allocator, {0}_t **model, kiln_error_t *error);

/* Creates a model with options, such as a device. create uses the first target of the archive that works here. */
kiln_status_t {0}_create_on(const kiln_options_t *options, {0}_t **model, kiln_error_t *error);
/* Returns the kind of device that runs the model; KILN_ANY_DEVICE for a null model. */
kiln_device_t {0}_device(const {0}_t *model);
/* Returns the target that is used, one of the instruction sets listed above; "" for a null model. */
const char *{0}_target(const {0}_t *model);

/* Checks the whole safetensors file against the weight table, then packs every weight once. A path that ends with
 * ".json" is the index of a checkpoint of several files in the same folder (model.safetensors.index.json). Several
 * threads may use a model at once after its weights are bound. On failure the model is unchanged. */
kiln_status_t {0}_bind_weights({0}_t *model, const char *path, kiln_error_t *error);
kiln_status_t {0}_bind_weights_from_memory({0}_t *model, const void *image, size_t bytes, kiln_error_t *error);
/* Binds a file whose tensors have other names: `count` renames map them to the names of the weight table, and each must
 * match a tensor unless it is KILN_RENAME_OPTIONAL. Files must not change until these functions return. If another
 * program may truncate a file meanwhile, create the model with KILN_COPY_FILES. */
kiln_status_t {0}_bind_weights_renamed({0}_t *model, const char *path, const kiln_rename_t *renames, size_t count,
                                       kiln_error_t *error);

/* Both functions bind a quantised checkpoint, with renames as above. bind_gguf reads a GGUF file of F32, F16, BF16,
 * Q8_0, Q4_0, Q4_K and Q6_K. bind_quantized reads a safetensors file of 4-bit weights, or the index of several, in
 * which NAME.qweight, NAME.qzeros, NAME.scales and optionally NAME.g_idx represent NAME.weight; or, for KILN_FP8, one
 * whose NAME.weight of F8_E4M3 has scales in NAME.weight_scale or NAME.weight_scale_inv; or, for KILN_MXFP4, one in
 * which NAME_blocks and NAME_scales represent NAME; or, for KILN_NVFP4, one whose NAME.weight of U8 has scales in
 * NAME.weight_scale and NAME.weight_scale_2. Weights that the library stores in the file's format keep the file's
 * numbers and scales; all others are converted from dequantised values. */
kiln_status_t {0}_bind_gguf({0}_t *model, const char *path, const kiln_rename_t *renames, size_t count,
                            kiln_error_t *error);
kiln_status_t {0}_bind_quantized({0}_t *model, const char *path, kiln_quantization_t quantization,
                                 const kiln_rename_t *renames, size_t count, kiln_error_t *error);

/* A packed file contains the bound weights in their memory layout, for one target of this library. `kiln pack` writes
 * such files, too. bind_packed maps the file and copies nothing, except to a GPU: it returns at once, and processes
 * share pages. The file must not change while the model exists: if it is truncated, the system ends the process
 * (SIGBUS) when a call reads a missing page, unless the model was created with KILN_COPY_FILES. save_packed replaces a
 * file that is in use by a new one. KILN_FILE_MISMATCH means that the file is for another library, target or version.
 * On failure the model is unchanged. */
kiln_status_t {0}_bind_packed({0}_t *model, const char *path, kiln_error_t *error);
kiln_status_t {0}_save_packed(const {0}_t *model, const char *path, kiln_error_t *error);

/* Writes the bound weights as a safetensors file with the types of the weight table, as bind_weights reads it. An
 * existing file is replaced only when the new one is complete. Symbolic links are followed, and the file mode is kept.
 * If the path is not a regular file, the status is KILN_FILE_ERROR. All functions that save files do the same. */
kiln_status_t {0}_save_weights(const {0}_t *model, const char *path, kiln_error_t *error);

/* Both functions copy rows of a bound weight along its first dimension, dense and with the type of the weight table. A
 * weight of rank 0 has one row. In the name, the layer's number replaces "{{}}". Only a variable can be written, and
 * only while no other call uses the model. */
kiln_status_t {0}_read_weight(const {0}_t *model, const char *weight, uint64_t row, uint64_t rows, void *values,
                              kiln_error_t *error);
kiln_status_t {0}_write_weight({0}_t *model, const char *weight, uint64_t row, uint64_t rows, const void *values,
                               kiln_error_t *error);

/* Releases the model and its weights. No call may use it any more; null is allowed. */
void {0}_destroy({0}_t *model);

/* These functions manage memory for the model's arenas: on its GPU, or on the host from its allocator, with the
 * alignment of an arena. Copies and zeroing are complete when the function returns. On a GPU they wait for calls with a
 * null stream, and for no other stream. */
kiln_status_t {0}_allocate_memory(const {0}_t *model, size_t bytes, void **memory, kiln_error_t *error);
void {0}_release_memory(const {0}_t *model, void *memory);
kiln_status_t {0}_copy_to_memory(const {0}_t *model, void *to, const void *from_host, size_t bytes, kiln_error_t *error);
kiln_status_t {0}_copy_from_memory(const {0}_t *model, void *to_host, const void *from, size_t bytes,
                                   kiln_error_t *error);
kiln_status_t {0}_copy_memory(const {0}_t *model, void *to, const void *from, size_t bytes, kiln_error_t *error);
kiln_status_t {0}_zero_memory(const {0}_t *model, void *memory, size_t bytes, kiln_error_t *error);

/* Returns one sentence that says what the status means and what the caller should do; never null. */
const char *{0}_status_text(kiln_status_t status);

/* The bundled thread pool has `threads` workers. The caller's thread is one of them, so threads - 1 are started. The
 * executor of a pool serves any model, and is valid as long as the pool. */
kiln_status_t {0}_pool_create(uint32_t threads, kiln_pool_t **pool, kiln_error_t *error);
const kiln_executor_t *{0}_pool_executor(const kiln_pool_t *pool);
void {0}_pool_destroy(kiln_pool_t *pool);

)",
                     name);
}

/// Returns the prototypes of models with states, and of models with optimiser state.
static std::string sessionPrototypes(const ModelInterface &model) {
  std::string text;
  if (!model.states.empty())
    text += fmt::format(
        R"(/* Begins a session in an arena, or in the states of a sequence, whatever its content: the model's states
 * become zeros. Calls read only the first {1}_STATE_BYTES of an arena, which must be kept from one call of the session
 * to the next; a copy of them is a second session. The rest of the arena need not be kept. On a CPU, a call with an
 * arena that neither this function nor zeros initialised returns KILN_SESSION_NOT_BEGUN. */
kiln_status_t {0}_begin_session(const {0}_t *model, void *arena, kiln_error_t *error);

)",
        model.name, macroName(model.name));
  if (model.hasOptimizerState())
    text += fmt::format(
        R"(/* Begins a training in an arena, before step 1: the first {1}_TRAINING_BYTES become zeros, and must be kept
 * from one step to the next. An entry that does not train overwrites them. A step with an arena that neither this
 * function nor zeros initialised returns KILN_SESSION_NOT_BEGUN. */
kiln_status_t {0}_begin_training(const {0}_t *model, void *arena, kiln_error_t *error);

)",
        model.name, macroName(model.name));
  return text;
}

/// Returns the prototype for archives that embed the weights.
static std::string embeddedPrototype(const std::string &name) {
  return fmt::format(
      R"(/* Binds the weights that are embedded in the archive. This reads no file, and neither copies nor
 * allocates, except for variables, which can be written, and for a GPU. */
kiln_status_t {0}_bind_embedded({0}_t *model, kiln_error_t *error);

)",
      name);
}

/// Returns the prototype for archives with a self-test.
static std::string selfTestPrototype(const std::string &name) {
  return fmt::format(
      R"(/* Creates a separate model with computed weights, calls each entry for a few extents with one worker, and
 * compares the results with those that the compiler evaluated in f64. Embedded weights are compared with those that
 * were embedded. KILN_SELFTEST_FAILED means that the library was miscompiled, or was changed or damaged later; the
 * message says what differs. The memory of a model and of its largest arena is allocated and released. Null options are
 * those of create. */
kiln_status_t {0}_selftest(const kiln_options_t *options, kiln_error_t *error);

)",
      name);
}

/// Returns the prototypes of models that train.
static std::string trainingPrototypes(const std::string &name) {
  return fmt::format(
      R"(/* Binds initial weights for a training from scratch, distributed as in torch.nn: uniform for linear layers and
 * convolutions, normal for embeddings, ones and zeros for norms. They depend only on the seed and each weight's name,
 * so they are bitwise equal on every machine and for every number of ranks. The optimiser state in the arena must be
 * zeros. */
kiln_status_t {0}_initialise_weights({0}_t *model, uint64_t seed, kiln_error_t *error);
/* Writes everything that resuming a training needs as a safetensors file: the trained weights, the beginning of the
 * arena, the last completed step, and the seed. An existing file is replaced only when the new one is complete, so the
 * program may be killed at any time. load_training reads the file: the following steps give the same bits as without
 * the interruption, whatever the number of threads. Frozen weights are not in the file: bind them first, else the
 * status is KILN_WEIGHTS_NOT_BOUND. On failure the model, the arena and the training are unchanged. */
kiln_status_t {0}_save_training(const {0}_t *model, const void *arena, const kiln_training_t *training, const char *path,
                                kiln_error_t *error);
kiln_status_t {0}_load_training({0}_t *model, void *arena, kiln_training_t *training, const char *path,
                                kiln_error_t *error);
/* Exchanges the weights with their moving averages, which are in the arena of a training that is `averaged`. A second
 * call restores them. */
kiln_status_t {0}_swap_average({0}_t *model, void *arena, kiln_error_t *error);

)",
      name);
}

/// Returns the prototypes of libraries in which each of several processes has a part of the model.
static std::string ranksPrototypes(const ModelInterface &model, const ParallelLayout &layout) {
  std::string text =
      !layout.dividesWeights()
          ? ""
          : fmt::format(
                R"(/* In a process that has a part of the weights, save_weights returns KILN_INVALID_ARGUMENT. With this
 * function all ranks and stages together write one file of the whole model, which a library for any number of them
 * reads. Each of them calls it, with its call's communicators; only rank 0 of stage 0 needs the path. An existing
 * file is replaced only when the new one is complete. All return the same status, unless a rank is lost. */
kiln_status_t {0}_save_weights_together(const {0}_t *model, const kiln_call_t *call, const char *path);
)",
                model.name);
  if (model.trains())
    text += fmt::format(
        R"(/* All processes together write the training, of which each has a part in its call's arena. load_training of
 * a library for any number of ranks, replicas and stages reads the file. */
kiln_status_t {0}_save_training_together(const {0}_t *model, const kiln_call_t *call, const kiln_training_t *training,
                                         const char *path);
)",
        model.name);
  return text + "\n";
}

/// Returns the prototypes of models that may run on a GPU.
static std::string devicePrototypes(const std::string &name) {
  return fmt::format(R"(/* On a CPU the following functions do nothing.
 *
 * cuda_image returns the model's kernels as the driver has assembled them, so that the caller can store them, for
 * example in a file. It assembles the kernels that no call needed yet, which later calls then use, and the others
 * again. The model owns the image until it is destroyed. A null image means that the model has loaded one that fits:
 * there is nothing new.
 *
 * load_cuda_image loads a stored image before the first call: all kernels are loaded and none is assembled, and the
 * work of KILN_LOAD_KERNELS_AT_CREATE is done. KILN_INVALID_ARGUMENT means that the image is incomplete, or is for
 * other kernels, another GPU or another driver; the model works without it. An image is code that the GPU runs: store
 * it where you would store a program. */
kiln_status_t {0}_cuda_image(const {0}_t *model, const void **image, size_t *bytes, kiln_error_t *error);
kiln_status_t {0}_load_cuda_image({0}_t *model, const void *image, size_t bytes, kiln_error_t *error);
/* Returns how long the driver has assembled kernels of the model so far; 0 on a CPU. */
double {0}_cuda_assembly_seconds(const {0}_t *model);

/* From now on, calls record themselves; use this before the first call. The first call with given extents, arena,
 * stream and tensors becomes a CUDA graph, which later ones launch. The model keeps KILN_MAX_CAPTURED_CALLS graphs. */
kiln_status_t {0}_capture_entries({0}_t *model, kiln_error_t *error);

)",
                     name);
}

std::string modelFunctions(const ModelInterface &model, const std::vector<Variant> &variants) {
  std::string text = modelPrototypes(model.name) + sessionPrototypes(model);
  if (model.embedsWeights)
    text += embeddedPrototype(model.name);
  if (model.hasSelfTest)
    text += selfTestPrototype(model.name);
  if (model.trains())
    text += trainingPrototypes(model.name);
  if (model.parallel && model.parallel->dividesModel())
    text += ranksPrototypes(model, *model.parallel);
  if (hasDevice(variants))
    text += devicePrototypes(model.name);
  return text;
}

} // namespace kiln
