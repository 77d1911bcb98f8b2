// SPDX-License-Identifier: Apache-2.0
//
// A caption from one vector: VGG's stack of convolutions (Simonyan and Zisserman 2015), whose last layer v is an input
// of each step of an Elman network, h' = tanh(W_xh x + W_hh h + W_ih v) (Karpathy and Fei-Fei 2015).
#include "captions.h"
#include <kiln/generator.h>

/// Two 3 x 3 convolutions, then 2 x 2 max pooling.
template <std::int64_t In, std::int64_t Out> struct Twice : kiln::Layer<Twice<In, Out>> {
  using kiln::Layer<Twice>::Layer;
  kiln::Conv2d<In, Out, 3, kiln::Conv2dOptions{.padding = 1}> conv1{"conv1"};
  kiln::Conv2d<Out, Out, 3, kiln::Conv2dOptions{.padding = 1}> conv2{"conv2"};

  constexpr auto forward(const kiln::tensor auto &x) const {
    return kiln::max_pool2d<2>(kiln::relu(conv2(kiln::relu(conv1(x)))));
  }
};

struct VggCaptioner : kiln::Model {
  static constexpr kiln::Names inputs{"image", "sentence"}, outputs{"logits"};
  static constexpr std::int64_t hidden = 256;

  Twice<1, 64> block1{"block1"};
  Twice<64, 128> block2{"block2"};
  Twice<128, 256> block3{"block3"};
  Twice<256, 512> block4{"block4"};
  Twice<512, 512> block5{"block5"};
  kiln::Linear<512, 4096> fc1{"fc1"}; // 56 x 56 pixels become one
  kiln::Linear<4096, 4096> fc2{"fc2"};
  kiln::Embedding<captions::words, hidden> xh{"xh"}; // a one-hot vector times a matrix is a row
  kiln::Linear<hidden, hidden> hh{"hh"};
  kiln::Linear<4096, hidden, false> ih{"ih"};
  kiln::Linear<hidden, captions::words> head{"head"};

  constexpr auto forward(captions::Image image, kiln::Tensor<kiln::i32, captions::T> sentence) const {
    auto x = block1(kiln::reshape<captions::side, captions::side, 1>(image));
    auto features = kiln::reshape<1, 512>(block5(block4(block3(block2(x)))));
    auto v = ih(kiln::relu(fc2(kiln::relu(fc1(features)))));
    auto step = [&](const auto &h, const auto &word) {
      auto next = kiln::tanh(word + hh(h));
      return std::pair{next, next};
    };
    auto begin = kiln::zeros<kiln::f32, hidden>(image);
    auto [last, states] = kiln::scan(begin, xh(sentence) + v, step);
    return head(states);
  }
};

KILN_MODEL(captions_vgg, VggCaptioner)
