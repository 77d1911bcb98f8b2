// SPDX-License-Identifier: Apache-2.0
//
// Tensor maps, in the interpreter's encoding.
#include <cstring>

#include "Driver.h"
#include "TensorMap.h"

using namespace kiln;
using namespace kiln::fake;

namespace {

/// Bytes per element, by type number; 0 for an unknown type.
constexpr unsigned elementBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

CUresult fill(ptx::TensorMap &map, const std::uint64_t *extents, const std::uint64_t *strides, const std::uint32_t *box,
              const std::uint32_t *elementStrides) {
  for (unsigned i = 0; i < map.rank; ++i) {
    if (box[i] > 256 || elementStrides[i] < 1 || elementStrides[i] > 8)
      return CUDA_ERROR_INVALID_VALUE;
    if (i && elementStrides[i] != 1)
      return CUDA_ERROR_NOT_SUPPORTED;
    map.extents[i] = extents[i];
    map.box[i] = static_cast<std::uint16_t>(box[i]);
    if (i)
      map.strides[i - 1] = strides[i - 1];
  }
  return CUDA_SUCCESS;
}

} // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap *out, int type, std::uint32_t rank, void *address,
                                const std::uint64_t *extents, const std::uint64_t *strides, const std::uint32_t *box,
                                const std::uint32_t *elementStrides, int interleave, int swizzle, int l2Promotion,
                                int outOfBounds) {
  return enter("cuTensorMapEncodeTiled", Needs::context, [&](Call &call) -> CUresult {
    if (!out || reinterpret_cast<std::uintptr_t>(out) % 64 || type < 0 || rank < 1 || rank > 5 || !extents || !box ||
        !elementStrides || (rank > 1 && !strides) || l2Promotion < 0 || l2Promotion > 3 || swizzle < 0 || swizzle > 6 ||
        interleave < 0 || interleave > 2 || outOfBounds < 0 || outOfBounds > 1)
      return CUDA_ERROR_INVALID_VALUE;
    if (call.device().major < 9 || interleave || outOfBounds || swizzle > 3 ||
        static_cast<std::size_t>(type) >= std::size(elementBytes))
      return CUDA_ERROR_NOT_SUPPORTED;
    ptx::TensorMap map;
    map.address = reinterpret_cast<std::uintptr_t>(address);
    map.rank = static_cast<std::uint8_t>(rank);
    map.elementBytes = static_cast<std::uint8_t>(elementBytes[type]);
    map.swizzle = static_cast<ptx::TensorMap::Swizzle>(swizzle);
    if (const CUresult error = fill(map, extents, strides, box, elementStrides))
      return error;
    if (ptx::check(map))
      return CUDA_ERROR_INVALID_VALUE;
    const auto bytes = ptx::encode(map);
    static_assert(sizeof bytes == sizeof *out);
    std::memcpy(out, bytes.data(), sizeof bytes);
    return CUDA_SUCCESS;
  });
}
