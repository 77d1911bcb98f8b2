// SPDX-License-Identifier: Apache-2.0
//
// The random number generator of dropout: Philox4x32-10 (Salmon et al. 2011, section 3.3).
#pragma once

#include <array>
#include <cstdint>

namespace kiln::interpreter {

constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53} * counter[0], second = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(first)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

/// The position of a dropout in a stream of random numbers.
struct DropoutPlace {
  std::uint32_t seed, step, stream, iteration;

  constexpr bool drops(std::uint32_t element, double probability) const {
    return (philox({element, stream, iteration, step}, {seed, 0})[0] >> 8) <
           static_cast<std::uint32_t>(probability * 0x1p24 + 0.5);
  }
};

} // namespace kiln::interpreter
