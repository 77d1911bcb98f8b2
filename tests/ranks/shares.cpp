// SPDX-License-Identifier: Apache-2.0
//
// An entry whose rows sequence parallelism can split evenly, and one with a dynamic number of rows, which it cannot.
#include <kiln/dsl.h>
#include <kiln/generator.h>

namespace {

constexpr kiln::Dim T{"rows", 1, 9};

struct Shares : kiln::Model {
  constexpr auto fixed(kiln::Tensor<kiln::f32, 4, 16> x) const { return x + down(kiln::gelu(up(x))); }
  constexpr auto any(kiln::Tensor<kiln::f32, T, 16> x) const { return x + down(kiln::gelu(up(x))); }
  static constexpr auto entries() {
    return std::tuple{kiln::entry("fixed", &Shares::fixed, {"x"}, {"y"}),
                      kiln::entry("any", &Shares::any, {"x"}, {"y"})};
  }
  kiln::Linear<16, 32> up{"up"};
  kiln::Linear<32, 16> down{"down"};
};

} // namespace

KILN_MODEL(shares, Shares)
