// SPDX-License-Identifier: Apache-2.0
//
// A kernel that transposes, broadcasts and converts, on odd sizes: y[j, i, c] = x[i, c, j] * w[c] + ids[i], where i has
// s0 elements, c 35 and j 3.
#pragma once

#include "Harness.h"
#include "KernelText.h"

namespace kiln::testing {

inline std::string transposedKernel() {
  KernelText k({{0, 60}});
  Value x = k.argument(k.type({"s0", "35", "3"})), w = k.argument(k.type({"35"})),
        ids = k.argument(k.type({"s0"}, "i32"));
  return k.finish({k.one("ppp", {x, w, ids}, k.type({"3", "s0", "35"}), {"b, c, a", "c", "b", "a, b, c"},
                         "%f = arith.sitofp %x2 : i32 to f32\n%s = arith.mulf %x0, %x1 : f32\n"
                         "%t = arith.addf %s, %f : f32\nlinalg.yield %t : f32")});
}

/// Runs it by `run`, which takes s0 and the inputs, with 0 rows, one row and an odd number of rows.
template <class Run> void checkTransposed(Run run) {
  for (int64_t m : {0, 1, 37}) {
    Tensor x = randomTensor({m, 35, 3}), w = randomTensor({35}), ids = randomIntegers({m}, -100, 100);
    Tensor wanted = Tensor::zeros({3, m, 35});
    for (int64_t j = 0; j < 3; ++j)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t c = 0; c < 35; ++c)
          wanted.at({j, i, c}) = x.at({i, c, j}) * w.at({c}) + ids.at({i});
    expectClose(run(m, {x, w, ids}), wanted, 1e-5);
  }
}

} // namespace kiln::testing
