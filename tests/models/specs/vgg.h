// SPDX-License-Identifier: Apache-2.0
//
// VGG-13 (Simonyan and Zisserman 2015) under torchvision's names: pairs of 3 x 3 convolutions and pools; the whole
// model, and only its features, for captioning.
#pragma once

#include "kiln/dsl.h"

namespace specs {

/// conv, relu, conv, relu, pool.
template <std::int64_t In, std::int64_t Out> struct VggPair {
  kiln::Conv2d<In, Out, 3, kiln::Conv2dOptions{.padding = 1}> first;
  kiln::Conv2d<Out, Out, 3, kiln::Conv2dOptions{.padding = 1}> second;

  constexpr VggPair(const char *first, const char *second) : first(first), second(second) {}
  constexpr auto operator()(const kiln::tensor auto &x) const {
    return kiln::max_pool2d<2>(kiln::relu(second(kiln::relu(first(x)))));
  }
};

struct VggLayers {
  VggPair<3, 64> pair1{"features.0", "features.2"};
  VggPair<64, 128> pair2{"features.5", "features.7"};
  VggPair<128, 256> pair3{"features.10", "features.12"};
  VggPair<256, 512> pair4{"features.15", "features.17"};
  VggPair<512, 512> pair5{"features.20", "features.22"};

  /// [..., 3, H, W] -> [..., 512, H / 32, W / 32], channels first as in PyTorch.
  constexpr auto operator()(const kiln::tensor auto &image) const {
    auto x = kiln::transpose<0, 2, 3, 1>(image);
    return kiln::transpose<0, 3, 1, 2>(pair5(pair4(pair3(pair2(pair1(x))))));
  }
};

struct Vgg13Features : kiln::Model {
  static constexpr kiln::Names inputs{"image"}, outputs{"features"};
  VggLayers layers;

  constexpr auto forward(kiln::Tensor<kiln::f32, 1, 3, 224, 224> image) const { return layers(image); }
};

struct Vgg13 : kiln::Model {
  static constexpr kiln::Names inputs{"image"}, outputs{"logits"};
  VggLayers layers;
  kiln::Linear<512 * 7 * 7, 4096> fc1{"classifier.0"};
  kiln::Linear<4096, 4096> fc2{"classifier.3"};
  kiln::Linear<4096, 1000> fc3{"classifier.6"};

  constexpr auto forward(kiln::Tensor<kiln::f32, 1, 3, 224, 224> image) const {
    auto features = kiln::reshape<1, 512 * 7 * 7>(layers(image));
    return fc3(kiln::relu(fc2(kiln::relu(fc1(features)))));
  }
};

} // namespace specs
