// SPDX-License-Identifier: Apache-2.0
//
// A small convolutional network with every kind of layer of the published ones, under torchvision's names: a stem of 7
// x 7 and a pool (ResNet), residual blocks with batch norms, a separable block (MobileNet), two convolutions with
// biases and a pool (VGG), a grouped one (ResNeXt), the mean over the image, a classifier; and features resized to
// another size.
#pragma once

#include "kiln/dsl.h"

namespace specs {

template <std::int64_t In, std::int64_t Out, int Stride>
struct ResidualBlock : kiln::Layer<ResidualBlock<In, Out, Stride>> {
  using kiln::Layer<ResidualBlock>::Layer;
  kiln::Conv2d<In, Out, 3, kiln::Conv2dOptions{.stride = Stride, .padding = 1}, false> conv1{"conv1"};
  kiln::Conv2d<Out, Out, 3, kiln::Conv2dOptions{.padding = 1}, false> conv2{"conv2"};
  kiln::Conv2d<In, Out, 1, kiln::Conv2dOptions{.stride = Stride}, false> shortcut{"downsample.0"};
  kiln::BatchNorm2d<Out> bn1{"bn1"}, bn2{"bn2"}, shortcut_norm{"downsample.1"};

  constexpr auto forward(const kiln::tensor auto &x) const {
    auto y = bn2(conv2(kiln::relu(bn1(conv1(x)))));
    return kiln::relu(y + shortcut_norm(shortcut(x)));
  }
};

inline constexpr kiln::Dim cnn_batch{"batch", 1, 4};

struct SmallCnn : kiln::Model {
  static constexpr kiln::Names inputs{"image"}, outputs{"features", "resized", "logits"};
  static constexpr kiln::Conv2dOptions same{.padding = 1};
  kiln::Conv2d<3, 24, 7, kiln::Conv2dOptions{.stride = 2, .padding = 3}, false> conv1{"conv1"};
  kiln::BatchNorm2d<24> bn1{"bn1"};
  ResidualBlock<24, 40, 2> layer1{"layer1.0"};
  kiln::Conv2d<40, 40, 3, kiln::Conv2dOptions{.padding = 1, .groups = 40}, false> depthwise{"separable.0"};
  kiln::BatchNorm2d<40> depthwise_norm{"separable.1"};
  kiln::Conv2d<40, 64, 1> pointwise{"separable.3"};
  kiln::Conv2d<64, 72, 3, same> vgg0{"features.0"};
  kiln::Conv2d<72, 72, 3, kiln::Conv2dOptions{.padding = 2, .dilation = 2}> vgg1{"features.2"};
  kiln::Conv2d<72, 36, 3, kiln::Conv2dOptions{.padding = 1, .groups = 4}> grouped{"features.5"};
  kiln::Linear<36, 10> classifier{"classifier"};

  /// Channels first, as in PyTorch.
  constexpr auto forward(kiln::Tensor<kiln::f32, cnn_batch, 3, 90, 74> image) const {
    auto stem = kiln::relu(bn1(conv1(kiln::transpose<0, 2, 3, 1>(image))));
    auto x = layer1(kiln::max_pool2d<3, kiln::Pool2dOptions{.stride = 2, .padding = 1}>(stem));
    x = kiln::relu(depthwise_norm(depthwise(x)));
    auto y = kiln::relu(vgg1(kiln::relu(vgg0(kiln::relu(pointwise(x))))));
    auto features = kiln::relu(grouped(kiln::avg_pool2d<2>(y)));
    auto mean = kiln::reshape<cnn_batch, 36>(kiln::adaptive_avg_pool2d<1>(features));
    auto resized = kiln::resize_bilinear<kiln::Pair(13, 4)>(features);
    return kiln::outputs(kiln::transpose<0, 3, 1, 2>(features), kiln::transpose<0, 3, 1, 2>(resized), classifier(mean));
  }
};

} // namespace specs
