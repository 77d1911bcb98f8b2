// SPDX-License-Identifier: Apache-2.0
//
// write_headers FOLDER: writes the headers of the model "wide", whose views and argument structs views.cpp uses.
// write_headers FILE FOLDER: writes headers and bindings of models that have each name of FILE as an input, an output,
// a dimension, an entry and the model's own name, as far as the generator accepts it. It prints "refused KIND NAME" for
// each name that it rejects, and "wrote STEM" for the files of each model.
#include "compiler/library/Bindings.h"
#include "compiler/library/Headers.h"
#include "compiler/library/Names.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <set>

namespace kiln {
namespace {

/// Returns a dynamic dimension with the name, truncated to the capacity of a symbol.
Dim dimOf(const std::string &name) {
  Dim dim("n", 1, 8);
  std::fill(std::begin(dim.symbols[0].name), std::end(dim.symbols[0].name), '\0');
  name.copy(dim.symbols[0].name, Symbol::capacity - 1);
  return dim;
}

void addArgument(EntryInterface &entry, const std::string &name, const Dim &extent, bool isOutput) {
  entry.arguments.push_back({name, ElementType::f32, {extent}, isOutput, {}});
}

/// Writes the model's headers and bindings. Returns an empty string, or the error in the model's names.
std::string write(const ModelInterface &model, const std::string &folder) {
  if (std::string wrong = checkModelName(model.name); !wrong.empty())
    return wrong;
  if (llvm::Error wrong = checkNames(model, {}))
    return llvm::toString(std::move(wrong));
  std::ofstream(folder + "/" + model.name + ".h") << writeCHeader(model, {});
  std::ofstream(folder + "/" + model.name + ".hpp") << writeCxxHeader(model, {});
  for (const std::string &language : bindingLanguages()) {
    const Binding binding = writeBinding(language, model, "lib" + model.name + ".so");
    std::ofstream(folder + "/" + binding.file) << binding.text;
  }
  fmt::print("wrote {}\n", model.name);
  return "";
}

EntryInterface plainEntry(const std::string &name) {
  EntryInterface entry;
  entry.name = name;
  const Dim extent = dimOf("n");
  entry.symbols = {extent.symbols[0]};
  addArgument(entry, "x", extent, false);
  addArgument(entry, "y", extent, true);
  return entry;
}

/// Adds an entry whose tensors and dimensions have these names, and its batched entry.
void addEntries(ModelInterface &model, const std::vector<std::string> &names, const std::vector<std::string> &extents) {
  EntryInterface entry, batch;
  entry.name = fmt::format("e{}", model.entries.size());
  batch.name = entry.name + "_batch";
  batch.single = entry.name;
  const Dim sequences = dimOf("sequences"), rows = dimOf("rows");
  batch.symbols = {sequences.symbols[0], rows.symbols[0]};
  std::set<std::string> macros; // which dimensions that differ only in case would share
  std::vector<Dim> own;
  for (const std::string &name : extents)
    if (const Dim extent = dimOf(name); macros.insert(macroName(extent.symbols[0].name)).second) {
      entry.symbols.push_back(extent.symbols[0]);
      own.push_back(extent);
    }
  for (size_t i = 0; i < names.size(); ++i) {
    addArgument(entry, names[i], own[i % own.size()], i % 2 == 1);
    addArgument(batch, names[i], rows, i % 2 == 1);
  }
  batch.ownRows = own.front().symbols[0].name;
  batch.ownSymbols = entry.symbols;
  model.entries.push_back(std::move(entry));
  model.entries.push_back(std::move(batch));
}

/// narrow: x [n] -> y [n, 2], also for several sequences; fixed: x [4] -> y [2, 3]; many: a .. g, y [n], z [2, 3].
int writeWide(const std::string &folder) {
  const Dim n("n", 1, 8), rows("rows", 1, 16), sequences("sequences", 1, 4);
  auto add = [](EntryInterface &entry, const char *name, std::vector<Dim> shape, bool isOutput) {
    entry.arguments.push_back({name, ElementType::f32, std::move(shape), isOutput, {}});
  };
  ModelInterface model;
  model.name = "wide";
  EntryInterface narrow, fixed, many, batch;
  narrow.name = "narrow";
  narrow.symbols = batch.ownSymbols = many.symbols = {n.symbols[0]};
  add(narrow, "x", {n}, false);
  add(narrow, "y", {n, 2}, true);
  fixed.name = "fixed";
  add(fixed, "x", {4}, false);
  add(fixed, "y", {2, 3}, true);
  many.name = "many";
  for (const char *name : {"a", "b", "c", "d", "e", "f", "g"})
    add(many, name, {n}, false);
  add(many, "y", {n}, true);
  add(many, "z", {2, 3}, true);
  batch.name = "narrow_batch";
  batch.single = "narrow";
  batch.symbols = {sequences.symbols[0], rows.symbols[0]};
  batch.ownRows = "n";
  add(batch, "x", {rows}, false);
  add(batch, "y", {rows, 2}, true);
  model.entries = {narrow, fixed, many, batch};
  return write(model, folder).empty() ? 0 : 1;
}

/// Writes a model whose names conflict only with others of the model: tensors that are named as its functions, types
/// and macros, and as the parameters of extents; with few tensors, and with a struct of many.
std::string writeConflicts(const std::string &folder) {
  ModelInterface model;
  model.name = "mine";
  const std::vector<std::string> names = {"n",           "n_extent",  "mine_forward", "mine_t",       "mine_create",
                                          "mine_cross",  "m_extent",  "mine_weights", "MINE_WEIGHTS", "mine_many_with",
                                          "mine_handle", "the_mine_t"};
  EntryInterface forward, cross, many;
  forward.name = "forward"; // output n_extent and input mine_forward next to dimension n
  forward.symbols = {dimOf("n").symbols[0]};
  addArgument(forward, "mine_forward", dimOf("n"), false);
  addArgument(forward, "n_extent", dimOf("n"), true);
  cross.name = "cross"; // also input n
  cross.symbols = {dimOf("n").symbols[0], dimOf("m").symbols[0]};
  addArgument(cross, "n", dimOf("n"), false);
  addArgument(cross, "m", dimOf("m"), false);
  addArgument(cross, "n_extent", dimOf("m"), true);
  many.name = "many";
  many.symbols = cross.symbols;
  for (size_t i = 0; i < names.size(); ++i)
    addArgument(many, names[i], dimOf(i % 3 ? "n" : "m"), i % 2 == 1);
  EntryInterface train = plainEntry("train"); // its loss has an input "step", as an optimiser does
  for (const char *name : {"step", "learning_rate", "step", "learning_rate"})
    addArgument(train, name, dimOf("n"), false);
  addArgument(train, "grad fc.weight", dimOf("n"), true);
  model.entries = {forward, cross, many, train};
  return write(model, folder);
}

int run(const std::string &file, const std::string &folder) {
  std::vector<std::string> names;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    names.push_back(line);
  ModelInterface parameters;
  parameters.name = "every_parameter";
  if (std::string wrong = writeConflicts(folder); !wrong.empty()) {
    fmt::print("refused conflicts all: {}\n", wrong);
    return 1;
  }
  std::vector<std::vector<std::string>> chunks;
  for (size_t i = 0; i < names.size(); i += 23)
    chunks.emplace_back(names.begin() + i, names.begin() + std::min(i + 23, names.size()));
  for (size_t i = 0; i < chunks.size(); ++i)
    addEntries(parameters, chunks[i], chunks[(i + 1) % chunks.size()]);
  if (std::string wrong = write(parameters, folder); !wrong.empty()) {
    fmt::print("refused parameters all: {}\n", wrong);
    return 1;
  }
  for (size_t i = 0; i < names.size();) {
    ModelInterface entries;
    for (entries.name = fmt::format("every_entry{}", i); i < names.size() && entries.entries.size() < 60; ++i) {
      entries.entries.push_back(plainEntry(names[i]));
      if (llvm::Error wrong = checkNames(entries, {})) {
        fmt::print("refused entry {}: {}\n", names[i], llvm::toString(std::move(wrong)));
        entries.entries.pop_back();
      }
    }
    if (!write(entries, folder).empty())
      return 1;
  }
  for (const std::string &name : names) {
    ModelInterface model;
    model.name = name;
    model.entries.push_back(plainEntry("forward"));
    if (std::string wrong = write(model, folder); !wrong.empty())
      fmt::print("refused model {}: {}\n", name, wrong);
  }
  return 0;
}

} // namespace
} // namespace kiln

int main(int count, char **arguments) {
  return count == 3 ? kiln::run(arguments[1], arguments[2]) : count == 2 ? kiln::writeWide(arguments[1]) : 2;
}
