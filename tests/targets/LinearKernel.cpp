// SPDX-License-Identifier: Apache-2.0
#include "LinearKernel.h"

namespace kiln::testing {

Tensor linear(const Tensor &x, const Tensor &w, const Tensor &b, const Tensor &r) {
  Tensor y = Tensor::zeros(r.shape);
  const int64_t columns = w.shape[0], depth = x.shape[1];
  for (int64_t m = 0; m < x.shape[0]; ++m)
    for (int64_t n = 0; n < columns; ++n) {
      const double *row = x.values.data() + m * depth, *weights = w.values.data() + n * depth;
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += row[k] * weights[k];
      y.values[m * columns + n] = std::max(sum + b.values[n], 0.0) + r.values[m * columns + n];
    }
  return y;
}

} // namespace kiln::testing
