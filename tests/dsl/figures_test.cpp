// SPDX-License-Identifier: Apache-2.0
//
// Parameters, bytes and operations of well-known models, computed by the compiler, and the limits of tracing: all of it
// in constant expressions.
#include <gtest/gtest.h>

#include "char_gpt.h"
#include "models/bert/bert.h"
#include "models/gpt2/gpt2.h"
#include "transformer/transformer.h"
#include "vgg.h"

namespace {

using namespace kiln;

static_assert(parameters<specs::Gpt2Small>() == 124'439'808);
static_assert(parameters<specs::Gpt2Medium>() == 354'823'168);
static_assert(parameters<specs::Gpt2Large>() == 774'030'080);
static_assert(parameters<specs::Gpt2Xl>() == 1'557'611'200);
static_assert(parameters<specs::BertBase>() == 109'482'240);
static_assert(parameters<specs::BertLarge>() == 335'141'888);
static_assert(parameters<specs::Vgg13>() == 133'047'848);
static_assert(weight_bytes<specs::Gpt2Small>() == 4 * 124'439'808LL);

// All parameters of a block have the type of its weights: matrices, biases and norms.
template <ElementType E> struct OneBlock : Model {
  EncoderBlock<64, 4, 256, BlockOptions{.weight = E}> block{"block"};
  constexpr auto forward(Tensor<E, 8, 64> x) const {
    auto y = cumsum(l2_normalize(block(x)));
    static_assert(decltype(y)::element == E);
    return y;
  }
};
static_assert(weight_bytes<OneBlock<f32>>() == 2 * weight_bytes<OneBlock<f16>>());
static_assert(weight_bytes<OneBlock<bf16>>() == 2 * parameters<OneBlock<f32>>());
static_assert(stored_bytes(i4, 4) == 2 && stored_bytes(i4, 5) == 3 && stored_bytes(i8, 5) == 5);
static_assert(info(i4).least() == -8 && info(i4).most() == 7);

// The Transformer by hand: attention 4 d (d + 1), perceptron 2 d h + h + d, norm 2 d.
constexpr std::int64_t attention_parameters = 4 * 512 * 513, mlp_parameters = 2 * 512 * 2048 + 2048 + 512;
static_assert(parameters<specs::TransformerBase>() == 37000 * 512 +
                                                          6 * (attention_parameters + mlp_parameters + 2 * 1024) +
                                                          6 * (2 * attention_parameters + mlp_parameters + 3 * 1024));
static_assert(parameters<specs::CharGpt<4, 128, 4, 70>>() ==
              (70 + 256) * 128 + 4 * (4 * 128 * 129 + 2 * 128 * 512 + 512 + 128 + 4 * 128) + 2 * 128);

constexpr Dim B{"batch", 1, 4}, T{"tokens", 1, 64};

struct OneLinear : Model {
  Linear<10, 7> fc{"fc"};
  constexpr auto forward(Tensor<f32, B, T, 10> x) const { return fc(x); }
};
static_assert(flops<OneLinear>({{"batch", 3}, {"tokens", 5}}) == 2 * 3 * 5 * 10 * 7);

struct OneAttention : Model {
  constexpr auto forward(Tensor<f32, T, 8> q, Tensor<f32, 20, 8> k, Tensor<f32, 20, 12> v) const {
    return attention<2>(q, k, v);
  }
};
static_assert(flops<OneAttention>({{"tokens", 5}}) == 2 * 5 * 20 * (8 + 12));

struct GroupedAttention : Model {
  constexpr auto forward(Tensor<f32, T, 16> q, Tensor<f32, 20, 8> k, Tensor<f32, 20, 12> v) const {
    return kiln::outputs(attention<4, 2>(q, k, v), attention_weights<4, 2>(q, k));
  }
};
static_assert(flops<GroupedAttention>({{"tokens", 5}}) == 2 * 5 * 20 * (16 + 24) + 2 * 5 * 20 * 16);

struct OneMatmul : Model {
  constexpr auto forward(Tensor<f32, 3, T, 8> a, Tensor<f32, 8, 5> b) const { return matmul(a, b); }
};
static_assert(flops<OneMatmul>({{"tokens", 6}}) == 2 * 3 * 6 * 8 * 5);

// A transposed convolution multiplies by no inserted zeros: with a kernel of 16 and a stride of 8 a result reads two
// elements of each channel. One more step is computed, half of it before and half of it after the signal.
struct OneTransposed : Model {
  constexpr auto forward(Tensor<f32, T, 6> x, Tensor<f32, 6, 7, 16> w) const {
    return conv_transpose1d<ConvTranspose1dOptions{.stride = 8, .padding = 4}>(x, w);
  }
};
static_assert(flops<OneTransposed>({{"tokens", 5}}) == 2 * (5 + 1) * 8 * 2 * 6 * 7);
// A kernel of 3 by 3 and strides of 2: phases of 2 by 2, 2 by 1, 1 by 2 and 1 by 1 elements.
struct OneTransposedImage : Model {
  constexpr auto forward(Tensor<f32, 5, 9, 6> x, Tensor<f32, 6, 7, 3, 3> w) const {
    return conv_transpose2d<ConvTranspose2dOptions{.stride = 2}>(x, w);
  }
};
static_assert(flops<OneTransposedImage>() <= 2 * (5 + 2) * (9 + 2) * 9 * 6 * 7);

// VGG-13: a 3 x 3 window for every pixel; the number of pixels is divided by four from pair to pair.
static_assert(flops<specs::Vgg13Features>() ==
              2 * 9 * 224LL * 224 *
                  (3 * 64 + 64 * 64 + (64 * 128 + 128 * 128) / 4 + (128 * 256 + 256 * 256) / 16 +
                   (256 * 512 + 512 * 512) / 64 + (512 * 512 + 512 * 512) / 256));

// GPT-2 small: projections 2 t (3 d^2 + d^2 + 8 d^2) and attention 4 t^2 d in each of 12 layers, logits 2 t d v.
constexpr std::int64_t gpt2_flops(std::int64_t t) {
  return 12 * (2 * t * 12 * 768 * 768 + 4 * t * t * 768) + 2 * t * 768 * 50257;
}
static_assert(flops<specs::Gpt2Small>({{"tokens", 1}}) == gpt2_flops(1));
static_assert(flops<specs::Gpt2Small>({{"tokens", 1024}}) == gpt2_flops(1024));

// 96 layers as one stack, GPT-3's size, and 32 blocks without a stack (384 nodes): tracing is linear, within the
// compilers' default limits.
static_assert(parameters<specs::Gpt2<96, 12288, 96>>() ==
              50257LL * 12288 + 1024LL * 12288 + 96 * (12LL * 12288 * 12288 + 13 * 12288) + 2 * 12288);

struct WrittenOut : Model {
  EncoderBlock<64, 4, 256> block{"block"};
  constexpr auto forward(Tensor<f32, T, 64> x) const {
    for (int i = 0; i < 32; ++i)
      x = block(x);
    return x;
  }
};
static_assert(trace<WrittenOut>().regions[0].nodes.size() == 32 * 12 + 16);
static_assert(flops<WrittenOut>({{"tokens", 2}}) == 32 * (2 * 2 * 12 * 64 * 64 + 4 * 2 * 2 * 64));

TEST(Figures, AreTheSameAtRunTime) {
  EXPECT_EQ(parameters<specs::Gpt2Xl>(), 1'557'611'200);
  EXPECT_EQ(flops<specs::Gpt2Small>({{"tokens", 64}}), gpt2_flops(64));
}

TEST(Figures, FlopsWantsEveryExtentWithinItsBounds) {
  EXPECT_THROW(flops<OneLinear>({{"batch", 3}}), std::invalid_argument);
  EXPECT_THROW(flops<OneLinear>({{"batch", 3}, {"tokens", 65}}), std::invalid_argument);
}

} // namespace
