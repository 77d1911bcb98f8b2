// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/Names.h"

#include "compiler/library/CustomFunctions.h"
#include "compiler/library/Headers.h"
#include "kiln/names.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include <algorithm>
#include <cctype>
#include <cstring>
#include <fmt/format.h>
#include <set>

namespace kiln {

namespace reserved {
#include "compiler/library/ReservedNames.inc"
} // namespace reserved

template <size_t Count> static bool isIn(const char *const (&sorted)[Count], const std::string &name) {
  return std::binary_search(std::begin(sorted), std::end(sorted), name,
                            [](const std::string &a, const std::string &b) { return a < b; });
}

static bool isKeyword(const std::string &name) { return isIn(reserved::keywords, name); }

static bool beginsWith(const std::string &name, const std::string &prefix) {
  return name.compare(0, prefix.size(), prefix) == 0;
}

static std::string inLowerCase(std::string name) {
  for (char &c : name)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

std::string checkModelName(const std::string &name) {
  if (!detail::is_identifier(name.c_str()))
    return fmt::format(
        "model \"{}\": its name is no identifier in C and C++; expected one, since it begins every symbol", name);
  const std::string small = inLowerCase(name);
  for (const char *reserved : {"kiln", "halide", "std"})
    if (small == reserved)
      return fmt::format("model \"{}\": its name is reserved; expected one that its headers do not use", name);
  if (beginsWith(small, "kiln_") || beginsWith(small, "halide_"))
    return fmt::format("model \"{}\": its name begins as symbols of the run time do; expected one without \"{}\"", name,
                       name.substr(0, name.find('_') + 1));
  const char *taken = isKeyword(name) ? "a keyword of C or C++"
                      : isIn(reserved::objectMacros, name) || isIn(reserved::functionMacros, name)
                          ? "a macro of compilers or standard headers"
                      : isIn(reserved::declarations, name) ? "declared by standard headers"
                                                           : nullptr;
  if (taken)
    return fmt::format("model \"{}\": its name is {}; expected another name, since it becomes a namespace", name,
                       taken);
  if (isIn(reserved::headers, small))
    return fmt::format("model \"{0}\": {0}.h is a header of the system; expected another name", name);
  return "";
}

/// Names that the generated headers use at the scope of parameters and methods: types of C, and of NAME.hpp.
static constexpr const char *headerTypes[] = {"Model",    "Session", "int16_t",  "int32_t",  "int64_t",
                                              "int8_t",   "size_t",  "std",      "uint16_t", "uint32_t",
                                              "uint64_t", "uint8_t", "uintptr_t"};
/// Parameters and variables of the generated functions. A method may have these names.
static constexpr const char *headerVariables[] = {"View",      "arguments",    "call",          "check", "count",
                                                  "handle",    "kiln",         "model",         "rows",  "sequence",
                                                  "sequences", "session_call", "session_model", "status"};

/// Whether the name has a prefix that types and functions of the headers have.
static bool beginsAsOthers(const ModelInterface &model, const std::string &name) {
  return beginsWith(inLowerCase(name), "kiln_") || beginsWith(name, model.name + "_") ||
         beginsWith(name, macroName(model.name) + "_");
}

template <size_t Count> static bool isOneOf(const char *const (&words)[Count], const std::string &name) {
  return llvm::any_of(words, [&](const char *word) { return name == word; });
}

static bool isTakenOfParameters(const std::string &name) {
  return isKeyword(name) || isIn(reserved::objectMacros, name) || isIn(reserved::windowsMacros, name) ||
         isOneOf(headerTypes, name) || isOneOf(headerVariables, name);
}

static bool isTakenOfMethods(const std::string &name) {
  return isKeyword(name) || isIn(reserved::objectMacros, name) || isIn(reserved::functionMacros, name) ||
         isOneOf(headerTypes, name) || name == "handle";
}

std::string asIdentifier(std::string name) {
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)))
      c = '_';
  return name;
}

ParameterNames::ParameterNames(const ModelInterface &model, const EntryInterface &entry) {
  std::set<std::string> used;
  auto choose = [&](std::string name) {
    if (beginsAsOthers(model, name))
      name = "the_" + name;
    while (isTakenOfParameters(name) || !used.insert(name).second)
      name += "_";
    return name;
  };
  for (const ArgumentInterface &argument : entry.arguments)
    arguments.push_back(choose(asIdentifier(argument.name)));
  for (const std::vector<Symbol> *symbols : {&entry.symbols, &entry.ownSymbols})
    for (const Symbol &symbol : *symbols) {
      const bool isArgument = llvm::any_of(
          entry.arguments, [&](const ArgumentInterface &argument) { return argument.name == symbol.name; });
      const std::string name = std::string(symbol.name) + (isArgument ? "_extent" : "");
      if (!extents.count(symbol.name)) // extents of batched entries appear in comments only
        extents[symbol.name] = entry.isBatch() ? name : choose(name);
    }
}

std::string ParameterNames::expression(const Dim &dim) const {
  return toString(dim, [&](const Symbol &symbol) { return extent(symbol); });
}

std::string methodName(const ModelInterface &model, const EntryInterface &entry) {
  std::set<std::string> used;
  for (const EntryInterface &each : model.entries) {
    std::string name = (beginsAsOthers(model, each.name) ? "run_" : "") + each.name;
    while (isTakenOfMethods(name) || !used.insert(name).second)
      name += "_";
    if (&each == &entry)
      return name;
  }
  return entry.name;
}

static llvm::Error wrongName(const std::string &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// Returns the words that follow `before` in a text and begin with `prefix`, as often as they occur.
static std::vector<std::string> wordsAfter(const std::string &text, const std::string &before,
                                           const std::string &prefix) {
  std::vector<std::string> words;
  const std::string start = before + prefix;
  for (size_t at = 0; (at = text.find(start, at)) != std::string::npos;) {
    const size_t begin = at + before.size();
    at = begin;
    while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_'))
      ++at;
    words.push_back(text.substr(begin, at - begin));
  }
  return words;
}

/// Returns the macros that a header of the model defines in addition to those of the runtime's types.
static std::vector<std::string> definedMacros(const ModelInterface &model) {
  return wordsAfter(writeCHeader(model, {}), "#define ", macroName(model.name) + "_");
}

/// Returns what the macros are about that the header has for entries and their dimensions, in its order.
static std::multimap<std::string, std::string> describedMacros(const ModelInterface &model) {
  std::multimap<std::string, std::string> described;
  for (const EntryInterface &entry : model.entries) {
    const std::string prefix = macroName(model.name) + "_" + macroName(entry.name) + "_";
    const std::string words =
        entry.isBatch() ? "the batched form of entry \"" + entry.single + "\"" : "entry \"" + entry.name + "\"";
    described.emplace(prefix + "ARENA_BYTES", "the arena size of " + words);
    for (const Symbol &symbol : entry.symbols)
      for (const char *bound : {"MIN", "MAX"})
        described.emplace(prefix + macroName(symbol.name) + "_" + bound,
                          fmt::format("a bound of dimension \"{}\" of {}", symbol.name, words));
  }
  return described;
}

/// Returns the names that a header declares for any set of entries: functions and a type.
static std::set<std::string> declaredNames(ModelInterface model) {
  model.entries.clear();
  std::set<std::string> names;
  for (const char *before : {" ", "*"})
    for (std::string &name : wordsAfter(writeCHeader(model, {}), before, model.name + "_"))
      names.insert(std::move(name));
  return names;
}

static llvm::Error checkEntryName(const ModelInterface &model, const EntryInterface &entry,
                                  const std::set<std::string> &functions) {
  if (functions.count(entry.name))
    return wrongName(
        fmt::format("entry \"{}\": its name is taken; expected another, since {}_{} is a function of the run time",
                    entry.name, model.name, entry.name));
  if (!detail::is_identifier(("e_" + entry.name).c_str()))
    return wrongName(fmt::format("entry \"{}\": its name is no identifier in C and C++", entry.name));
  return llvm::Error::success();
}

static llvm::Error checkExtentName(const EntryInterface &entry, const Symbol &symbol) {
  if (!detail::is_identifier(("e_" + std::string(symbol.name)).c_str()))
    return wrongName(
        fmt::format("dimension \"{}\": its name is no identifier in C and C++; expected one in entry \"{}\"",
                    symbol.name, entry.name));
  return llvm::Error::success();
}

/// Adds a name that is defined. An error if something else defines the same name.
static llvm::Error define(const ModelInterface &model, std::map<std::string, std::string> &defined,
                          const std::string &name, const std::string &what) {
  if (isIn(reserved::objectMacros, name) || isIn(reserved::functionMacros, name) ||
      isIn(reserved::declarations, name) || isKeyword(name))
    return wrongName(fmt::format("model \"{}\": {}, {}, is a name of the standard headers; expected another name of "
                                 "the model or of the entry",
                                 model.name, what, name));
  const auto [known, isNew] = defined.try_emplace(name, what);
  if (!isNew)
    return wrongName(fmt::format("model \"{}\": {} and {} are both {}; expected names that differ in more than upper "
                                 "and lower case, also with the model's prefix",
                                 model.name, known->second, what, name));
  return llvm::Error::success();
}

static llvm::Error defineMacros(const ModelInterface &model, std::map<std::string, std::string> &defined) {
  std::multimap<std::string, std::string> described = describedMacros(model);
  for (const std::string &macro : definedMacros(model)) {
    const auto known = described.lower_bound(macro); // the first of equal ones
    const bool isKnown = known != described.end() && known->first == macro;
    if (llvm::Error wrong = define(model, defined, macro, isKnown ? known->second : "a macro of " + model.name + ".h"))
      return wrong;
    if (isKnown)
      described.erase(known);
  }
  return llvm::Error::success();
}

/// Checks that no entry has the name of a function that the compiler writes.
static llvm::Error checkWrittenNames(const ModelInterface &model) {
  for (const EntryInterface &entry : model.entries) {
    for (const char *taken : {"state_bytes", "training_bytes", "version", "abi_version"})
      if (entry.name == taken)
        return wrongName(fmt::format(
            "entry \"{0}\": its name is taken; expected another, since {1}_{0} is a function of every library",
            entry.name, model.name));
    for (const EntryInterface &other : model.entries)
      if (entry.name == other.name + arenaBytesSuffix)
        return wrongName(fmt::format(
            "entry \"{0}\": its name is taken; expected another, since {1}_{0} returns the arena size of entry \"{2}\"",
            entry.name, model.name, other.name));
  }
  return llvm::Error::success();
}

llvm::Error checkNames(const ModelInterface &model, llvm::ArrayRef<ObjectFile> runtime) {
  if (llvm::Error wrong = checkWrittenNames(model))
    return wrong;
  std::set<std::string> functions;
  for (const ObjectFile &member : runtime) {
    llvm::Expected<std::vector<ObjectSymbol>> symbols = globalSymbols(member.bytes);
    if (!symbols)
      return symbols.takeError();
    for (const ObjectSymbol &symbol : *symbols)
      if (llvm::StringRef(symbol.name).starts_with(runtimePrefix))
        functions.insert(symbol.name.substr(runtimePrefix.size()));
  }
  std::map<std::string, std::string> defined;
  const std::string prefix = model.name + "_";
  for (const std::string &name : declaredNames(model))
    if (name == prefix + "t" || !functions.count(name.substr(prefix.size())))
      if (llvm::Error wrong = define(model, defined, name, "a type or function of every library"))
        return wrong;
  for (const std::string &function : functions)
    if (llvm::Error wrong = define(model, defined, prefix + function, "a function of the run time"))
      return wrong;
  if (llvm::Error wrong = defineMacros(model, defined))
    return wrong;
  for (const EntryInterface &entry : model.entries) {
    if (llvm::Error wrong = checkEntryName(model, entry, functions))
      return wrong;
    const std::string words = "the function of entry \"" + entry.name + "\"";
    if (llvm::Error wrong = define(model, defined, prefix + entry.name, words))
      return wrong;
    if (hasArgumentStruct(entry))
      for (const char *more : {"_with", "_arguments", "_arguments_t"})
        if (llvm::Error wrong =
                define(model, defined, prefix + entry.name + more, "the arguments of entry \"" + entry.name + "\""))
          return wrong;
    for (const Symbol &symbol : entry.symbols)
      if (llvm::Error wrong = checkExtentName(entry, symbol))
        return wrong;
  }
  for (const CustomInterface &function : model.functions)
    if (llvm::Error wrong = define(model, defined, customSymbol(model.name, function.name),
                                   "the custom function \"" + function.name + "\""))
      return wrong;
  return llvm::Error::success();
}

} // namespace kiln
