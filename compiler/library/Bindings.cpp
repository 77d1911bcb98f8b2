// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/Bindings.h"

#include "llvm/ADT/STLExtras.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {

std::vector<std::string> bindingLanguages() { return {"python", "rust"}; }

Binding writeBinding(const std::string &language, const ModelInterface &model, const std::string &library) {
  if (language == "python")
    return {model.name + ".py", writePython(model, library)};
  return {model.name + ".rs", writeRust(model)};
}

int64_t ownRowsIndex(const EntryInterface &entry) {
  for (size_t i = 0; i < entry.ownSymbols.size(); ++i)
    if (!entry.ownRows.empty() && entry.ownSymbols[i].name == entry.ownRows)
      return static_cast<int64_t>(i);
  return -1;
}

std::string describeArgument(const ArgumentInterface &argument) {
  std::vector<std::string> shape;
  for (const Dim &dim : argument.shape)
    shape.push_back(toString(dim));
  return fmt::format("{}: {} [{}]", argument.name, name_of(argument.element), fmt::join(shape, ", "));
}

std::string nameIn(const std::string &name, llvm::ArrayRef<llvm::StringRef> words) {
  return llvm::is_contained(words, name) ? name + "_" : name;
}

std::string extentName(const EntryInterface &entry, const Symbol &symbol) {
  const auto isArgument = [&](const std::string &name) {
    return llvm::any_of(entry.arguments, [&](const ArgumentInterface &argument) { return argument.name == name; });
  };
  std::string name = symbol.name;
  if (isArgument(name))
    name += "_extent";
  while (isArgument(name))
    name += '_';
  return name;
}

} // namespace kiln
