// SPDX-License-Identifier: Apache-2.0
// Matrix products: linear in both weight orders with fused epilogues, tied weights, batched products, stacks.
#include "dims.h"

template <std::int64_t Width> struct Step {
  kiln::Linear<Width, Width> fc{"fc"};
  constexpr auto forward(const kiln::tensor auto &x) const { return x + kiln::tanh(fc(x)); }
};

/// A stack in a stack.
template <std::int64_t Width> struct Group {
  kiln::Stack<2, Step<Width>> inner{"inner"};
  kiln::LayerNorm<Width> norm{"norm"};
  constexpr auto forward(const kiln::tensor auto &x) const { return norm(inner(x)); }
};

struct Contraction : kiln::Model {
  using X = kiln::Tensor<kiln::f32, B, T, 23>;
  static constexpr auto in_out = kiln::WeightOrder::in_out;
  kiln::Linear<23, 50> plain{"plain"};
  kiln::Linear<23, 50, true, in_out> swapped{"swapped"};
  kiln::Linear<23, 97, false> bare{"bare"};
  kiln::Linear<23, 7, false, in_out> bare_swapped{"bare_swapped"};
  kiln::Linear<23, 1> narrow{"narrow"};
  kiln::Linear<1, 23> thin{"thin"};
  kiln::Linear<23, 23> square{"square"};
  kiln::Linear<23, 30> query{"query"}, key{"key"};
  kiln::Linear<23, 45> value{"value"};
  kiln::Mlp<23, 61, kiln::Activation::gelu> mlp{"mlp"};
  kiln::Linear<600, 130> deep{"deep"};
  kiln::Embedding<31, 23> tied{"tied"};
  kiln::Stack<3, Step<23>> steps{"steps"};
  kiln::Stack<2, Group<23>> groups{"groups"};

  constexpr auto linear(X x) const { return kiln::outputs(plain(x), swapped(x), bare(x), bare_swapped(x), narrow(x)); }
  constexpr auto thinner(kiln::Tensor<kiln::f32, T, 1> x, kiln::Tensor<kiln::f32, 23> vector) const {
    return kiln::outputs(thin(x), plain(vector));
  }
  constexpr auto large(kiln::Tensor<kiln::f32, T, 600> x) const { return deep(x); }
  /// A residual, an activation and a scale in the epilogue of a product.
  constexpr auto epilogue(X x, X residual) const {
    return kiln::outputs(residual + square(x), kiln::relu(plain(x)), kiln::silu(swapped(x)) * 0.5, mlp(x));
  }
  /// Three products with the same input, which are merged into one.
  constexpr auto joined(X x) const { return kiln::outputs(query(x), key(x), value(x)); }
  /// One table for the input and the output, called twice.
  constexpr auto tied_weights(kiln::Tensor<kiln::i32, T> tokens) const { return kiln::logits(tied(tokens), tied); }
  constexpr auto stack(kiln::Tensor<kiln::f32, T, 23> x) const { return kiln::outputs(steps(x), groups(x)); }
  constexpr auto matmul(kiln::Tensor<kiln::f32, T, 17> a, kiln::Tensor<kiln::f32, 17, S> b,
                        kiln::Tensor<kiln::f32, S, 9> c) const {
    auto scores = kiln::matmul(a, b);
    return kiln::outputs(scores, kiln::matmul(scores, c)); // dynamic dimensions outside, then as K
  }
  constexpr auto batched(kiln::Tensor<kiln::f32, B, 3, T, 5> a, kiln::Tensor<kiln::f32, B, 3, 5, S> b,
                         kiln::Tensor<kiln::f32, 3, 5, S> shared, kiln::Tensor<kiln::f32, B, 1, 5, S> once) const {
    return kiln::outputs(kiln::matmul(a, b), kiln::matmul(a, shared), kiln::matmul(a, once));
  }
  constexpr auto transposed(kiln::Tensor<kiln::f32, B, T, 18> a, kiln::Tensor<kiln::f32, B, S, 18> b) const {
    return kiln::matmul(a, kiln::transpose<0, 2, 1>(b)) * 0.25;
  }

  static constexpr auto entries() {
    return std::tuple{
        kiln::entry("linear", &Contraction::linear),   kiln::entry("thinner", &Contraction::thinner),
        kiln::entry("large", &Contraction::large),     kiln::entry("epilogue", &Contraction::epilogue),
        kiln::entry("joined", &Contraction::joined),   kiln::entry("tied_weights", &Contraction::tied_weights),
        kiln::entry("stack", &Contraction::stack),     kiln::entry("matmul", &Contraction::matmul),
        kiln::entry("batched", &Contraction::batched), kiln::entry("transposed", &Contraction::transposed)};
  }
};

KILN_MODEL(ops_contraction, Contraction)
