// SPDX-License-Identifier: Apache-2.0
//
// What cuTensorMapEncodeTiled says, in the 128 bytes that a kernel gets. The driver's own encoding is secret; this one
// is the interpreter's, and it knows it again by its first bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace kiln::ptx {

struct TensorMap {
  enum class Swizzle : std::uint8_t { none, bytes32, bytes64, bytes128 };
  std::uint64_t address = 0;
  std::array<std::uint64_t, 5> extents{}; ///< elements, the innermost dimension first
  std::array<std::uint64_t, 4> strides{}; ///< bytes, of the dimensions behind the innermost one
  std::array<std::uint16_t, 5> box{};     ///< elements that one copy has
  std::uint8_t rank = 0, elementBytes = 0;
  Swizzle swizzle = Swizzle::none;
};

/// The rule that is broken, or nothing: alignments of 16 bytes, boxes of at most 256, rows that the swizzle can hold.
std::optional<std::string> check(const TensorMap &map);
std::array<std::byte, 128> encode(const TensorMap &map);
/// Nothing: the bytes are no map.
std::optional<TensorMap> decodeTensorMap(std::span<const std::byte, 128> bytes);

/// Where a byte at `address` of shared memory goes.
inline std::uint32_t swizzled(std::uint32_t address, TensorMap::Swizzle swizzle) {
  constexpr std::uint32_t masks[] = {0, 1, 3, 7};
  return address ^ (address >> 7 & masks[static_cast<unsigned>(swizzle)]) << 4;
}

} // namespace kiln::ptx
