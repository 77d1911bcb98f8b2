// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/Headers.h"

#include "compiler/library/Names.h"
#include "compiler/library/RuntimeImage.h"
#include "compiler/library/Version.h"
#include "kiln/runtime.h"

#include "llvm/ADT/STLExtras.h"
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {

std::string macroName(const std::string &name) {
  std::string upper;
  for (char c : name)
    upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

static std::string shapeText(const std::vector<Dim> &shape, const ParameterNames &names) {
  std::string text = "[";
  for (const Dim &dim : shape)
    text += (text.size() > 1 ? ", " : "") + names.expression(dim);
  return text + "]";
}

/// Returns a name of the spec as a C string literal. Trigraphs are escaped, because strict modes replace them.
static std::string stringText(std::string name) {
  for (size_t at = 0; (at = name.find("??", at)) != std::string::npos; at += 2)
    name.insert(at + 1, "\\");
  return "\"" + name + "\"";
}

static std::string entryConstants(const ModelInterface &model, const std::vector<Variant> &variants, size_t index) {
  const EntryInterface &entry = model.entries[index];
  std::string prefix = macroName(model.name) + "_" + macroName(entry.name);
  std::string text;
  for (const Symbol &symbol : entry.symbols)
    text += fmt::format("#define {0}_{1}_MIN {2}\n#define {0}_{1}_MAX {3}\n", prefix, macroName(symbol.name),
                        symbol.min, symbol.max);
  ArenaBytes arena = arenaBytes(variants, index);
  text += fmt::format(
      "/* The arena size in bytes for a call with this many workers; a null executor and a GPU count as 1. */\n"
      "#define {}_ARENA_BYTES(workers) ((size_t){} + (size_t){} * (size_t)(workers))\n",
      prefix, arena.fixed, arena.perWorker);
  return text;
}

/// Returns an X macro with a line X(name, type, copies, offset, stride, shape...) for each state.
static std::string stateTable(const std::vector<StateInterface> &states, const std::string &name) {
  std::string text = fmt::format("#define {}(X)", name);
  for (const StateInterface &state : states)
    text += fmt::format(" \\\n  X({}, {}, {}, {}, {}, {})", stringText(state.name), name_of(state.element),
                        state.copies, state.offsets[0], state.stride, fmt::join(state.ownShape(), ", "));
  return text + "\n";
}

/// Returns the X macro of the optimiser state. Pipeline stages have different ones, so models with several stages get
/// none.
static std::string momentTable(const ModelInterface &model, const std::string &macro) {
  return "/* X(name, type, copies, offset, stride, shape...) for each tensor of the optimiser state: copy c begins\n"
         " * offset + c * stride bytes after the beginning of the arena. */\n" +
         stateTable(model.moments, macro + "_MOMENTS");
}

static std::string trainingConstants(const ModelInterface &model) {
  if (!model.keepsMoments())
    return "";
  const std::string macro = macroName(model.name);
  return fmt::format(
             "/* Bytes at the beginning of an arena of entries that train: the model's states, if it has any, then\n"
             " * the optimiser state. They must be kept from one step to the next. {2}_begin_training, or zeros,\n"
             " * initialise them before step 1. */\n"
             "#define {0}_TRAINING_BYTES ((size_t){1})\n",
             macro, model.trainingBytes, model.name) +
         (model.stages > 1 ? "" : momentTable(model, macro));
}

/// Returns a name of the spec for use in a comment. The name must not end the comment.
static std::string commentText(std::string name) {
  for (size_t at = 0; (at = name.find("*/", at)) != std::string::npos;)
    name.insert(at + 1, " ");
  return name;
}

static std::string stateConstants(const ModelInterface &model) {
  if (model.states.empty())
    return trainingConstants(model);
  std::string macro = macroName(model.name);
  std::string text = fmt::format(
      "/* Bytes at the beginning of an arena that hold the model's states between calls. Each arena is a session:\n"
      " * {2}_begin_session, or zeros, initialise it, and a copy of these bytes in another arena continues it. */\n"
      "#define {0}_STATE_BYTES ((size_t){1})\n",
      macro, model.stateBytes, model.name);
  if (model.stateBytesPerRow > 0)
    text += fmt::format("/* The part of these bytes that each row takes in the states that rows are appended to. */\n"
                        "#define {0}_STATE_BYTES_PER_ROW ((size_t){1})\n",
                        macro, model.stateBytesPerRow);
  text += "/* X(name, type, copies, offset, stride, shape...) for each state: copy c begins offset + c * stride bytes\n"
          " * after the beginning of the arena.";
  for (const StateInterface &state : model.states)
    if (state.room > 0)
      text += fmt::format("\n * The int64_t at byte {} of a copy of {} is the index of the first valid row.",
                          state.positionOffset(), commentText(state.name));
  text += " */\n";
  return text + stateTable(model.states, macro + "_STATES") + trainingConstants(model);
}

/// Returns the least value of an extent as text: a number, or the name of another extent.
static std::string leastName(const std::vector<Symbol> &symbols, const Symbol &symbol, const ParameterNames &names) {
  const Symbol *least = findLeast(symbols, symbol);
  return least ? names.extent(*least) : std::to_string(symbol.min);
}

/// Returns "tokens", or "linux_ (linux)" where the header's parameter name differs from the model's name.
static std::string nameWords(const std::string &parameter, const std::string &name) {
  return parameter == name ? name : fmt::format("{} ({})", parameter, commentText(name));
}

static std::string extentWords(const std::vector<Symbol> &symbols, const ParameterNames &names, const char *what) {
  std::string text;
  for (const Symbol &symbol : symbols)
    text += fmt::format(" * {}{}{}, {} .. {}\n", *what ? "  " : "    ", nameWords(names.extent(symbol), symbol.name),
                        what, leastName(symbols, symbol, names), symbol.max);
  return text;
}

static std::string argumentWords(const EntryInterface &entry, const ParameterNames &names) {
  std::string text;
  for (auto [i, argument] : llvm::enumerate(entry.arguments)) {
    text += fmt::format(" *   {}: {} {} {}", nameWords(names.argument(i), argument.name),
                        argument.isOutput ? "output" : "input", name_of(argument.element),
                        shapeText(argument.shape, names));
    if (argument.check && !entry.isBatch())
      text += fmt::format(", values {} .. {} - 1", argument.check->minimum, names.expression(argument.check->limit));
    text += "\n";
  }
  return text;
}

/// Returns the tensors as parameters or struct members, with `before` and `after` around each.
static std::string tensorsText(const EntryInterface &entry, const ParameterNames &names, const char *before,
                               const char *after) {
  std::string text;
  for (auto [i, argument] : llvm::enumerate(entry.arguments))
    text += fmt::format("{}{}{} *{}{}", before, argument.isOutput ? "" : "const ", info(argument.element).c_type,
                        names.argument(i), after);
  return text;
}

/// Returns a struct of the arguments of an entry that has many, and the prototype of the function that takes it.
static std::string argumentStruct(const ModelInterface &model, const EntryInterface &entry,
                                  const ParameterNames &names) {
  if (!hasArgumentStruct(entry))
    return "";
  const std::string type = fmt::format("{}_{}_arguments_t", model.name, entry.name);
  std::string text =
      fmt::format("/* Holds the arguments of {0}_{1} by name: {0}_{1}_with(model, &call, &(const {2}){{.{3} = "
                  "..., ...}}). */\ntypedef struct {2} {{\n",
                  model.name, entry.name, type, names.argument(0));
  std::string values;
  if (entry.isBatch()) {
    text += "  size_t count;\n  const kiln_sequence_t *sequences;\n";
    values = ", arguments->count, arguments->sequences";
  } else {
    for (const Symbol &symbol : entry.symbols) {
      text += fmt::format("  int64_t {};\n", names.extent(symbol));
      values += fmt::format(",\n      arguments->{}", names.extent(symbol));
    }
  }
  for (size_t i = 0; i < entry.arguments.size(); ++i)
    values += fmt::format(",\n      arguments->{}", names.argument(i));
  text += tensorsText(entry, names, "  ", ";\n");
  return text + fmt::format("}} {2};\n\nstatic inline kiln_status_t {0}_{1}_with(const {0}_t *model, const kiln_call_t "
                            "*call,\n    const {2} *arguments) {{\n  return {0}_{1}(model, call{3});\n}}\n\n",
                            model.name, entry.name, type, values);
}

/// Returns the comment lines about the states that an entry keeps at the beginning of its arena.
static std::string stateWords(const ModelInterface &model, const EntryInterface &entry) {
  std::string text;
  for (const std::string &state : entry.states)
    text += (text.empty() ? "" : ", ") + commentText(state);
  if (entry.isBatch())
    return text.empty() ? "" : fmt::format(" *   states of each sequence: {}; kept between calls\n", text);
  if (entry.changesWeights && model.keepsMoments())
    return fmt::format(" *   state at the beginning of the arena: {}the optimiser state; kept between calls, "
                       "{}_begin_training initialises it\n",
                       text.empty() ? "" : text + ", ", model.name);
  if (text.empty())
    return model.states.empty() ? "" : " *   uses no states, and does not change those at the beginning of the arena\n";
  return fmt::format(
      " *   states at the beginning of the arena: {}; kept between calls, {}_begin_session initialises them\n", text,
      model.name);
}

static std::string entryPrototype(const ModelInterface &model, const EntryInterface &entry, bool hasDevice) {
  const ParameterNames names(model, entry);
  std::string text = fmt::format("/* Runs entry \"{}\".\n", entry.name) +
                     extentWords(entry.symbols, names, ": extent") + argumentWords(entry, names) +
                     stateWords(model, entry);
  bool isChecked = llvm::any_of(entry.arguments, [](const ArgumentInterface &argument) { return argument.check; });
  if (hasDevice && isChecked)
    text += " * With KILN_DEVICE_POINTERS, values are not checked but clamped to their range.\n";
  if (entry.changesWeights)
    text +=
        " * Changes the model's weights: no other call may read them at the same time. Returns KILN_NOT_FINITE and\n"
        " * changes nothing if the loss, a gradient or the learning rate is not finite, or if step is below 1.\n";
  text += " * Tensors are dense and row major. Outputs must not overlap inputs or the arena. A call never allocates";
  text += hasDevice
              ? ",\n * except that a GPU's driver may allocate in first calls: see KILN_LOAD_KERNELS_AT_CREATE. */\n"
              : ". */\n";
  text += fmt::format("kiln_status_t {0}_{1}(const {0}_t *model, const kiln_call_t *call", model.name, entry.name);
  for (const Symbol &symbol : entry.symbols)
    text += fmt::format(",\n    int64_t {}", names.extent(symbol));
  text += tensorsText(entry, names, ",\n    ", "");
  return text + ");\n\n" + argumentStruct(model, entry, names);
}

static std::string batchPrototype(const ModelInterface &model, const EntryInterface &entry) {
  const ParameterNames names(model, entry);
  std::string text = fmt::format("/* Runs entry \"{}\" for 1 .. {} sequences, each with its own states and extents. "
                                 "The results are those of a separate\n"
                                 " * call of the entry for each sequence. The rows of the sequences follow each other "
                                 "along the first axis of a tensor.",
                                 entry.single, entry.symbols.front().max);
  if (!entry.ownRows.empty())
    text += fmt::format("\n * All sequences have at most {} rows in total.", entry.symbols.back().max);
  text +=
      fmt::format(" The arena has no states.\n *   sequences[i].extents:{}\n", entry.ownSymbols.empty() ? " null" : "");
  text += extentWords(entry.ownSymbols, names, "") + argumentWords(entry, names) + stateWords(model, entry);
  text += fmt::format(" */\nkiln_status_t {0}_{1}(const {0}_t *model, const kiln_call_t *call,\n"
                      "    size_t count, const kiln_sequence_t *sequences",
                      model.name, entry.name);
  text += tensorsText(entry, names, ",\n    ", "");
  return text + ");\n\n" + argumentStruct(model, entry, names);
}

/// Returns the weight table as an X macro, which costs nothing unless it is used.
static std::string weightTable(const ModelInterface &model) {
  std::string macro = macroName(model.name);
  std::string text = fmt::format(
      "/* X(name, type, copies, shape...) for each tensor of the weight file; \"{{}}\" in a name\n"
      " * stands for 0 .. copies - 1. A tensor of f32 may be f16 or bf16 in the file. */\n#define {}_WEIGHTS(X)",
      macro);
  for (const WeightInterface &weight : model.weights) {
    text += fmt::format(" \\\n  X({}, {}, {}", stringText(weight.name), name_of(weight.element), weight.fileCopies());
    for (int64_t extent : weight.fileShape())
      text += fmt::format(", {}", extent);
    text += ")";
  }
  return text + "\n";
}

/// Returns the beginning of the header: the runtime's types, which must be those that the archive was compiled for.
static std::string beginning(const ModelInterface &model) {
  std::string text = fmt::format(
      "/* SPDX-License-Identifier: {1} */\n"
      "/* {0}.h: written by Kiln {2}; do not edit. C11 and C++.\n"
      " *\n"
      " * Create a model, bind its weights once, then call its entry points with an arena and, optionally, an\n"
      " * executor. Link with the archive next to this header, libc and libm; nothing else is needed. */\n",
      model.name, licenseOfLibraries, versionText());
  text += runtimeHeader();
  return text + fmt::format("\n#ifndef {0}_H\n#define {0}_H\n\n#if KILN_ABI_VERSION != {2}\n"
                            "#error \"{1}.h was written for version {2} of Kiln's binary interface\"\n#endif\n\n",
                            macroName(model.name), model.name, KILN_ABI_VERSION);
}

/// Returns macros with the version of the compiler as text and numbers: under the model's name, and under KILN_ from
/// the first of several headers that is included.
static std::string versionConstants(const std::string &macro) {
  std::string text =
      "/* The version of Kiln that wrote this library. If a file includes several libraries' headers, KILN_VERSION "
      "is\n * that of the first one. */\n";
  const auto [major, minor, patch] = version();
  const auto add = [&](const std::string &prefix) {
    text += fmt::format("#define {0} \"{1}\"\n#define {0}_MAJOR {2}\n#define {0}_MINOR {3}\n#define {0}_PATCH {4}\n",
                        prefix, versionText(), major, minor, patch);
  };
  add(macro + "_KILN_VERSION");
  text += "#ifndef KILN_VERSION\n";
  add("KILN_VERSION");
  return text + "#endif\n";
}

static std::string modelConstants(const ModelInterface &model, const std::vector<Variant> &variants) {
  std::string macro = macroName(model.name);
  std::string text = versionConstants(macro);
  text += fmt::format("#define {}_PARAMETERS INT64_C({})\n", macro, model.parameters);
  uint64_t packed = 0;
  std::string isas;
  for (const Variant &variant : variants) {
    packed = std::max(packed, variant.packedBytes);
    isas += (isas.empty() ? "" : " ") + variant.target;
  }
  text += fmt::format(
      "/* The largest size of the packed weights on any target, in bytes. */\n#define {}_WEIGHT_BYTES ((size_t){})\n",
      macro, packed);
  text += fmt::format("/* The instruction sets in the archive. A model uses the best one that the CPU supports. */\n"
                      "#define {}_ISAS \"{}\"\n#define {}_ARENA_ALIGNMENT KILN_ARENA_ALIGNMENT\n",
                      macro, isas, macro);
  return text +
         fmt::format("/* A digest of the measurements by which the kernels' schedules were chosen. \"none\" means "
                     "that no kernel\n * is tuned: all schedules are analytic defaults, and `kiln tune` measures "
                     "others. */\n"
                     "#define {}_TUNING_DIGEST \"{}\"\n",
                     macro, tuningDigest(variants));
}

/// Returns prototypes of functions that return the values of the macros, for callers that cannot read macros.
static std::string constantPrototypes(const ModelInterface &model) {
  const std::string &name = model.name;
  std::string text =
      "/* The values of the macros, for programs that load the library at run time or use another language. */\n";
  for (const EntryInterface &entry : model.entries)
    text += fmt::format("size_t {}_{}{}(uint32_t workers);\n", name, entry.name, arenaBytesSuffix);
  text += fmt::format("/* Returns 0 for a model without states. */\nsize_t {}_state_bytes(void);\n", name);
  if (model.trains())
    text += fmt::format("size_t {}_training_bytes(void);\n", name);
  return text +
         fmt::format(
             "/* Returns the version of Kiln that wrote the library, such as \"0.1.0\". */\n"
             "const char *{0}_version(void);\n"
             "/* Returns the library's KILN_ABI_VERSION. Code that declares the structs in another language must check "
             "it. */\n"
             "uint32_t {0}_abi_version(void);\n\n",
             name);
}

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
kiln_device_t {0}_device(const {0}_t *model);
/* Returns the target that is used, one of the instruction sets listed above; "" for a null model. */
const char *{0}_target(const {0}_t *model);

/* Checks the whole safetensors file against the weight table, then packs every weight once. A path that ends with
 * ".json" is the index of a checkpoint of several files in the same folder (model.safetensors.index.json). Several
 * threads may use a model at once after its weights are bound. On failure the model is unchanged. */
kiln_status_t {0}_bind_weights({0}_t *model, const char *path, kiln_error_t *error);
kiln_status_t {0}_bind_weights_from_memory({0}_t *model, const void *image, size_t bytes, kiln_error_t *error);
/* Binds a file whose tensors have other names: `count` renames map them to the names of the weight table, and each must
 * match a tensor. Files must not change until these functions return. If another program may truncate a file meanwhile,
 * create the model with KILN_COPY_FILES. */
kiln_status_t {0}_bind_weights_renamed({0}_t *model, const char *path, const kiln_rename_t *renames, size_t count,
                                       kiln_error_t *error);

/* Both functions bind a quantised checkpoint, with renames as above. bind_gguf reads a GGUF file of F32, F16, BF16,
 * Q8_0, Q4_0, Q4_K and Q6_K. bind_quantized reads a safetensors file of 4-bit weights, or the index of several, in
 * which NAME.qweight, NAME.qzeros, NAME.scales and optionally NAME.g_idx represent NAME.weight. Weights that the
 * library stores as int4 with the file's group size keep the file's bits; all others are converted from dequantised
 * values. */
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
  if (model.keepsMoments())
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
static std::string ranksPrototypes(const ModelInterface &model) {
  std::string text =
      model.ranks == 1 && model.stages == 1
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

std::string writeCHeader(const ModelInterface &model, const std::vector<Variant> &variants) {
  std::string text = beginning(model) + modelConstants(model, variants) + stateConstants(model);
  for (size_t i = 0; i < model.entries.size(); ++i)
    text += entryConstants(model, variants, i);
  text += "\n" + weightTable(model) + modelPrototypes(model.name) + sessionPrototypes(model);
  if (model.embedsWeights)
    text += embeddedPrototype(model.name);
  if (model.hasSelfTest)
    text += selfTestPrototype(model.name);
  if (model.trains())
    text += trainingPrototypes(model.name);
  if (model.hasParts())
    text += ranksPrototypes(model);
  if (hasDevice(variants))
    text += devicePrototypes(model.name);
  text += constantPrototypes(model);
  for (const EntryInterface &entry : model.entries)
    text += entry.isBatch() ? batchPrototype(model, entry) : entryPrototype(model, entry, hasDevice(variants));
  return text + fmt::format("#ifdef __cplusplus\n}}\n#endif\n#endif /* {}_H */\n", macroName(model.name));
}

} // namespace kiln
