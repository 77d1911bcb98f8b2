// SPDX-License-Identifier: Apache-2.0
//
// The common seed of a test run. KILN_SEED repeats a run.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace kiln::testing {

/// Returns KILN_SEED, or a random number that is the same for the whole process; the first call prints it.
inline std::uint32_t testSeed() {
  static const std::uint32_t seed = [] {
    const char *given = std::getenv("KILN_SEED");
    const auto chosen = given ? static_cast<std::uint32_t>(std::strtoull(given, nullptr, 10)) : std::random_device{}();
    std::printf("KILN_SEED=%lu\n", static_cast<unsigned long>(chosen));
    std::fflush(stdout);
    return chosen;
  }();
  return seed;
}

} // namespace kiln::testing
