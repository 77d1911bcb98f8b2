// SPDX-License-Identifier: Apache-2.0
//
// Modules: parses the text to programs, and allocates variables.
#include "Module.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "Decoder.h"
#include "Fault.h"

namespace kiln::ptx {

struct Module::Contents {
  syntax::Module syntax;
  std::vector<Entry> entries;
  std::map<std::string, Program, std::less<>> programs;
};

namespace {

Entry entryOf(const syntax::Function &function, const ModuleLayout &layout) {
  Entry entry;
  entry.name = function.name;
  entry.staticShared = layout.staticShared;
  entry.maxThreads = function.maxThreads;
  entry.exactThreads = function.exactThreads;
  entry.cluster = function.cluster;
  for (const syntax::Variable &parameter : function.parameters) {
    const std::uint32_t at =
        (entry.parameterBytes + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
    entry.parameters.push_back({parameter.name, at, static_cast<std::uint32_t>(parameter.size), parameter.alignment});
    entry.parameterBytes = at + static_cast<std::uint32_t>(parameter.size);
  }
  return entry;
}

} // namespace

std::optional<Module> Module::parse(std::string_view text, std::string &error) {
  auto contents = std::make_shared<Contents>();
  try {
    contents->syntax = syntax::parseModule(text);
    const ModuleLayout layout = layoutOf(contents->syntax);
    for (const std::string &name : contents->syntax.order) {
      const syntax::Function &function = contents->syntax.functions.find(name)->second;
      if (!function.entry)
        continue;
      contents->entries.push_back(entryOf(function, layout));
      contents->programs.emplace(name, Decoder(contents->syntax, layout).run(function));
    }
  } catch (const SyntaxFault &fault) {
    error = fmt::format("line {}: {}", fault.line, fault.what());
    return std::nullopt;
  }
  Module module;
  module.contents = std::move(contents);
  return module;
}

const std::vector<Entry> &Module::entries() const { return contents->entries; }
const std::string &Module::target() const { return contents->syntax.target; }

const Entry *Module::find(std::string_view name) const {
  for (const Entry &entry : contents->entries)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

LoadedModule::LoadedModule(const Module &module, Memory &memory) : parsed(module) {
  for (const syntax::Variable &variable : parsed.contents->syntax.variables) {
    if (variable.space == Space::shared || variable.external)
      continue;
    const std::uint64_t at = memory.allocate(variable.size, variable.alignment);
    std::vector<std::byte> initial = variable.initial;
    initial.resize(variable.size); // as in C, the rest is zero
    memory.copyIn(at, initial);
    addresses[variable.name] = at;
  }
  for (const auto &[name, program] : parsed.contents->programs) {
    std::vector<std::byte> &rows = constants[name];
    rows.resize(program.constantBytes);
    std::size_t at = 0;
    for (const Constant &constant : program.constants) {
      std::uint64_t bits = constant.bits;
      if (!constant.variable.empty())
        bits += addresses.at(constant.variable);
      const unsigned width = std::max(constant.width / 8, 2U);
      for (unsigned lane = 0; lane < warpSize; ++lane)
        std::memcpy(rows.data() + at + lane * width, &bits, width);
      at += std::max(constant.width / 8, 4U) * warpSize;
    }
  }
}

std::optional<std::uint64_t> LoadedModule::address(std::string_view variable) const {
  const auto found = addresses.find(variable);
  return found == addresses.end() ? std::nullopt : std::optional(found->second);
}

std::optional<LoadedModule::Runnable> LoadedModule::runnable(std::string_view entry) const {
  const auto found = parsed.contents->programs.find(entry);
  if (found == parsed.contents->programs.end())
    return std::nullopt;
  return Runnable{&found->second, constants.find(entry)->second.data()};
}

} // namespace kiln::ptx
