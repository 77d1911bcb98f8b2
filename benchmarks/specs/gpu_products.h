// SPDX-License-Identifier: Apache-2.0
//
// Linear layers of BERT-base and GPT-2 small (width 768), of Llama 8B (width 4096) and a square one, with one element
// type, for any number of rows; one entry each.
#pragma once

#include <kiln/dsl.h>

namespace specs {

inline constexpr kiln::Dim product_rows{"rows", 1, 8192}, ragged_rows{"ragged_rows", 1, 1024};

template <kiln::ElementType Type> struct GpuProducts : kiln::Model {
  template <std::int64_t Columns> using Rows = kiln::Tensor<Type, product_rows, Columns>;
  template <std::int64_t In, std::int64_t Out>
  using Linear = kiln::Linear<In, Out, false, kiln::WeightOrder::out_in, Type>;

  Linear<768, 768> out{"out"};
  Linear<768, 2304> qkv{"qkv"};
  Linear<768, 3072> up{"up"};
  Linear<3072, 768> down{"down"};
  Linear<4096, 4096> wide{"wide"};
  Linear<4096, 14336> wide_up{"wide_up"};
  Linear<14336, 4096> wide_down{"wide_down"};
  Linear<8192, 8192> square{"square"};

  constexpr auto run_out(Rows<768> x) const { return out(x); }
  constexpr auto run_qkv(Rows<768> x) const { return qkv(x); }
  /// With 1,024 rows in f32 it has slightly more tiles than a GPU computes at a time (stream-K).
  constexpr auto run_ragged(kiln::Tensor<Type, ragged_rows, 768> x) const { return qkv(x); }
  constexpr auto run_up(Rows<768> x) const { return up(x); }
  constexpr auto run_down(Rows<3072> x) const { return down(x); }
  constexpr auto run_wide(Rows<4096> x) const { return wide(x); }
  constexpr auto run_wide_up(Rows<4096> x) const { return wide_up(x); }
  constexpr auto run_wide_down(Rows<14336> x) const { return wide_down(x); }
  constexpr auto run_square(Rows<8192> x) const { return square(x); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("out", &GpuProducts::run_out, {"x"}, {"y"}),
                      kiln::entry("qkv", &GpuProducts::run_qkv, {"x"}, {"y"}),
                      kiln::entry("ragged", &GpuProducts::run_ragged, {"x"}, {"y"}),
                      kiln::entry("up", &GpuProducts::run_up, {"x"}, {"y"}),
                      kiln::entry("down", &GpuProducts::run_down, {"x"}, {"y"}),
                      kiln::entry("wide", &GpuProducts::run_wide, {"x"}, {"y"}),
                      kiln::entry("wide_up", &GpuProducts::run_wide_up, {"x"}, {"y"}),
                      kiln::entry("wide_down", &GpuProducts::run_wide_down, {"x"}, {"y"}),
                      kiln::entry("square", &GpuProducts::run_square, {"x"}, {"y"})};
  }
};

} // namespace specs
