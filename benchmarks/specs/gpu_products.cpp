// SPDX-License-Identifier: Apache-2.0
//
// Linear layers of BERT-base and GPT-2 small (width 768), and of Llama 8B (width 4096), for any number of rows: an
// entry each.
#include <kiln/generator.h>

inline constexpr kiln::Dim rows{"rows", 1, 4096};

struct GpuProducts : kiln::Model {
  kiln::Linear<768, 768, false> out{"out"};
  kiln::Linear<768, 2304, false> qkv{"qkv"};
  kiln::Linear<768, 3072, false> up{"up"};
  kiln::Linear<3072, 768, false> down{"down"};
  kiln::Linear<4096, 4096, false> wide{"wide"};
  kiln::Linear<4096, 14336, false> wide_up{"wide_up"};
  kiln::Linear<14336, 4096, false> wide_down{"wide_down"};

  constexpr auto run_out(kiln::Tensor<kiln::f32, rows, 768> x) const { return out(x); }
  constexpr auto run_qkv(kiln::Tensor<kiln::f32, rows, 768> x) const { return qkv(x); }
  constexpr auto run_up(kiln::Tensor<kiln::f32, rows, 768> x) const { return up(x); }
  constexpr auto run_down(kiln::Tensor<kiln::f32, rows, 3072> x) const { return down(x); }
  constexpr auto run_wide(kiln::Tensor<kiln::f32, rows, 4096> x) const { return wide(x); }
  constexpr auto run_wide_up(kiln::Tensor<kiln::f32, rows, 4096> x) const { return wide_up(x); }
  constexpr auto run_wide_down(kiln::Tensor<kiln::f32, rows, 14336> x) const { return wide_down(x); }

  static constexpr auto entries() {
    return std::tuple{kiln::entry("out", &GpuProducts::run_out, {"x"}, {"y"}),
                      kiln::entry("qkv", &GpuProducts::run_qkv, {"x"}, {"y"}),
                      kiln::entry("up", &GpuProducts::run_up, {"x"}, {"y"}),
                      kiln::entry("down", &GpuProducts::run_down, {"x"}, {"y"}),
                      kiln::entry("wide", &GpuProducts::run_wide, {"x"}, {"y"}),
                      kiln::entry("wide_up", &GpuProducts::run_wide_up, {"x"}, {"y"}),
                      kiln::entry("wide_down", &GpuProducts::run_wide_down, {"x"}, {"y"})};
  }
};

KILN_MODEL(gpu_products, GpuProducts)
