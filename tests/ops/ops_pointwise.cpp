// SPDX-License-Identifier: Apache-2.0
// Elementwise operations, every form of broadcasting, constants, integers.
#include "dims.h"

struct Pointwise : kiln::Model {
  using X = kiln::Tensor<kiln::f32, T, 19>;
  using X3 = kiln::Tensor<kiln::f32, B, T, 19>;
  using I = kiln::Tensor<kiln::i32, T, 19>;

  constexpr auto binary(X a, X b) const { return kiln::outputs(a + b, a - b, a * b, a / b, kiln::maximum(a, b)); }
  constexpr auto maxima(X a, X b) const { return kiln::outputs(kiln::maximum(a, b), kiln::maximum(a, 0.125)); }
  constexpr auto unary(X x, X positive) const {
    return kiln::outputs(kiln::exp(x), kiln::log(positive), kiln::sqrt(positive), kiln::tanh(x), kiln::sigmoid(x),
                         kiln::relu(x), kiln::gelu(x), kiln::gelu_tanh(x), kiln::silu(x),
                         kiln::stop_gradient(kiln::dropout(x, 0.5)));
  }
  /// b with a dimension of 1, or fewer axes, on either side.
  constexpr auto broadcast(X3 a, kiln::Tensor<kiln::f32, 19> last, kiln::Tensor<kiln::f32, T, 1> column,
                           kiln::Tensor<kiln::f32, 1, 19> row, kiln::Tensor<kiln::f32, B, 1, 1> batch,
                           kiln::Tensor<kiln::f32> number) const {
    return kiln::outputs(a + last, column - a, a * row, a / batch, kiln::maximum(number, a), column * row,
                         batch + last);
  }
  constexpr auto numbers(X x) const {
    return kiln::outputs(
        x + 1.5, 2.0 - x, x * 0.25, 3.0 / x, x / 3.0, kiln::maximum(x, 0.125),
        x * kiln::constant<kiln::f32, 1, 19>(x, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}));
  }
  constexpr auto integers(I a, I b) const { return kiln::outputs(a + b, a - b, a * b, kiln::maximum(a, b), a + 7); }
  /// NaN is not less than any number; an operand that is not selected has no effect.
  constexpr auto choice(X a, X b, kiln::Tensor<kiln::f32, T, 1> column, I i, I j) const {
    return kiln::outputs(kiln::where(kiln::less(a, b), a, b), kiln::where(kiln::less(column, 0), 1.5, a),
                         kiln::where(kiln::less(i, j), i, 7), kiln::expand<B, T, 19>(column),
                         kiln::zeros<kiln::f32, T, 19>(a));
  }
  /// One expression, so one kernel: each value is used more than once.
  constexpr auto chain(X x, X y) const {
    auto z = kiln::tanh(x * y + 0.5);
    return kiln::gelu(z - x) * z + kiln::exp(kiln::maximum(y, z) * -1.0);
  }
  /// Vectors and a scalar.
  constexpr auto small(kiln::Tensor<kiln::f32, T> v, kiln::Tensor<kiln::f32> number) const {
    return kiln::outputs(kiln::silu(v) * number, kiln::sigmoid(number) + 1.0);
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("binary", &Pointwise::binary),       kiln::entry("unary", &Pointwise::unary),
                      kiln::entry("broadcast", &Pointwise::broadcast), kiln::entry("numbers", &Pointwise::numbers),
                      kiln::entry("integers", &Pointwise::integers),   kiln::entry("chain", &Pointwise::chain),
                      kiln::entry("small", &Pointwise::small),         kiln::entry("choice", &Pointwise::choice),
                      kiln::entry("maxima", &Pointwise::maxima)};
  }
};

KILN_MODEL(ops_pointwise, Pointwise)
