// SPDX-License-Identifier: Apache-2.0
//
// The slices of tensors that ranks have, and their bytes, computed by simple arithmetic.
#pragma once

#include "core/model.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln_test {

/// How ranks split a tensor: the sections along dimension `Dim`, whose size in the file is `Extent`. Without sections
/// the tensor is whole.
struct Sections {
  uint32_t Dim = 0;
  uint64_t Extent = 0;
  std::vector<kiln_section_t> All;
  uint32_t Parts = 0; // the parts of a rank's slice among replicas

  kiln_shard_t described() const { return {All.data(), Extent, Dim, static_cast<uint32_t>(All.size()), Parts, 0}; }
};

/// Returns equal parts, one for each rank, or for each group of ranks.
inline Sections equalParts(uint32_t dim, uint64_t parts, uint64_t each, uint32_t group = 1) {
  return {dim, parts * each, {{0, each, each, group, 0}}};
}

/// Returns a rank's share of each section, one after the other.
inline Sections sharesOf(uint32_t dim, const std::vector<uint64_t> &sections, uint32_t ranks) {
  Sections result = {dim, 0, {}};
  for (uint64_t extent : sections) {
    const uint64_t share = (extent + ranks - 1) / ranks;
    result.All.push_back({result.Extent, share, share, 1, 0});
    result.Extent += extent;
  }
  return result;
}

inline kiln_weight_t weightOf(const char *name, kiln_dtype_t dtype, const std::vector<int64_t> &shape) {
  kiln_weight_t weight = {name, dtype, static_cast<uint32_t>(shape.size()), {}, 1, 0};
  std::copy(shape.begin(), shape.end(), weight.shape);
  return weight;
}

inline std::vector<int64_t> wholeShape(std::vector<int64_t> shape, const Sections &sections) {
  shape[sections.Dim] = static_cast<int64_t>(sections.Extent);
  return shape;
}

inline uint64_t productOf(const std::vector<int64_t> &shape, size_t first = 0) {
  uint64_t result = 1;
  for (size_t i = first; i < shape.size(); ++i)
    result *= static_cast<uint64_t>(shape[i]);
  return result;
}

/// Returns a rank's sections of a tensor with elements of `each` bytes.
inline std::string sliceOf(const std::string &bytes, const std::vector<int64_t> &shape, const Sections &sections,
                           uint32_t rank, size_t each) {
  if (sections.All.empty())
    return bytes;
  const size_t step = productOf(shape, sections.Dim + 1) * each, row = sections.Extent * step;
  std::string result;
  for (size_t begin = 0; begin < bytes.size(); begin += row)
    for (const kiln_section_t &section : sections.All) {
      const uint64_t first = rank / section.group * section.step + section.first;
      const uint64_t last = sections.Extent - section.extent; // the last rank's slice ends with the tensor
      result += bytes.substr(begin + std::min(first, last) * step, section.extent * step);
    }
  return result;
}

} // namespace kiln_test
