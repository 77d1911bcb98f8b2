// SPDX-License-Identifier: Apache-2.0
#include "MmaKernel.h"

#include "llvm/ADT/APFloat.h"

namespace kiln::testing {

double rounded(double value, const std::string &type) {
  if (type == "f32")
    return double(float(value));
  const llvm::fltSemantics &semantics = type == "f16"    ? llvm::APFloat::IEEEhalf()
                                        : type == "bf16" ? llvm::APFloat::BFloat()
                                                         : llvm::APFloat::FloatTF32();
  llvm::APFloat number(value);
  bool losesInfo = false;
  number.convert(semantics, type == "tf32" ? llvm::APFloat::rmNearestTiesToAway : llvm::APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return number.convertToDouble();
}

/// Returns the rounded values of a matrix, with K as the last dimension.
static std::vector<double> roundRows(const Tensor &matrix, bool isTransposed, const std::string &type) {
  const int64_t rows = matrix.shape[isTransposed], depth = matrix.shape[!isTransposed];
  std::vector<double> values(rows * depth);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t step = 0; step < depth; ++step)
      values[row * depth + step] = rounded(matrix.values[isTransposed ? step * rows + row : row * depth + step], type);
  return values;
}

Expected productOf(const Tensor &x, const Tensor &w, Form form, const std::string &type) {
  const int64_t m = x.shape[form.transposeA], k = x.shape[!form.transposeA], n = w.shape[!form.transposeB];
  const std::vector<double> rows = roundRows(x, form.transposeA, type), columns = roundRows(w, !form.transposeB, type);
  Expected expected{Tensor::zeros({m, n}), Tensor::zeros({m, n})};
  for (int64_t row = 0; row < m; ++row)
    for (int64_t column = 0; column < n; ++column) {
      const double *a = rows.data() + row * k, *b = columns.data() + column * k;
      double sum = 0, magnitude = 0;
      for (int64_t step = 0; step < k; ++step) {
        const double product = a[step] * b[step];
        sum += product;
        magnitude += std::abs(product);
      }
      expected.sums.values[row * n + column] = sum;
      expected.allowed.values[row * n + column] = double(k + 1) * 0x1p-23 * magnitude;
    }
  return expected;
}

} // namespace kiln::testing
