// SPDX-License-Identifier: Apache-2.0
//
// Products of two matrices as kernels, and what their device code holds.
#pragma once

#include "DeviceKernel.h"
#include "KernelText.h"
#include "LinearKernel.h"

namespace kiln::testing {

/// The maps of a product's inputs, by whether each is transposed: rows a, columns b, depth c.
struct Form {
  bool transposeA, transposeB;
  std::vector<std::string> maps() const { return {transposeA ? "c, a" : "a, c", transposeB ? "b, c" : "c, b", "a, b"}; }
};

/// x * w; extents are numbers, or s0, s1 and s2 of 1 (s1: 0) to `bound`.
inline std::string matmulKernel(Form form, const std::string &m, const std::string &n, const std::string &k,
                                int bound) {
  KernelText text({{1, bound}, {0, bound}, {1, bound}});
  Value x = text.argument(form.transposeA ? text.type({k, m}) : text.type({m, k}));
  Value w = text.argument(form.transposeB ? text.type({n, k}) : text.type({k, n}));
  return text.finish({text.reduce("ppr", {x, w}, text.type({m, n}), form.maps(), "0.0 : f32", multiplyAdd)});
}

inline size_t countOf(const std::string &text, const std::string &what) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size())
    ++count;
  return count;
}

inline const std::string &textOf(const DeviceKernel &kernel) { return kernel.plan().images.front().text; }

} // namespace kiln::testing
