// SPDX-License-Identifier: Apache-2.0
//
// A module on a separate device, with upload and download of test data.
#pragma once

#include <cstring>
#include <gtest/gtest.h>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "Launch.h"
#include "Module.h"

namespace kiln::ptx {

/// The bytes of an argument.
struct Argument {
  template <class T> Argument(const T &value) : bytes(sizeof value) { std::memcpy(bytes.data(), &value, sizeof value); }
  std::vector<std::byte> bytes;
};

class Device {
public:
  /// A text without .version gets the header of a module for sm_80 (PTX 7.0).
  explicit Device(std::string_view text) {
    std::string whole(text);
    if (text.find(".version") == std::string_view::npos)
      whole = ".version 7.0\n.target sm_80\n.address_size 64\n" + whole;
    std::string error;
    module = Module::parse(whole, error);
    EXPECT_TRUE(module) << error;
    if (module)
      loaded.emplace(*module, memory);
  }

  template <class T> std::uint64_t upload(const std::vector<T> &values) {
    const std::uint64_t address = memory.allocate(values.size() * sizeof(T));
    EXPECT_FALSE(memory.copyIn(address, std::as_bytes(std::span(values))));
    return address;
  }
  template <class T> std::vector<T> download(std::uint64_t address, std::size_t count) {
    EXPECT_EQ(memory.unwritten(address, count * sizeof(T)), 0U);
    std::vector<T> values(count);
    EXPECT_FALSE(memory.copyOut(address, std::as_writable_bytes(std::span(values))));
    return values;
  }

  /// Launches the only entry.
  LaunchResult run(const LaunchConfig &config, std::initializer_list<Argument> arguments) {
    if (!module)
      return {"no module", 0, 0, 0};
    const Entry &entry = module->entries().front();
    std::vector<std::byte> bytes(entry.parameterBytes);
    EXPECT_EQ(arguments.size(), entry.parameters.size());
    std::size_t i = 0;
    for (const Argument &argument : arguments) {
      const Parameter &parameter = entry.parameters[i++];
      EXPECT_EQ(argument.bytes.size(), parameter.size) << parameter.name;
      std::memcpy(bytes.data() + parameter.offset, argument.bytes.data(), argument.bytes.size());
    }
    return launch(*loaded, entry.name, config, bytes, memory);
  }

  Memory memory;
  std::optional<Module> module;
  std::optional<LoadedModule> loaded;
};

/// Returns the error of a module's text, or an empty string.
inline std::string refusalOf(const std::string &body) {
  std::string error;
  Module::parse(".version 7.0\n.target sm_80\n.address_size 64\n" + body, error);
  return error;
}

/// Returns an entry k(.param .u64 p) with some registers and this body. The pointer is in %rd0, the thread in %r0.
inline std::string kernelOf(const std::string &body, const std::string &around = "") {
  return around +
         ".visible .entry k(.param .u64 p) {\n"
         ".reg .pred %p<16>;\n.reg .b16 %rs<32>;\n.reg .b32 %r<64>;\n.reg .b64 %rd<64>;\n.reg .f32 %f<32>;\n"
         "ld.param.u64 %rd0, [p];\nmov.u32 %r0, %tid.x;\n" +
         body + "\nret;\n}\n";
}

/// Returns numbers that f16 and bf16 represent exactly, small enough that sums of their products are exact in f32.
inline std::vector<float> smallNumbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float &value : values)
    value = static_cast<float>(static_cast<int>(random() % 17) - 8) / 4;
  return values;
}

} // namespace kiln::ptx
