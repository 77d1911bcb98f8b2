// SPDX-License-Identifier: Apache-2.0
//
// A small DETR (Carion et al. 2020): a convolutional backbone, a Transformer whose decoder has learned queries, and for
// each query a class and a box. Position embeddings are added to queries and keys of every attention, not to values.
#include <kiln/generator.h>

inline constexpr kiln::Dim B{"batch", 1, 4};
inline constexpr std::int64_t image_height = 64, image_width = 96, rows = 8, columns = 12,
                              places_count = rows * columns;
inline constexpr std::int64_t width = 64, hidden = 128, queries_count = 10, classes = 5;
inline constexpr int heads = 4;

using Attention = kiln::MultiHeadAttention<width, heads>;
using Mlp = kiln::Mlp<width, hidden, kiln::Activation::relu>;
template <std::int64_t In, std::int64_t Out>
using Halved = kiln::Conv2d<In, Out, 3, kiln::Conv2dOptions{.stride = 2, .padding = 1}, false>;

struct EncoderBlock : kiln::Layer<EncoderBlock> {
  using Layer::Layer;
  Attention self_attn{"self_attn"};
  kiln::LayerNorm<width> norm1{"norm1"}, norm2{"norm2"};
  Mlp mlp{"mlp"};

  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &places) const {
    auto q = x + places;
    auto y = norm1(x + self_attn(q, q, x));
    return norm2(y + mlp(y));
  }
};

struct DecoderBlock : kiln::Layer<DecoderBlock> {
  using Layer::Layer;
  Attention self_attn{"self_attn"}, cross_attn{"cross_attn"};
  kiln::LayerNorm<width> norm1{"norm1"}, norm2{"norm2"}, norm3{"norm3"};
  Mlp mlp{"mlp"};

  /// Returns the result, and the attention of each head to each location.
  constexpr auto forward(const kiln::tensor auto &x, const kiln::tensor auto &memory, const kiln::tensor auto &places,
                         const kiln::tensor auto &queries) const {
    auto q = x + queries;
    auto y = norm1(x + self_attn(q, q, x));
    auto asked = y + queries;
    auto keys = memory + places;
    auto z = norm2(y + cross_attn(asked, keys, memory));
    return std::pair{norm3(z + mlp(z)), cross_attn.weights(asked, keys)};
  }
};

struct Detr : kiln::Model {
  static constexpr kiln::Names inputs{"images"}, outputs{"logits", "boxes", "seen"};

  Halved<3, 16> conv0{"backbone.conv.0"};
  Halved<16, 32> conv1{"backbone.conv.1"};
  Halved<32, 64> conv2{"backbone.conv.2"};
  kiln::BatchNorm2d<16> bn0{"backbone.norm.0"};
  kiln::BatchNorm2d<32> bn1{"backbone.norm.1"};
  kiln::BatchNorm2d<64> bn2{"backbone.norm.2"};
  kiln::Conv2d<64, width, 1> projection{"projection"};
  kiln::Stack<2, EncoderBlock> encoder{"encoder"};
  DecoderBlock decoder0{"decoder.0"}, decoder1{"decoder.1"};
  kiln::LayerNorm<width> decoder_norm{"decoder_norm"};
  kiln::Linear<width, classes + 1> class_head{"class_head"}; // the last class is "nothing"
  kiln::Linear<width, width> box0{"box_head.0"}, box1{"box_head.1"};
  kiln::Linear<width, 4> box2{"box_head.2"};

  /// Sinusoids of the row, concatenated with those of the column.
  static constexpr auto places(const kiln::tensor auto &context) {
    constexpr std::int64_t half = width / 2;
    auto row = kiln::sinusoidal<half>(kiln::arange<rows>(context));
    auto column = kiln::sinusoidal<half>(kiln::arange<columns>(context));
    auto both = kiln::concat<-1>(kiln::expand<rows, columns, half>(kiln::reshape<rows, 1, half>(row)),
                                 kiln::expand<rows, columns, half>(kiln::reshape<1, columns, half>(column)));
    return kiln::reshape<places_count, width>(both);
  }

  constexpr auto forward(kiln::Tensor<kiln::f32, B, image_height, image_width, 3> images) const {
    auto features = kiln::relu(bn2(conv2(kiln::relu(bn1(conv1(kiln::relu(bn0(conv0(images)))))))));
    auto where = places(images);
    auto memory = encoder(kiln::reshape<B, places_count, width>(projection(features)), where);
    auto queries = kiln::parameter<kiln::f32, queries_count, width>(images, "queries");
    auto [x, unseen] = decoder0(kiln::zeros<kiln::f32, B, queries_count, width>(images), memory, where, queries);
    auto [y, seen] = decoder1(x, memory, where, queries);
    auto found = decoder_norm(y);
    auto boxes = kiln::sigmoid(box2(kiln::relu(box1(kiln::relu(box0(found))))));
    auto each = kiln::reshape<B, queries_count, rows, columns>(kiln::mean<1>(seen));
    return kiln::outputs(class_head(found), boxes, each);
  }
};

KILN_MODEL(detr, Detr)
