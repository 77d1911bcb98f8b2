// SPDX-License-Identifier: Apache-2.0
//
// A PTX module: parsed once, loaded into a device memory, its entries launched (Launch.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "Memory.h"

namespace kiln::ptx {

struct Program;
namespace syntax {
struct Module;
}

struct Parameter {
  std::string name;
  std::uint32_t offset, size, alignment; ///< bytes
};

struct Entry {
  std::string name;
  std::vector<Parameter> parameters;
  std::uint32_t parameterBytes = 0;
  std::uint32_t staticShared = 0;       ///< bytes
  std::array<unsigned, 3> maxThreads{}; ///< 0: unspecified
  bool exactThreads = false;
  std::array<unsigned, 3> cluster{}; ///< 0: unspecified
};

class Module {
public:
  /// Decodes every function: an unsupported instruction is an error here. `error` has the line and the message.
  static std::optional<Module> parse(std::string_view text, std::string &error);

  const std::vector<Entry> &entries() const;
  /// Returns null if there is no such entry.
  const Entry *find(std::string_view name) const;
  const std::string &target() const;

private:
  friend class LoadedModule;
  struct Contents;
  std::shared_ptr<const Contents> contents;
};

/// The module's variables in a device memory.
class LoadedModule {
public:
  LoadedModule(const Module &module, Memory &memory);

  const Module &module() const { return parsed; }
  /// Returns the address of a variable in global or constant memory.
  std::optional<std::uint64_t> address(std::string_view variable) const;

  /// For launch(): the program of an entry and its constants.
  struct Runnable {
    const Program *program;
    const std::byte *constants;
  };
  std::optional<Runnable> runnable(std::string_view entry) const;

private:
  Module parsed;
  std::map<std::string, std::uint64_t, std::less<>> addresses;
  std::map<std::string, std::vector<std::byte>, std::less<>> constants; ///< of each entry
};

} // namespace kiln::ptx
