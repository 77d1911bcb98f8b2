// SPDX-License-Identifier: Apache-2.0
// Equations that become sums, transpositions, products of elements, linear and matmul.
#include "dims.h"

struct Einsum : kiln::Model {
  using X = kiln::Tensor<kiln::f32, B, T, 5>;

  constexpr auto single(X x, kiln::Tensor<kiln::i32, T, 3> n) const {
    return kiln::outputs(kiln::einsum<"btc->cbt">(x), kiln::einsum<"btc->tb">(x), kiln::einsum<"btc -> c">(x),
                         kiln::einsum<"ij->ji">(n), kiln::einsum<"ij->">(n), kiln::einsum<"abc->abc">(x));
  }
  /// One of the operands is a matrix.
  constexpr auto weights(X x, kiln::Tensor<kiln::f32, 7, 5> out_in, kiln::Tensor<kiln::f32, 5, 7> in_out,
                         kiln::Tensor<kiln::f32, T, 5> row) const {
    return kiln::outputs(kiln::einsum<"btc,oc->bto">(x, out_in), kiln::einsum<"btc,co->bto">(x, in_out),
                         kiln::einsum<"oc,btc->otb">(out_in, x), kiln::einsum<"tc,sc->ts">(row, row),
                         kiln::einsum<"tc,oc->ot">(row, out_in), kiln::einsum<"c,oc->o">(kiln::sum<0>(row), out_in));
  }
  constexpr auto batched(X x, kiln::Tensor<kiln::f32, B, S, 5> y, kiln::Tensor<kiln::f32, T, B, 3> z,
                         kiln::Tensor<kiln::f32, 3, 5, 4> w) const {
    return kiln::outputs(kiln::einsum<"btc,bsc->bts">(x, y), kiln::einsum<"btc,tbd->cbd">(x, z),
                         kiln::einsum<"btc,tbd->dtc">(x, z), kiln::einsum<"btc,dce->btde">(x, w),
                         kiln::einsum<"btc,dce->dbt">(x, w), kiln::einsum<"btc,btc->b">(x, x),
                         kiln::einsum<"btc,btc->">(x, x), kiln::einsum<"tbd,dce->bec">(z, w));
  }
  /// Products without a sum, or with sums over one operand only.
  constexpr auto products(X x, kiln::Tensor<kiln::f32, T, 3> y, kiln::Tensor<kiln::f32, 4> v) const {
    return kiln::outputs(kiln::einsum<"btc,td->dtbc">(x, y), kiln::einsum<"btc,td->bt">(x, y),
                         kiln::einsum<"td,c->tdc">(y, v), kiln::einsum<"btc,d->">(x, v), kiln::einsum<"c,c->c">(v, v));
  }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("single", &Einsum::single), kiln::entry("weights", &Einsum::weights),
                      kiln::entry("batched", &Einsum::batched), kiln::entry("products", &Einsum::products)};
  }
};

KILN_MODEL(ops_einsum, Einsum)
