// SPDX-License-Identifier: Apache-2.0
//
// Kernels of sm_90a with tensor maps and an mbarrier, for tests.
#pragma once

#include <fmt/format.h>

#include "NumberFormats.h"
#include "TensorMap.h"
#include "support.h"

namespace kiln::ptx {

#define EXPECT_WORDS(error, words) EXPECT_NE((error).find(words), std::string::npos) << (error)

inline constexpr char head[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n";

/// An entry with two tensor maps at %rd1 and %rd2 and two pointers in %rd3 and %rd4; the thread in %r0, its lane in
/// %r1, its warp in %r2.
inline std::string hopperKernel(const std::string &body, const std::string &directives = "") {
  return std::string(head) +
         ".visible .entry k(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128], .param .u64 p, .param .u64 q) " +
         directives +
         " {\n.reg .pred %p<8>;\n.reg .b16 %rs<8>;\n.reg .b32 %r<64>, %d<64>;\n.reg .b64 %rd<32>;\n"
         "mov.b64 %rd1, a;\ncvta.param.u64 %rd1, %rd1;\nmov.b64 %rd2, b;\ncvta.param.u64 %rd2, %rd2;\n"
         "ld.param.u64 %rd3, [p];\nld.param.u64 %rd4, [q];\nmov.u32 %r0, %tid.x;\nand.b32 %r1, %r0, 31;\n"
         "shr.u32 %r2, %r0, 5;\nsetp.ne.u32 %p1, %r0, 0;\n" +
         body + "\nret;\n}\n";
}

using Map = std::array<std::byte, 128>;

/// Returns the map of a tensor of [rows][columns] elements, with a box in the same order.
inline TensorMap map2d(std::uint64_t address, unsigned rows, unsigned columns, unsigned boxRows, unsigned boxColumns,
                       unsigned bytes, TensorMap::Swizzle swizzle = TensorMap::Swizzle::bytes128) {
  TensorMap map;
  map.address = address;
  map.rank = 2;
  map.elementBytes = static_cast<std::uint8_t>(bytes);
  map.extents = {columns, rows};
  map.strides = {static_cast<std::uint64_t>(columns) * bytes};
  map.box = {static_cast<std::uint16_t>(boxColumns), static_cast<std::uint16_t>(boxRows)};
  map.swizzle = swizzle;
  EXPECT_FALSE(check(map)) << *check(map);
  return map;
}

inline std::vector<std::uint16_t> halves(const std::vector<float> &values) {
  std::vector<std::uint16_t> result;
  for (const float value : values)
    result.push_back(toF16(value));
  return result;
}

inline const std::string initialise = "mov.u32 %r20, 1;\n@!%p1 mbarrier.init.shared.b64 [smem+16384], %r20;\n"
                                      "fence.mbarrier_init.release.cluster;\nbar.sync 0;\n";
inline std::string waitFor(unsigned parity, const std::string &name) {
  return fmt::format("{1}:\nmbarrier.try_wait.parity.shared.b64 %p2, [smem+16384], {0}, 10000000;\n@!%p2 bra {1};\n",
                     parity, name);
}
inline std::string bring(const char *map, unsigned rank, const char *at, unsigned offset,
                         const std::string &more = "") {
  return fmt::format("mov.b64 %rd10, smem;\nadd.u64 %rd10, %rd10, {3};\n"
                     "@!%p1 cp.async.bulk.tensor.{1}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{4} "
                     "[%rd10], [{0}, {{{2}}}], [smem+16384]{5};\n",
                     map, rank, at, offset, more.empty() ? "" : ".multicast::cluster", more);
}
inline std::string expect(unsigned bytes) {
  return fmt::format("@!%p1 mbarrier.arrive.expect_tx.shared.b64 %rd20, [smem+16384], {};\n", bytes);
}

} // namespace kiln::ptx
