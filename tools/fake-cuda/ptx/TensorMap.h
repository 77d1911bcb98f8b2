// SPDX-License-Identifier: Apache-2.0
//
// The parameters of cuTensorMapEncodeTiled, in the 128 bytes that a kernel receives. The driver's encoding is
// undocumented; this one is specific to the interpreter, and is recognised by its first bytes.
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
  std::array<std::uint64_t, 5> extents{}; ///< in elements, innermost dimension first
  std::array<std::uint64_t, 4> strides{}; ///< in bytes, of the dimensions after the innermost
  std::array<std::uint16_t, 5> box{};     ///< elements of one copy
  std::uint8_t rank = 0, elementBytes = 0;
  Swizzle swizzle = Swizzle::none;
};

/// Returns the violated rule, or nothing: alignments of 16 bytes, boxes of at most 256, rows that fit the swizzle.
std::optional<std::string> check(const TensorMap &map);
std::array<std::byte, 128> encode(const TensorMap &map);
/// Returns nothing if the bytes are no tensor map.
std::optional<TensorMap> decodeTensorMap(std::span<const std::byte, 128> bytes);

/// Returns the swizzled position of a byte at `address` of shared memory.
inline std::uint32_t swizzled(std::uint32_t address, TensorMap::Swizzle swizzle) {
  constexpr std::uint32_t masks[] = {0, 1, 3, 7};
  return address ^ (address >> 7 & masks[static_cast<unsigned>(swizzle)]) << 4;
}

} // namespace kiln::ptx
