// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/Names.h"

#include "kiln/names.h"

#include <fmt/format.h>

namespace kiln {

std::string checkModelName(const std::string &name) {
  if (!detail::is_identifier(name.c_str()))
    return fmt::format("a model's name must be an identifier in C and C++, since it begins every symbol; got \"{}\"",
                       name);
  for (const char *reserved : {"kiln", "halide", "std"})
    if (name == reserved)
      return fmt::format("a model's name must not be \"{}\", which its headers use", name);
  return "";
}

/// Says what is wrong with the name of a parameter of a generated function, or nothing.
static std::string checkParameterName(const std::string &name) {
  if (!detail::is_identifier(name.c_str()))
    return fmt::format("an extent's name must be an identifier in C and C++; got \"{}\"", name);
  for (const char *taken : {"model", "call", "handle"})
    if (name == taken)
      return fmt::format(
          "an extent, input or output must not be named \"{}\": the generated functions have that parameter", name);
  return "";
}

static llvm::Error wrongName(const std::string &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

static llvm::Error checkParameterNames(const EntryInterface &entry) {
  std::vector<std::string> names;
  for (const ArgumentInterface &argument : entry.arguments)
    names.push_back(argument.name);
  for (const Symbol &symbol : entry.symbols)
    names.push_back(symbol.name);
  for (const std::string &name : names)
    if (std::string wrong = checkParameterName(name); !wrong.empty())
      return wrongName(wrong);
  return llvm::Error::success();
}

/// No entry may have the name of a function that the compiler writes.
static llvm::Error checkWrittenNames(const ModelInterface &model) {
  for (const EntryInterface &entry : model.entries) {
    for (const char *taken : {"state_bytes", "training_bytes", "version", "abi_version"})
      if (entry.name == taken)
        return wrongName(fmt::format("an entry must not be named \"{0}\": {1}_{0} is a function of every library",
                                     entry.name, model.name));
    for (const EntryInterface &other : model.entries)
      if (entry.name == other.name + arenaBytesSuffix)
        return wrongName(
            fmt::format("an entry must not be named \"{0}\": {1}_{0} says how many bytes the arena of entry "
                        "\"{2}\" has",
                        entry.name, model.name, other.name));
  }
  return llvm::Error::success();
}

llvm::Error checkNames(const ModelInterface &model, llvm::ArrayRef<ObjectFile> runtime) {
  for (const EntryInterface &entry : model.entries)
    if (llvm::Error wrong = checkParameterNames(entry))
      return wrong;
  if (llvm::Error wrong = checkWrittenNames(model))
    return wrong;
  for (const ObjectFile &member : runtime) {
    llvm::Expected<std::vector<ObjectSymbol>> symbols = globalSymbols(member.bytes);
    if (!symbols)
      return symbols.takeError();
    for (const EntryInterface &entry : model.entries)
      for (const ObjectSymbol &symbol : *symbols)
        if (symbol.name == (runtimePrefix + entry.name).str())
          return wrongName(fmt::format("an entry must not be named \"{}\": {}_{} is a function of the run time",
                                       entry.name, model.name, entry.name));
  }
  return llvm::Error::success();
}

} // namespace kiln
