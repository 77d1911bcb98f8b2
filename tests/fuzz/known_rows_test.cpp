// SPDX-License-Identifier: Apache-2.0
//
// Slices and sliding windows over streams: contractions that read a slice, rows that are read in place, and states that
// shift by some rows, for one sequence and for several sequences at once.
#include "known.h"

namespace kiln::fuzz {
namespace {

inline constexpr Dim Frames{"frames", 1, 7}, Many{"many", 1, 40}, Past{"past", 3, 9};

// A slice that begins with the first element has the same indices as its operand, which is longer.
KNOWN(
    ProductsOfFirstColumns, (Tensor<f32, Many, 50> x, Tensor<f32, 20> v) const {
      auto w = parameter<f32, 40, 17>(x, "w");
      return kiln::outputs(linear<WeightOrder::in_out>(slice<-1, 0, 40>(x), w),
                           linear<WeightOrder::in_out>(slice<-1, 10, 40>(x), w),
                           linear(slice<-1, 0, 16>(v), parameter<f32, 33, 16>(x, "u")),
                           matmul(slice<0, 0, 16>(reshape<20, 1>(v)), slice<1, 0, 30>(slice<0, 0, 1>(x))));
    })
KNOWN(
    RowsAndScoresOfFirstColumns, (Tensor<f32, 3, Frames, 24> x) const {
      auto narrow = slice<-1, 0, 8>(x);
      return kiln::outputs(softmax(narrow), sum<1>(narrow),
                           attention<2>(narrow, slice<-1, 8, 8>(x), slice<-1, 0, 16>(x), causal),
                           layer_norm(slice<-1, 0, 9>(x), parameter<f32, 9>(x, "a"), parameter<f32, 9>(x, "b")));
    })
KNOWN(
    ImagesOfFirstChannels, (Tensor<f32, 6, 7, 40> x) const {
      return kiln::outputs(conv2d(slice<-1, 0, 32>(x), parameter<f32, 20, 32, 3, 3>(x, "w")),
                           conv2d(slice<0, 0, 4>(x), parameter<f32, 20, 40, 2, 3>(x, "u")));
    })
KNOWN(
    FirstColumnsInAnEpilogue, (Tensor<f32, Frames, 12> x, Tensor<f32, Frames, 20> y)
                                  const { return linear(x, parameter<f32, 9, 12>(x, "w")) + slice<-1, 0, 9>(y); })

// The position of the last rows depends on the call's dynamic dimensions.
KNOWN(
    ProductsOfLastRows, (Tensor<f32, Past, 12> x) const {
      auto w = parameter<f32, 18, 12>(x, "w");
      auto own = tanh(x);
      return kiln::outputs(linear(last<0, 1>(x), w), linear(last<0, 2>(own), w), own, last<0, 3>(x),
                           attention<3>(last<0, 2>(x), x, x),
                           linear(transpose<1, 0>(last<0, 3>(own)), parameter<f32, 5, 3>(x, "u")));
    })
KNOWN(
    RowsOfWeightsAndConstants, (Tensor<f32, Frames, 6> x) const {
      auto table = parameter<f32, 9, 6>(x, "table");
      return kiln::outputs(matmul(x, transpose<1, 0>(last<0, 4>(table))), mean<0>(slice<0, 2, 5>(table)),
                           slice<0, 1, 2>(constant<f32, 3, 2>(x, {1, 2, 3, 4, 5, 6})) + 1);
    })

// A convolution over one row or a few rows is a GEMV-like product with the unpacked weight.
KNOWN(
    ConvolutionsOfFewRows, (Tensor<f32, 1, 9, 20> x, Tensor<f32, 1, Past, 20> y, Tensor<f32, 3, 3, 20> z) const {
      auto w = parameter<f32, 24, 20, 1, 3>(x, "w");
      auto b = parameter<f32, 24>(x, "b");
      return kiln::outputs(conv2d<Conv2dOptions{.stride = 2}>(x, w, b), relu(conv2d(y, w, b)),
                           conv2d(slice<1, 0, 3>(x), w), conv2d(z, parameter<f32, 24, 20, 3, 3>(x, "u")) * 2,
                           conv2d<Conv2dOptions{.padding = Pair(0, 1), .dilation = Pair(1, 2)}>(y, w, b));
    })
KNOWN(
    ScalesOfFewRows, (Tensor<f32, Frames, 20> x, Tensor<f32, 40, 20> y) const {
      auto w = parameter<f32, 24, 20>(x, "w");
      auto scale = parameter<f32, 24>(x, "weight") / sqrt(abs(parameter<f32, 24>(x, "variance")) + 1e-2);
      return kiln::outputs(linear(x, w) * scale, linear(y, w) * scale);
    })

// Streams: each call also sees the rows of earlier calls.
struct WindowOfRows : Model {
  constexpr auto forward(Tensor<f32, Frames, 20> x) const {
    State<f32, 4, 20> heard("heard");
    auto longer = concat<0>(heard.read(x), x);
    heard.store(last<0, 4>(longer));
    return relu(conv1d<Conv1dOptions{.dilation = 2}>(longer, parameter<f32, 24, 20, 3>(x, "w"))) +
           parameter<f32, 24>(x, "b");
  }
};
struct WindowsOfWindows : Model {
  constexpr auto forward(Tensor<f32, Frames, 16> x) const {
    State<f32, 2, 16> heard("heard"), later("later");
    auto longer = concat<0>(heard.read(x), x);
    heard.store(last<0, 2>(longer));
    auto y = x + tanh(conv1d(longer, parameter<f32, 16, 16, 3>(x, "w")));
    auto again = concat<0>(later.read(x), y);
    later.store(last<0, 2>(again));
    // The contents of the first window are read again after the row-wise operations.
    return linear(y, parameter<f32, 8, 16>(x, "u")) + conv1d(again, parameter<f32, 8, 16, 3>(x, "v")) +
           conv1d(longer * 0.5, parameter<f32, 8, 16, 3>(x, "z"));
  }
};
struct AttentionOverWindow : Model {
  constexpr auto forward(Tensor<f32, Frames, 16> x) const {
    State<f32, 5, 16> keys("keys"), values("values");
    auto ks = concat<0>(keys.read(x), linear(x, parameter<f32, 16, 16>(x, "k"))),
         vs = concat<0>(values.read(x), linear(x, parameter<f32, 16, 16>(x, "v")));
    keys.store(last<0, 5>(ks));
    values.store(last<0, 5>(vs));
    auto y = x + attention<2>(linear(x, parameter<f32, 16, 16>(x, "q")), ks, vs, causal);
    return linear(y * mean<0>(ks), parameter<f32, 3, 16>(x, "o"));
  }
};
// A loop whose last state, which is not a row of the entry, is read after row-wise operations.
struct StepsBetweenRows : Model {
  constexpr auto forward(Tensor<f32, Frames, 6> x) const {
    State<f32, 6, 1> sums("sums");
    auto [last, all] = scan(reshape<6>(sums.read(x)), tanh(x), [](const auto &sum, const auto &here) {
      auto next = sum * 0.5 + here;
      return std::pair{next, next};
    });
    auto y = linear(all, parameter<f32, 6, 6>(x, "w"));
    sums.store(reshape<6, 1>(last));
    return y + matmul(y, expand<6, 6>(reshape<6, 1>(last)));
  }
};
// Rows of a state that the same call replaces, and rows that are a result.
struct RowsOfReplacedState : Model {
  constexpr auto forward(Tensor<f32, 2, 6> x) const {
    State<f32, 5, 6> kept("kept");
    auto before = kept.read(x);
    kept.store(concat<0>(slice<0, 2, 3>(before), x));
    return kiln::outputs(last<0, 2>(before) + x, slice<0, 0, 2>(before),
                         linear(slice<0, 1, 3>(before), parameter<f32, 4, 6>(x, "w")));
  }
};
// Each layer has a window of 16-bit floats, part of which is read before and after its rows are written.
struct WindowOfLayer : Layer<WindowOfLayer> {
  using Layer<WindowOfLayer>::Layer;
  constexpr auto forward(const tensor auto &x) const {
    State<bf16, 3, 8> heard("heard");
    auto rows = tanh(x);
    auto longer = concat<0>(heard.read(x), rows);
    heard.store(last<0, 3>(longer));
    return rows + sum<0>(heard.read<2>(x)) * mean<0>(longer);
  }
};
struct WindowsOfLayers : Model {
  Stack<2, WindowOfLayer> h{"h"};
  constexpr auto forward(Tensor<bf16, Frames, 8> x) const { return h(x); }
};
// Causal convolutions, the second one of each channel by itself.
struct CausalConvolutions : Model {
  CausalConv1d<6, 10, 3, Conv1dOptions{.dilation = 2}> wide{"wide"};
  CausalConv1d<10, 10, 4, Conv1dOptions{.groups = 10}, false> deep{"deep"};
  constexpr auto forward(Tensor<f32, Frames, 6> x) const { return deep(relu(wide(x))); }
};
// Rows of the stream that the next call does not read again, and chunks with a chunk before them.
struct ChunksOfStrides : Model {
  CausalConv1d<6, 10, 3, Conv1dOptions{.stride = 2, .groups = 2}> narrow{"narrow"};
  CausalConv1d<10, 8, 2, Conv1dOptions{.stride = 3}> skipping{"skipping"};
  StreamingAttention<8, 2, 3, 6> attend{"attend"};
  constexpr auto forward(Tensor<f32, 18 * Frames, 6> x) const { return attend(skipping(narrow(x))); }
};
struct CausalChunk : Model {
  StreamingAttention<8, 2, 5, 5> attend{"attend"};
  StreamingAttention<8, 1, 5, 0> inside{"inside"};
  constexpr auto forward(Tensor<f32, 5, 8> x) const { return inside(x + attend(x, causal | softcap(2))); }
};
#define KNOWN_STREAM(name)                                                                                             \
  TEST(KnownStreams, name) { expectRight<name>(); }                                                                    \
  TEST(KnownStreams, name##InBatches) { expectTrialRight<name>({.isBatched = true}, &Verdict::batches); }
KNOWN_STREAM(WindowOfRows)
KNOWN_STREAM(WindowsOfLayers)
KNOWN_STREAM(WindowsOfWindows)
KNOWN_STREAM(AttentionOverWindow)
KNOWN_STREAM(StepsBetweenRows)
KNOWN_STREAM(RowsOfReplacedState)
KNOWN_STREAM(CausalConvolutions)
KNOWN_STREAM(CausalChunk)
TEST(KnownStreams, ChunksOfStrides) { expectRight<ChunksOfStrides>(); }

} // namespace
} // namespace kiln::fuzz
