// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/Headers.h"

#include "compiler/emit/Names.h"
#include "compiler/emit/RuntimeImage.h"
#include "compiler/emit/Version.h"
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
      "/* Bytes of the arena that a call with this many workers needs; 1 for a null executor, and on a GPU. */\n"
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
  return "/* X(name, type, copies, offset, stride, shape...) for each tensor of the latter, as of a state. */\n" +
         stateTable(model.moments, macro + "_MOMENTS");
}

static std::string trainingConstants(const ModelInterface &model) {
  if (!model.keepsMoments())
    return "";
  const std::string macro = macroName(model.name);
  return fmt::format(
             "/* Bytes at the beginning of an arena of entries that train: the model's states, if it has any, then\n"
             " * what the optimiser keeps from one step to the next. {2}_begin_training, or zeros, begin, before step "
             "1. "
             "*/\n"
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
      "/* Bytes at the beginning of an arena that keep the model's states from one call to the next. Each arena is a\n"
      " * session: {2}_begin_session or zeros begin it, and a copy of them in another arena goes on as this one "
      "would.\n"
      " */\n"
      "#define {0}_STATE_BYTES ((size_t){1})\n",
      macro, model.stateBytes, model.name);
  if (model.stateBytesPerRow > 0)
    text += fmt::format("/* Of these, what a row more takes in all states that rows are appended to. */\n"
                        "#define {0}_STATE_BYTES_PER_ROW ((size_t){1})\n",
                        macro, model.stateBytesPerRow);
  text += "/* X(name, type, copies, offset, stride, shape...) for each state: copy c lies offset + c * stride bytes\n"
          " * after the beginning of the arena.";
  for (const StateInterface &state : model.states)
    if (state.room > 0)
      text += fmt::format("\n * The rows of {} begin after as many others as the int64_t at byte {} of a copy says.",
                          commentText(state.name), state.positionOffset());
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

/// Returns the tensors as parameters or struct members, with `before` and `behind` around each.
static std::string tensorsText(const EntryInterface &entry, const ParameterNames &names, const char *before,
                               const char *behind) {
  std::string text;
  for (auto [i, argument] : llvm::enumerate(entry.arguments))
    text += fmt::format("{}{}{} *{}{}", before, argument.isOutput ? "" : "const ", info(argument.element).c_type,
                        names.argument(i), behind);
  return text;
}

/// Returns a struct of the arguments of an entry that has many, and the prototype of the function that takes it.
static std::string argumentStruct(const ModelInterface &model, const EntryInterface &entry,
                                  const ParameterNames &names) {
  if (!hasArgumentStruct(entry))
    return "";
  const std::string type = fmt::format("{}_{}_arguments_t", model.name, entry.name);
  std::string text = fmt::format("/* The arguments of {0}_{1} by name: {0}_{1}_with(model, &call, &(const {2}){{.{3} = "
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
    return fmt::format(" *   keeps at the beginning of the arena, between calls: {}what the optimiser keeps; "
                       "{}_begin_training begins\n",
                       text.empty() ? "" : text + ", ", model.name);
  if (text.empty())
    return model.states.empty() ? ""
                                : " *   uses no states, and leaves those at the beginning of the arena as they are\n";
  return fmt::format(" *   states at the beginning of the arena: {}; kept between calls, {}_begin_session begins\n",
                     text, model.name);
}

static std::string entryPrototype(const ModelInterface &model, const EntryInterface &entry, bool hasDevice) {
  const ParameterNames names(model, entry);
  std::string text = fmt::format("/* Runs entry \"{}\".\n", entry.name) +
                     extentWords(entry.symbols, names, ": extent") + argumentWords(entry, names) +
                     stateWords(model, entry);
  bool isChecked = llvm::any_of(entry.arguments, [](const ArgumentInterface &argument) { return argument.check; });
  if (hasDevice && isChecked)
    text += " * With KILN_DEVICE_POINTERS values are not checked: those outside count as the nearest within.\n";
  if (entry.changesWeights)
    text +=
        " * Changes the model's weights, which no other call may read meanwhile. KILN_NOT_FINITE: loss, gradients or\n"
        " * learning rate are not all finite, or step is below 1; nothing is changed then.\n";
  text += " * Tensors are dense and row major. Outputs must not overlap inputs or the arena. Never allocates";
  text +=
      hasDevice ? ",\n * but that a GPU's driver may in a first call: see KILN_LOAD_KERNELS_AT_CREATE. */\n" : ". */\n";
  text += fmt::format("kiln_status_t {0}_{1}(const {0}_t *model, const kiln_call_t *call", model.name, entry.name);
  for (const Symbol &symbol : entry.symbols)
    text += fmt::format(",\n    int64_t {}", names.extent(symbol));
  text += tensorsText(entry, names, ",\n    ", "");
  return text + ");\n\n" + argumentStruct(model, entry, names);
}

static std::string batchPrototype(const ModelInterface &model, const EntryInterface &entry) {
  const ParameterNames names(model, entry);
  std::string text = fmt::format("/* Runs entry \"{}\" for several sequences, 1 .. {}, each with its own states and "
                                 "extents: what calls of the entry\n"
                                 " * alone would do, and give, for each. Along the first axis of a tensor the rows of "
                                 "the sequences lie one behind\n"
                                 " * another.",
                                 entry.single, entry.symbols.front().max);
  if (!entry.ownRows.empty())
    text += fmt::format(" All have at most {} rows together.", entry.symbols.back().max);
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
  std::string text =
      fmt::format("/* X(name, type, copies, shape...) for each tensor of the weight file; \"{{}}\" in a name\n"
                  " * stands for 0 .. copies - 1. In the file f32 may be f16 or bf16. */\n#define {}_WEIGHTS(X)",
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
      " * Create a model, bind its weights once, then call its entry points with an arena and, if wanted, an\n"
      " * executor. Link with the archive beside this header, and libc and libm; nothing else. */\n",
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
      "/* The version of Kiln that wrote this library. Of several, KILN_VERSION is that of the first one "
      "included. */\n";
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
  text += fmt::format("/* Bytes of the packed copy of the weights, at most. */\n#define {}_WEIGHT_BYTES ((size_t){})\n",
                      macro, packed);
  text += fmt::format("/* Instruction sets in the archive; the best one that the CPU has is used. */\n"
                      "#define {}_ISAS \"{}\"\n#define {}_ARENA_ALIGNMENT KILN_ARENA_ALIGNMENT\n",
                      macro, isas, macro);
  return text +
         fmt::format("/* Changes with the measurements that the kernels' schedules rest on; \"none\": nothing is "
                     "tuned, all\n * schedules are analytic defaults, and `kiln tune` measures others. */\n"
                     "#define {}_TUNING_DIGEST \"{}\"\n",
                     macro, tuningDigest(variants));
}

/// Returns prototypes of functions that return the values of the macros, for callers that cannot read macros.
static std::string constantPrototypes(const ModelInterface &model) {
  const std::string &name = model.name;
  std::string text = "/* What the macros say, for programs that load the library, and those in other languages. */\n";
  for (const EntryInterface &entry : model.entries)
    text += fmt::format("size_t {}_{}{}(uint32_t workers);\n", name, entry.name, arenaBytesSuffix);
  text += fmt::format("/* 0 for a model without states. */\nsize_t {}_state_bytes(void);\n", name);
  if (model.trains())
    text += fmt::format("size_t {}_training_bytes(void);\n", name);
  return text +
         fmt::format(
             "/* Of the Kiln that wrote the library, such as \"0.1.0\". */\nconst char *{0}_version(void);\n"
             "/* KILN_ABI_VERSION of the library: whoever writes its structs in another language compares it. */\n"
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

/* Makes a model without weights. allocator null: the C library's, and pages of the system for the
 * weights. It is copied; what it points to must outlive the model. */
kiln_status_t {0}_create(const kiln_allocator_t *allocator, {0}_t **model, kiln_error_t *error);

/* The same with a choice of what runs the model: create takes the first target of the archive that works here. */
kiln_status_t {0}_create_on(const kiln_options_t *options, {0}_t **model, kiln_error_t *error);
kiln_device_t {0}_device(const {0}_t *model);
/* The target that was taken, one of those above; "" for null. */
const char *{0}_target(const {0}_t *model);

/* Checks the whole safetensors file against the weight table, then packs every weight once. A path that ends with
 * ".json" is the index of a checkpoint of several files, which lie beside it (model.safetensors.index.json). A model
 * whose weights are bound may be used by several threads at once. On failure the model is as before. */
kiln_status_t {0}_bind_weights({0}_t *model, const char *path, kiln_error_t *error);
kiln_status_t {0}_bind_weights_from_memory({0}_t *model, const void *image, size_t bytes, kiln_error_t *error);
/* The same of a file whose tensors have other names: `count` renames call them as the weight table does, and each must
 * fit one of them. Files must stay as they are until these functions return; those that others may cut meanwhile are
 * for a model with KILN_COPY_FILES. */
kiln_status_t {0}_bind_weights_renamed({0}_t *model, const char *path, const kiln_rename_t *renames, size_t count,
                                       kiln_error_t *error);

/* The same of quantised checkpoints, whose tensors `count` renames call as the weight table does. bind_gguf takes a GGUF
 * file of F32, F16, BF16, Q8_0, Q4_0, Q4_K and Q6_K. bind_quantized takes a safetensors file, or the index of several, where
 * NAME.weight is made of NAME.qweight, NAME.qzeros, NAME.scales and perhaps NAME.g_idx, of 4 bits. Weights that are stored
 * as int4 of the file's groups keep the file's bits; all others are made of its numbers. */
kiln_status_t {0}_bind_gguf({0}_t *model, const char *path, const kiln_rename_t *renames, size_t count,
                            kiln_error_t *error);
kiln_status_t {0}_bind_quantized({0}_t *model, const char *path, kiln_quantization_t quantization,
                                 const kiln_rename_t *renames, size_t count, kiln_error_t *error);

/* Packed files: the bound weights as they lie in memory, for one target of this library. `kiln pack` writes them, too.
 * bind_packed maps the file and copies nothing, but to a GPU: it is done at once, and processes share pages. The file
 * must stay as it is while the model lives: if it is cut, the system ends the process (SIGBUS) when a call needs what
 * is gone, unless the model was made with KILN_COPY_FILES. save_packed puts a new one in the place of one that is in use.
 * KILN_FILE_MISMATCH: the file is of another library, target or version. On failure the model is as before. */
kiln_status_t {0}_bind_packed({0}_t *model, const char *path, kiln_error_t *error);
kiln_status_t {0}_save_packed(const {0}_t *model, const char *path, kiln_error_t *error);

/* Writes the bound weights as a safetensors file, of the types of the weight table: what bind_weights reads. It takes
 * the place of what is there only when it is whole. Symbolic links are followed, the mode is kept, and what is no
 * regular file is KILN_FILE_ERROR; so do all functions that save. */
kiln_status_t {0}_save_weights(const {0}_t *model, const char *path, kiln_error_t *error);

/* Rows of a bound weight, along its first dimension, dense and of the type of the weight table; a weight of rank 0 is one
 * row, and a name has the layer's number for "{{}}". Only a variable can be written, while no other call uses the model. */
kiln_status_t {0}_read_weight(const {0}_t *model, const char *weight, uint64_t row, uint64_t rows, void *values,
                              kiln_error_t *error);
kiln_status_t {0}_write_weight({0}_t *model, const char *weight, uint64_t row, uint64_t rows, const void *values,
                               kiln_error_t *error);

void {0}_destroy({0}_t *model);

/* Memory where the model's arenas lie: of its GPU, or the host's by its allocator; aligned as an arena must be. Copies and
 * zeros are there when the call returns. On a GPU they wait for calls with a null stream, and for no other stream. */
kiln_status_t {0}_allocate_memory(const {0}_t *model, size_t bytes, void **memory, kiln_error_t *error);
void {0}_release_memory(const {0}_t *model, void *memory);
kiln_status_t {0}_copy_to_memory(const {0}_t *model, void *to, const void *from_host, size_t bytes, kiln_error_t *error);
kiln_status_t {0}_copy_from_memory(const {0}_t *model, void *to_host, const void *from, size_t bytes,
                                   kiln_error_t *error);
kiln_status_t {0}_copy_memory(const {0}_t *model, void *to, const void *from, size_t bytes, kiln_error_t *error);
kiln_status_t {0}_zero_memory(const {0}_t *model, void *memory, size_t bytes, kiln_error_t *error);

/* One sentence saying what the status means and what the caller should do; never null. */
const char *{0}_status_text(kiln_status_t status);

/* The bundled thread pool: threads workers in all, the caller's thread being one of them, so threads - 1 are started. Its
 * executor serves any model, and lives as long as the pool. */
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
        R"(/* Begins a session in an arena, or in the states of a sequence, whatever is there: the model's states become zeros. All
 * that calls read of an arena is its first {1}_STATE_BYTES: they are kept from one call of the session to the next, and
 * a copy of them is a second session. What comes after them need not be kept. On a CPU an arena in which nothing was begun,
 * neither by this nor by zeros, is KILN_SESSION_NOT_BEGUN. */
kiln_status_t {0}_begin_session(const {0}_t *model, void *arena, kiln_error_t *error);

)",
        model.name, macroName(model.name));
  if (model.keepsMoments())
    text += fmt::format(
        R"(/* Begins a training in an arena, before step 1: its first {1}_TRAINING_BYTES become zeros, and are kept from one step to
 * the next. An entry that does not train overwrites them. A step in an arena in which none was begun, neither by this
 * nor by zeros, is KILN_SESSION_NOT_BEGUN. */
kiln_status_t {0}_begin_training(const {0}_t *model, void *arena, kiln_error_t *error);

)",
        model.name, macroName(model.name));
  return text;
}

/// Returns the prototype for archives that embed the weights.
static std::string embeddedPrototype(const std::string &name) {
  return fmt::format(
      R"(/* Binds the weights that lie in the archive, where they are: no file, no copy and no allocation, but for variables,
 * which are written to, and for a GPU. */
kiln_status_t {0}_bind_embedded({0}_t *model, kiln_error_t *error);

)",
      name);
}

/// Returns the prototype for archives with a self-test.
static std::string selfTestPrototype(const std::string &name) {
  return fmt::format(
      R"(/* Makes a model of its own, with weights that are computed, calls each entry for a few extents with one worker, and compares
 * the results with those that the compiler evaluated in f64; embedded weights are compared with what was embedded.
 * KILN_SELFTEST_FAILED: the library was compiled wrong, or changed or damaged since; the message says what differs. Takes
 * the memory of a model and of its largest arena from the allocator, and gives it back. options null: as of create. */
kiln_status_t {0}_selftest(const kiln_options_t *options, kiln_error_t *error);

)",
      name);
}

/// Returns the prototypes of models that train.
static std::string trainingPrototypes(const std::string &name) {
  return fmt::format(
      R"(/* Binds first weights for a training that begins from nothing: those of torch.nn's layers, linear ones and convolutions
 * uniform, embeddings normal, norms ones and zeros. They follow from the seed and each weight's name alone, so they are the
 * same to the bit on every machine, and for every number of ranks. What the optimiser keeps is zeros then, in the arena. */
kiln_status_t {0}_initialise_weights({0}_t *model, uint64_t seed, kiln_error_t *error);
/* Writes all that a training goes on from as a safetensors file: the weights that are trained, what is at the beginning of
 * the arena, the step that was made last, and the seed. It takes the place of what is there only when it is whole, so that
 * a program may be killed at any time. load_training takes it from there: steps that follow give the same bits as without,
 * whatever the number of threads. Weights that are frozen are not in the file: bind them before, or it is
 * KILN_WEIGHTS_NOT_BOUND. On failure model, arena and training are as before. */
kiln_status_t {0}_save_training(const {0}_t *model, const void *arena, const kiln_training_t *training, const char *path,
                                kiln_error_t *error);
kiln_status_t {0}_load_training({0}_t *model, void *arena, kiln_training_t *training, const char *path,
                                kiln_error_t *error);
/* Exchanges the weights with their moving averages, which lie in the arena of a training that is `averaged`: a second
 * call gives them back. */
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
                R"(/* Where a process has a part of the weights save_weights is KILN_INVALID_ARGUMENT. Here all ranks and stages write
 * together one file, that of the whole model, which a library for any number of them reads: each calls it, with its call's
 * communicators. Rank 0 of stage 0 has the path; what is there is replaced only by a file that is whole. All return the
 * same status, but where one is lost. */
kiln_status_t {0}_save_weights_together(const {0}_t *model, const kiln_call_t *call, const char *path);
)",
                model.name);
  if (model.trains())
    text += fmt::format(
        R"(/* All processes write together the training that each has a part of, in its call's arena: what load_training of a
 * library for any number of ranks, replicas and stages reads. */
kiln_status_t {0}_save_training_together(const {0}_t *model, const kiln_call_t *call, const kiln_training_t *training,
                                         const char *path);
)",
        model.name);
  return text + "\n";
}

/// Returns the prototypes of models that may run on a GPU.
static std::string devicePrototypes(const std::string &name) {
  return fmt::format(R"(/* On a CPU the following do nothing.
 *
 * cuda_image gives the model's kernels as the driver has assembled them, for the caller to keep, in a file for example.
 * It assembles those that no call needed yet, for the calls to come as well, and the others again. The image is the
 * model's until it is destroyed. Null: the model has loaded one that fits, and there is nothing new to keep.
 *
 * load_cuda_image takes an image that was kept, before the first call: all kernels are loaded and none is assembled, and
 * what KILN_LOAD_KERNELS_AT_CREATE does is done. KILN_INVALID_ARGUMENT: it is not whole, or of other kernels, another GPU
 * or driver; the model works without it. An image is code that the GPU runs: keep it where you would keep a program. */
kiln_status_t {0}_cuda_image(const {0}_t *model, const void **image, size_t *bytes, kiln_error_t *error);
kiln_status_t {0}_load_cuda_image({0}_t *model, const void *image, size_t bytes, kiln_error_t *error);
/* How long the driver has assembled kernels of the model so far; 0 on a CPU. */
double {0}_cuda_assembly_seconds(const {0}_t *model);

/* Before the first call: from now on calls record themselves. The first with given extents, arena, stream and tensors
 * becomes a CUDA graph, and those after it launch that. KILN_MAX_CAPTURED_CALLS are kept. */
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
