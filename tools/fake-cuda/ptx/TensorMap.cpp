// SPDX-License-Identifier: Apache-2.0
//
// Encodes and decodes tensor maps.
#include "TensorMap.h"

#include <cstring>
#include <fmt/format.h>

namespace kiln::ptx {
namespace {

constexpr std::uint64_t mark = 0x50614d726f736e54; // not an address that the driver allocates

} // namespace

std::optional<std::string> check(const TensorMap &map) {
  if (map.rank < 1 || map.rank > 5)
    return fmt::format("a tensor map has 1 to 5 dimensions, got {}", map.rank);
  if (map.address % 16)
    return fmt::format("a tensor map's address is a multiple of 16, got {:#x}", map.address);
  for (unsigned i = 0; i < map.rank; ++i) {
    if (map.box[i] < 1 || map.box[i] > 256)
      return fmt::format("a tensor map's box has 1 to 256 elements in a dimension, got {}", map.box[i]);
    if (map.extents[i] < 1 || map.extents[i] > 1ULL << 32)
      return fmt::format("a tensor map's extents are 1 to 2^32, got {}", map.extents[i]);
    if (i && (map.strides[i - 1] % 16 || map.strides[i - 1] >= 1ULL << 40))
      return fmt::format("a tensor map's strides are multiples of 16 below 2^40, got {}", map.strides[i - 1]);
  }
  const unsigned row = map.box[0] * map.elementBytes;
  if (row % 16)
    return fmt::format("a tensor map's box has rows of a multiple of 16 bytes, got {}", row);
  constexpr unsigned most[] = {1U << 20, 32, 64, 128};
  if (row > most[static_cast<unsigned>(map.swizzle)])
    return fmt::format("a swizzle of {} bytes holds no rows of {}", most[static_cast<unsigned>(map.swizzle)], row);
  return std::nullopt;
}

std::array<std::byte, 128> encode(const TensorMap &map) {
  static_assert(sizeof map + sizeof mark <= 128 && std::is_trivially_copyable_v<TensorMap>);
  std::array<std::byte, 128> bytes{};
  std::memcpy(bytes.data(), &mark, sizeof mark);
  std::memcpy(bytes.data() + sizeof mark, &map, sizeof map);
  return bytes;
}

std::optional<TensorMap> decodeTensorMap(std::span<const std::byte, 128> bytes) {
  if (std::memcmp(bytes.data(), &mark, sizeof mark) != 0)
    return std::nullopt;
  TensorMap map;
  std::memcpy(&map, bytes.data() + sizeof mark, sizeof map);
  return map;
}

} // namespace kiln::ptx
