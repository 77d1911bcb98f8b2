// SPDX-License-Identifier: Apache-2.0
//
// The machine that a measurement was taken on, as tuning files name it: what decides which schedule is best. A build
// never looks at the machine that it runs on; only tuning does.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace kiln {

struct Machine {
  std::string isa; // name of the target that was measured, "x86-64-v4"
  int64_t cores = 0;
  int64_t l1Bytes = 0, l2Bytes = 0, l3Bytes = 0; // data caches as one core sees them; 0: none
  auto operator<=>(const Machine &) const = default;
};

/// "x86-64-v4/c2/l1:32K/l2:1M/l3:32M".
std::string toString(const Machine &machine);
/// Nothing if the text is not of that form.
std::optional<Machine> parseMachine(llvm::StringRef text);

/// This machine, for measurements of code for `isa`. `folder` is that of the kernel's descriptions of the CPUs.
Machine detectMachine(llvm::StringRef isa, const std::string &folder = "/sys/devices/system/cpu");

} // namespace kiln
