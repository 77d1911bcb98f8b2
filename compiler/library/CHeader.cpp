// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/CText.h"

#include "compiler/library/CustomFunctions.h"
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

std::string shapeText(const std::vector<Dim> &shape, const ParameterNames &names) {
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
      "#define {}_ARENA_BYTES(workers) (KILN_SIZE_T({}) + KILN_SIZE_T({}) * KILN_SIZE_T(workers))\n",
      prefix, arena.fixed, arena.perWorker);
  return text;
}

/// Returns an X macro with a line X(name, type, copies, offset, stride, shape...) for each state.
static std::string stateTable(const std::vector<StateInterface> &states, const std::string &name) {
  std::string text = fmt::format("#define {}(X)", name);
  for (const StateInterface &state : nameStates(states))
    text += fmt::format(" \\\n  X({}, {}, {}, {}, {}, {})", stringText(state.name), name_of(state.element),
                        state.copies, state.offset, state.stride, fmt::join(state.shape, ", "));
  return text + "\n";
}

/// Returns the X macro of the optimiser state. Pipeline stages have different ones, so models with several stages get
/// none.
static std::string optimizerStateTable(const ModelInterface &model, const std::string &macro) {
  return "/* X(name, type, copies, offset, stride, shape...) for each tensor of the optimiser state: copy c begins\n"
         " * offset + c * stride bytes after the beginning of the arena. */\n" +
         stateTable(model.optimizerStates, macro + "_OPTIMIZER_STATES");
}

static std::string trainingConstants(const ModelInterface &model) {
  if (!model.hasOptimizerState())
    return "";
  const std::string macro = macroName(model.name);
  return fmt::format(
             "/* Bytes at the beginning of an arena of entries that train: the model's states, if it has any, then\n"
             " * the optimiser state. They must be kept from one step to the next. {2}_begin_training, or zeros,\n"
             " * initialise them before step 1. */\n"
             "#define {0}_TRAINING_BYTES KILN_SIZE_T({1})\n",
             macro, model.trainingBytes, model.name) +
         (model.parallel && model.parallel->stages > 1 ? "" : optimizerStateTable(model, macro));
}

/// Returns a name of the spec for use in a comment. The name must not end the comment, nor seem to begin one.
static std::string commentText(std::string name) {
  for (const char *mark : {"*/", "/*"})
    for (size_t at = 0; (at = name.find(mark, at)) != std::string::npos;)
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
      "#define {0}_STATE_BYTES KILN_SIZE_T({1})\n",
      macro, model.stateBytes, model.name);
  if (model.stateBytesPerRow > 0)
    text += fmt::format("/* The part of these bytes that each row takes in the states that rows are appended to. */\n"
                        "#define {0}_STATE_BYTES_PER_ROW KILN_SIZE_T({1})\n",
                        macro, model.stateBytesPerRow);
  text += "/* X(name, type, copies, offset, stride, shape...) for each state: copy c begins offset + c * stride bytes\n"
          " * after the beginning of the arena.";
  for (const StateInterface &state : model.states)
    if (state.room > 0)
      text += fmt::format("\n * The int64_t at byte {} of a copy of {} is the index of the first valid row.",
                          state.positionOffset(), commentText(written_name(state.name)));
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
  return text + fmt::format("}} {2};\n\nKILN_INLINE kiln_status_t {0}_{1}_with(const {0}_t *model, const kiln_call_t "
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
  if (entry.changesWeights && model.hasOptimizerState())
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
  for (const WeightInterface &weight : fileWeights(model)) {
    text += fmt::format(" \\\n  X({}, {}, {}", stringText(weight.name), name_of(weight.element), weight.copies);
    for (int64_t extent : weight.shape)
      text += fmt::format(", {}", extent);
    text += ")";
  }
  return text + "\n";
}

/// Returns the beginning of the header: the runtime's types, which must be those that the archive was compiled for.
static std::string beginning(const ModelInterface &model) {
  std::string text = fmt::format(
      "/* SPDX-License-Identifier: {1} */\n"
      "/* {0}.h: written by Kiln {2}; do not edit. C89 with <stdint.h>, C++11, or later.\n"
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
  text += fmt::format("/* The largest size of the packed weights on any target, in bytes. */\n#define {}_WEIGHT_BYTES "
                      "KILN_SIZE_T({})\n",
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

std::string writeCHeader(const ModelInterface &model, const std::vector<Variant> &variants) {
  std::string text = beginning(model) + modelConstants(model, variants) + stateConstants(model);
  for (size_t i = 0; i < model.entries.size(); ++i)
    text += entryConstants(model, variants, i);
  text +=
      "\n" + weightTable(model) + modelFunctions(model, variants) + constantPrototypes(model) + customPrototypes(model);
  for (const EntryInterface &entry : model.entries)
    text += entry.isBatch() ? batchPrototype(model, entry) : entryPrototype(model, entry, hasDevice(variants));
  return text + fmt::format("#ifdef __cplusplus\n}}\n#endif\n#endif /* {}_H */\n", macroName(model.name));
}

} // namespace kiln
