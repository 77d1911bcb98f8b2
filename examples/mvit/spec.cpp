// SPDX-License-Identifier: Apache-2.0
//
// A small MViT (Fan et al. 2021): attention between pooled queries, keys and values, so that the image becomes smaller
// and the width larger from stage to stage.
#include <kiln/generator.h>

inline constexpr kiln::Dim B{"batch", 1, 4};
inline constexpr std::int64_t side = 56, classes = 10;

/// Depthwise convolution of each head's image [B, Heads, Side, Side, Depth], then a norm.
template <std::int64_t Depth, int Stride> struct Pool : kiln::Layer<Pool<Depth, Stride>> {
  using kiln::Layer<Pool>::Layer;
  kiln::Conv2d<Depth, Depth, 3, kiln::Conv2dOptions{.stride = Stride, .padding = 1, .groups = Depth}, false> conv{
      "conv"};
  kiln::LayerNorm<Depth> norm{"norm"};

  constexpr auto forward(const kiln::tensor auto &heads) const { return norm(conv(heads)); }
};

/// Pooling attention over an image of Side x Side; the result has Side / QueryStride on each side.
template <std::int64_t Width, int Heads, std::int64_t Side, int QueryStride, int KeyStride>
struct PoolingAttention : kiln::Layer<PoolingAttention<Width, Heads, Side, QueryStride, KeyStride>> {
  using kiln::Layer<PoolingAttention>::Layer;
  static constexpr std::int64_t Depth = Width / Heads, Queries = Side / QueryStride, Keys = Side / KeyStride;
  kiln::Linear<Width, Width> q_proj{"q_proj"}, k_proj{"k_proj"}, v_proj{"v_proj"}, out_proj{"out_proj"};
  Pool<Depth, QueryStride> pool_q{"pool_q"};
  Pool<Depth, KeyStride> pool_k{"pool_k"}, pool_v{"pool_v"};

  constexpr auto forward(const kiln::tensor auto &x) const {
    auto heads = [](const auto &rows) {
      return kiln::transpose<0, 3, 1, 2, 4>(kiln::reshape<B, Side, Side, Heads, Depth>(rows));
    };
    auto q = kiln::reshape<B, Heads, Queries * Queries, Depth>(pool_q(heads(q_proj(x))));
    auto k = kiln::reshape<B, Heads, Keys * Keys, Depth>(pool_k(heads(k_proj(x))));
    auto v = kiln::reshape<B, Heads, Keys * Keys, Depth>(pool_v(heads(v_proj(x))));
    auto seen = kiln::transpose<0, 2, 1, 3>(kiln::attention<1>(q, k, v));
    return out_proj(kiln::reshape<B, Queries, Queries, Width>(seen));
  }
};

/// Pre-norm; if the MLP changes the width, a projection does so on the residual path.
template <std::int64_t Width, std::int64_t Out, int Heads, std::int64_t Side, int QueryStride, int KeyStride>
struct Block : kiln::Layer<Block<Width, Out, Heads, Side, QueryStride, KeyStride>> {
  using kiln::Layer<Block>::Layer;
  kiln::LayerNorm<Width> norm1{"norm1"}, norm2{"norm2"};
  PoolingAttention<Width, Heads, Side, QueryStride, KeyStride> attn{"attn"};
  kiln::Linear<Width, 4 * Width> fc1{"mlp.fc1"};
  kiln::Linear<4 * Width, Out> fc2{"mlp.fc2"};
  kiln::Linear<Width, Out> proj{"proj"};

  constexpr auto forward(const kiln::tensor auto &x) const {
    auto attended = past(x) + attn(norm1(x));
    auto y = norm2(attended);
    auto thought = fc2(kiln::gelu(fc1(y)));
    if constexpr (Out == Width)
      return attended + thought;
    else
      return proj(y) + thought;
  }

private:
  static constexpr auto past(const kiln::tensor auto &x) {
    if constexpr (QueryStride == 1)
      return x;
    else
      return kiln::max_pool2d<3, kiln::Pool2dOptions{.stride = QueryStride, .padding = 1}>(x);
  }
};

struct Mvit : kiln::Model {
  static constexpr kiln::Names inputs{"images"}, outputs{"logits", "features"};

  kiln::Conv2d<3, 32, 7, kiln::Conv2dOptions{.stride = 4, .padding = 3}> patches{"patches"};
  Block<32, 64, 1, 14, 1, 2> block0{"blocks.0"};
  Block<64, 64, 2, 14, 2, 2> block1{"blocks.1"};
  Block<64, 64, 2, 7, 1, 1> block2{"blocks.2"};
  kiln::LayerNorm<64> norm{"norm"};
  kiln::Linear<64, classes> head{"head"};

  constexpr auto forward(kiln::Tensor<kiln::f32, B, side, side, 3> images) const {
    auto x = patches(images) + kiln::parameter<kiln::f32, 14, 14, 32>(images, "places");
    auto features = norm(block2(block1(block0(x))));
    auto rows = kiln::reshape<B, 7 * 7, 64>(features);
    return kiln::outputs(head(kiln::mean<1>(rows)), features);
  }
};

KILN_MODEL(mvit, Mvit)
