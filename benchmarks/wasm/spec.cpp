// SPDX-License-Identifier: Apache-2.0
// The parts of BERT-base and ViT-B/16: their three linear layers, and an encoder block.
#include <kiln/generator.h>

inline constexpr kiln::Dim rows{"rows", 1, 256};

struct Shapes : kiln::Model {
  static constexpr kiln::BlockOptions options{.norm = kiln::NormOrder::post};
  using Rows = kiln::Tensor<kiln::f32, rows, 768>;

  kiln::Linear<768, 768> square{"square"};
  kiln::Linear<768, 3072> up{"up"};
  kiln::Linear<3072, 768> down{"down"};
  kiln::EncoderBlock<768, 12, 3072, options> layer{"layer"};

  constexpr auto to_square(Rows x) const { return square(x); }
  constexpr auto to_up(Rows x) const { return up(x); }
  constexpr auto to_down(kiln::Tensor<kiln::f32, rows, 3072> x) const { return down(x); }
  constexpr auto block(Rows x) const { return layer(x); }

  static constexpr auto entries() {
    return std::tuple{
        kiln::entry("square", &Shapes::to_square, {"x"}, {"y"}), kiln::entry("up", &Shapes::to_up, {"x"}, {"y"}),
        kiln::entry("down", &Shapes::to_down, {"x"}, {"y"}), kiln::entry("block", &Shapes::block, {"x"}, {"y"})};
  }
};

KILN_MODEL(shapes, Shapes)
