// SPDX-License-Identifier: Apache-2.0
//
// Regression tests of models that had wrong results, crashed the compiler or were refused, as the smallest specs that
// reproduce it.
#include "known.h"

#include <limits>

namespace kiln::fuzz {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr Dim T{"T", 1, 17}, S{"S", 1, 5}, Two{"Two", 1, 2}, One{"One", 1, 1}, B{"B", 2, 5}, T3{"T3", 1, 3},
    T40{"T40", 1, 40}, T8{"T8", 1, 8};

// Halide drops the store of the last element of a row that is one longer than a vector
// (targets/halide/strategies/Placement.h, padStorage).
KNOWN(
    SoftmaxOfShortRows, (Tensor<f32, 2, 3> x, Tensor<f32, 5, 3> y, Tensor<f32, S, 9> z, Tensor<f32, S, 17> u) const {
      return kiln::outputs(softmax(x / 0.7), softmax(y / 0.7), softmax(z / 0.7), softmax(u / 0.7));
    })
KNOWN(
    SoftmaxAfterLookups, (Tensor<f32, 6, 7, 5> x, Tensor<i32, T> indices) const {
      return kiln::outputs(softmax(embedding(indices, parameter<f32, 41, 5>(x, "table"))),
                           softmax<2>(gather<0>(x, constant<i32, 2>(x, {0, 3}))),
                           gather<0>(softmax<0>(x), constant<i32, 2>(x, {1, 5})));
    })
KNOWN(
    SoftmaxAfterConcat, (Tensor<f32, 2, 3, 4, 5> x) const {
      auto joined = concat<3>(linear(x, parameter<f32, 4, 5>(x, "w")), x);
      return kiln::outputs(softmax<3>(joined), log_softmax<3>(joined));
    })
KNOWN(LogSoftmaxNextToAnAxisOfOne, (Tensor<f32, 4, 1, 3> x) const { return mean<2>(log_softmax<1>(x)); })
KNOWN(SoftmaxOfAnExtentThatIsAlwaysOne, (Tensor<f32, 1, 1, One, One> x) const { return softmax<3>(x); })
KNOWN(
    AttentionOfWidthOne, (Tensor<f32, 3, 1> x, Tensor<f32, 2, 5, 1> y)
                             const { return kiln::outputs(attention<1>(x, x, x), attention<1>(y, y, y)); })
KNOWN(SumsOfIntegers, (Tensor<i32, S, 2, 40> x) const { return sum<2>(x); })

// Dimensions of 1 next to dynamic dimensions.
KNOWN(
    AttentionOfABatchOfOne, (Tensor<f32, 1, T, 8> x, Tensor<i32, 1> n, Tensor<f32, 1, T, T> m) const {
      return kiln::outputs(attention<2>(x, x, x, causal | lengths(n)), attention<2>(x, x, x, mask(m)),
                           attention_weights<2>(x, x), attention<2>(reshape<1, T, 8>(x + 1), x, x));
    })

KNOWN(
    HeadsOfASliceOfARunTimeWidth,
    (Tensor<f32, 1, 3, One> x, Tensor<f32, 1, 2, 1> k) const { return attention_scores<1>(slice<2, 0, 1>(x), k); })

// Only one channel of each group was read.
KNOWN(
    GroupsOfSeveralChannelsAndOneOutput, (Tensor<f32, 1, 1, 4> x, Tensor<f32, 5, 5, 6> y) const {
      return kiln::outputs(conv2d<Conv2dOptions{.groups = 2}>(x, constant<f32, 2, 2, 1, 1>(x, {1, 10, 100, 1000})),
                           conv2d<Conv2dOptions{.padding = 1, .groups = 3}>(y, parameter<f32, 3, 2, 3, 3>(y, "w")));
    })

// A window's second column was loaded with the element before it, which row 0 does not have
// (targets/halide/workarounds/StridedLoads.h).
struct ColumnsOfEverySecondPixel : Model {
  constexpr auto forward(Tensor<f32, 2, 13, 1, 1> x) const {
    return conv2d<Conv2dOptions{.stride = Pair(1, 2), .padding = Pair(2, 0), .dilation = Pair(1, 3)}>(
        mean<3>(x), parameter<f32, 1, 1, 1, 2>(x, "w"));
  }
};
TEST(Known, ColumnsOfEverySecondPixel) { expectRight<ColumnsOfEverySecondPixel>("f16"); }

// LLVM 22 stored 32 bits for the last element (compiler/object/MaskedStores.h).
KNOWN(
    OneMoreShortFloatThanAVector,
    (Tensor<bf16, 5> x, Tensor<f16, 3, 17> y) const { return kiln::outputs(x + x, y + y); })

// LLVM 14 cannot select AVX-512 instructions for a part of this kernel, so it is compiled for AVX2.
KNOWN(
    PlanesOfThreeColumns, (Tensor<f32, 3, 4, 3, 3> w, Tensor<f32, 2, 4, 4, 3> x) const {
      return conv2d<Conv2dOptions{.stride = Pair(4, 4), .padding = Pair(1, 1), .dilation = Pair(2, 2)}>(
          transpose<0, 1, 3, 2>(x), w);
    })

// Quantised weights with a storage format that the spec states, which overrides the build option: tied, in a stack's
// layers, of either storage order, of a convolution.
struct StoredBySpec : Model {
  struct Layer {
    Linear<16, 16, false, WeightOrder::in_out, int8> fc{"fc"};
    constexpr auto forward(const tensor auto &x) const { return relu(fc(x)); }
  };
  Embedding<37, 16, int8> table{"table"};
  Stack<2, Layer> h{"h"};
  Conv2d<3, 16, 2, Conv2dOptions{.stride = 2}, true, stored<f16>> patches{"patches"};
  constexpr auto forward(Tensor<i32, T> tokens, Tensor<f32, 6, 8, 3> image) const {
    auto left = linear(h(table(tokens)), parameter<f32, 16, 16>(tokens, "left"));
    return kiln::outputs(logits(left, table), patches(image));
  }
};
TEST(Known, StoredBySpec) { expectRight<StoredBySpec>("bf16"); }

// Extents that are expressions of others, inside of a kernel.
KNOWN(
    SumsOfExtents, (Tensor<f32, 2 * T, 4> a, Tensor<f32, 2 * T, 4> b, Tensor<f32, T + 1, 4> c, Tensor<f32, T + 1, 4> d)
                       const { return kiln::outputs(concat<0>(a, b), concat<0>(c, d), concat<0>(c, a * 2, d)); })
KNOWN(
    PooledExtentThatIsAlsoAnother, (Tensor<f32, T + 1, 3, T + 3, 1> x) const {
      return kiln::outputs(max_pool2d<3, Pool2dOptions{.stride = 1}>(x), avg_pool2d<3, Pool2dOptions{.stride = 1}>(x));
    })
KNOWN(ProductOfDifferences, (Tensor<f32, B - 1, T + 2, 7> x) const { return sum<2>(x); })

KNOWN(CopyOfDifferences, (Tensor<f32, B - 1, 1, B - 1, 1> x) const { return x; })

// Dynamic dimensions with only one possible value, in storage for a vector of rows.
inline constexpr Dim Five{"Five", 5, 5};
KNOWN(ExtentsOfOneValue, (Tensor<f32, 1, Five + 3, Five + 3> x) const { return softmax<0>(x); })

// A vector whose lanes all read the same element.
KNOWN(ConcatOfIntegers, (Tensor<i32, 2 * T + 1> x, Tensor<i32, 2> y) const { return concat<0>(y, x, y); })

// Constants from an expand operation, in kernels of collapsed rows.
KNOWN(
    LinearOfAConstant, (Tensor<f32, 16> x) const {
      return linear(expand<11, 2, 5>(constant<f32>(x, {1})), parameter<f32, 16, 5>(x, "w"), x);
    })
KNOWN(
    LookupsOfAConstant, (Tensor<f32, 3, 2> x) const {
      return kiln::outputs(embedding(expand<6, 1>(constant<i32>(x, {1})), x),
                           less(constant<f32, 2, 2, 2>(x, {0, 0, 0, 0, 0, 0, 0, 0}), 0.5));
    })
KNOWN(WeightOfRankZeroAsAMatrix, (Tensor<f32, 2> x) const { return reshape<1, 1>(parameter<f32>(x, "w")); })
KNOWN(ProductOfOtherRanks, (Tensor<f32, 2, 2, 1, 1> a, Tensor<f32, 2, 2, 1, 1, 1> b) const { return matmul(a, b); })

// Infinities and NaN as constants.
KNOWN(
    InfiniteConstants, (Tensor<f32, T, 4> x, Tensor<boolean, T, 4> c) const {
      return kiln::outputs(where(c, x, -infinity), maximum(x, nan), softmax(where(less(x, 1.5), x, -infinity)),
                           less(x, infinity));
    })

KNOWN(NanIsLessThanNothing, (Tensor<f32, 6, 1> x) const { return kiln::outputs(less(log(x), 1), less(1, log(x))); })

// A norm of a sum, where the sum is computed in place in one of its operands.
KNOWN(
    NormOfAVectorInPlace, (Tensor<f32, 40> x) const {
      auto w = parameter<f32, 40, 40>(x, "w");
      auto product = [&](const tensor auto &v) { return reshape<40>(matmul(reshape<1, 40>(v), w)); };
      auto half = product(x);
      auto total = x - half * sum<0>(product(tanh(half)));
      return product(rms_norm(total, parameter<f32, 40>(x, "g"))) + total;
    })
KNOWN(
    NormTimesAnotherTensorInPlace, (Tensor<f32, T, 40> x) const {
      auto w = parameter<f32, 40, 40>(x, "w");
      auto gate = matmul(x, w), total = maximum(x, tanh(gate) - sum<0>(matmul(gate, w)));
      return matmul(rms_norm(total, parameter<f32, 40>(x, "g")) * gate, w) + total;
    })

// The result of an expand has a lower rank than the concatenation.
KNOWN(
    GeluOfAConcatWithAConstant,
    (Tensor<f32, 1, 1, 1, 3> x) const { return gelu_tanh(concat<0>(x, expand<1, 1, 1, 3>(constant<f32>(x, {1.0})))); })

// Integers wrap around, and may be divided by any number.
KNOWN(
    Integers, (Tensor<i32, T> x, Tensor<f32, 1, 1, 1> y) const {
      auto least = constant<i32>(x, {-2147483648.0});
      return kiln::outputs(x * 1000000007, x + 2147483647, x / (x - 2), (x * 0 + least) / (x / x * -1), least - x,
                           positions<0>(y) - 1);
    })
KNOWN(
    IndicesOutsideOfTables, (Tensor<i32, T> x, Tensor<f32, 7, 3> z) const {
      return kiln::outputs(embedding(x * 100000, parameter<f32, 41, 5>(z, "table")), gather<0>(z, x + 100000000),
                           gather<1>(z, x * 700000000));
    })

// Halide moves additions into the bounds of an index (targets/halide/translate/ScalarOps.cpp, toIndex).
KNOWN(
    ExtremeIndices, (Tensor<f32, T, T> x, Tensor<i32, 9> zeros) const {
      auto largest = zeros * 0 + 2147483647, least = zeros * 0 - 2147483647 - 1;
      return kiln::outputs(embedding(largest, x), embedding(least, x), gather<1>(x, largest), gather<1>(x, least));
    })

// One linear layer gives both keys and values.
KNOWN(
    KeysAreValues, (Tensor<f32, T, 8> x) const {
      auto k = linear(x, parameter<f32, 8, 8>(x, "k"));
      return attention<2>(linear(x, parameter<f32, 8, 8>(x, "q")), k, k);
    })

// A weight that is concatenated with another one in one entry and used by itself in the other.
struct UsedUnlike : Model {
  constexpr auto forward(Tensor<f32, 4> x) const { return parameter<f32, 8, 8>(x, "q") + sum<0>(x); }
  constexpr auto second(Tensor<f32, T, 8> x) const {
    return attention<2>(linear(x, parameter<f32, 8, 8>(x, "q")), linear(x, parameter<f32, 8, 8>(x, "k")), x);
  }
  static constexpr auto entries() {
    return std::tuple{entry("forward", &UsedUnlike::forward), entry("second", &UsedUnlike::second)};
  }
};
TEST(Known, UsedUnlike) { expectRight<UsedUnlike>(); }

// The inner layers of nested stacks read a weight of the outer one.
struct Inner : Layer<Inner> {
  using Layer::Layer;
  constexpr auto forward(const tensor auto &x, const tensor auto &weight) const { return x * 0.5 + weight; }
};
struct Outer : Layer<Outer> {
  using Layer::Layer;
  Stack<3, Inner> inner{"inner"};
  constexpr auto forward(const tensor auto &x) const { return inner(x, parameter<f32, 5>(x, "weight")); }
};
struct WeightsOfTheOuterLayer : Model {
  Stack<2, Outer> outer{"outer"};
  constexpr auto forward(Tensor<f32, T, 5> x) const { return outer(x); }
};
TEST(Known, WeightsOfTheOuterLayer) { expectRight<WeightsOfTheOuterLayer>(); }

// States that are read twice, stored in each other, appended in columns.
struct States : Model {
  State<f32, 2, 3> a{"a"}, b{"b"};
  State<f32, 8, 1> columns{"columns"};
  constexpr auto forward(Tensor<f32, 2, 3> x, Tensor<f32, One, One> y) const {
    auto whole = a.read(x), other = b.read(x);
    auto first = a.read<1>(x);
    a.store(other + 1);
    b.store(whole);
    return kiln::outputs(whole, first, other, columns.append<3>(slice<1, 0, 1>(y)));
  }
};
TEST(Known, States) { expectRight<States>(); }

// The product of two square roots of negative numbers must be NaN, though the root of their product is a number.
KNOWN(
    ProductsOfSquareRoots, (Tensor<f32, 4> x, Tensor<f32, 4> y) const {
      return kiln::outputs(sqrt(x) * sqrt(x), sqrt(x - 3) * sqrt(y - 3), sqrt(x) * y * sqrt(x), sqrt(x) / y * sqrt(x));
    })
KNOWN(
    SquaresOfSquareRoots, (Tensor<f32, 1, 1, 2> x, Tensor<f32, T, 5> y) const {
      return kiln::outputs(rms_norm(sqrt(x), constant<f32, 2>(x, {1, 2})), sum<1>(sqrt(y) * sqrt(y)));
    })
// An undetermined value that Halide simplifies to 0: LLVM did not store the NaN that it had inferred for the norm.
KNOWN(
    NormsOfLogarithmsOfZero, (Tensor<f32, 1, 1> x) const {
      auto one = constant<f32, 1>(x, {1});
      return kiln::outputs(x + 1, layer_norm(log(x - x), one, one), rms_norm(log(x * 0), one) * 2,
                           layer_norm(log(x / x - 1), one, one), rms_norm(log(0 / x), one));
    })
// Values that are NaN or infinite for any x, and values computed from them.
KNOWN(
    DivisionsByZero, (Tensor<f32, 1, 1> x, Tensor<f32, S, 9> y) const {
      return kiln::outputs(x + 1, x / constant<f32>(x, {0}), y / constant<f32>(y, {-0.0}), 2 / (x * 0),
                           rms_norm(x / constant<f32>(x, {0}), constant<f32, 1>(x, {1})));
    })
// Values that are infinite or NaN at compile time, and values computed from them.
KNOWN(
    NormsOfConstants, (Tensor<f32, 1> x, Tensor<f32, S, 9> y) const {
      auto zeros = expand<One, 1, 1>(constant<f32>(x, {0})), huge = expand<One, 1, 1>(constant<f32>(x, {3e38}));
      return kiln::outputs(rms_norm(log(zeros), x), rms_norm(sqrt(zeros - 1), x), huge * huge * x - huge * huge,
                           y * sum<0>(sum<0>(sum<0>(log(zeros)))) + y, softmax(log(zeros)));
    })
// The mask has the result's type; its head dimension comes after its rows.
KNOWN(
    MaskOfTheResultsType, (Tensor<boolean, 3, 3, 3> x, Tensor<f32, 3, 9> y) const {
      auto masked = where(x, constant<f32>(y, {0}), constant<f32>(y, {0.5}));
      return attention<3, 3>(y, y, y, mask(masked));
    })
// Rows that are computed from x are written transposed, and over all elements of a row.
KNOWN(
    TransposedAfterwards, (Tensor<f32, 9, 9> x, Tensor<f32, 9, 9> w) const {
      return kiln::outputs(transpose<1, 0>(tanh(x)), matmul(tanh(x) * 2, w),
                           concat<0>(slice<0, 3, 6>(tanh(x)), slice<0, 0, 3>(tanh(x))));
    })
// The maximum of positions: Halide skipped loop iterations because of a subtraction that overflowed.
KNOWN(
    LargestPosition,
    (Tensor<i32, T> x) const { return kiln::outputs(max<0>(positions<0>(x)), max<0>(0 - positions<0>(x))); })
// The same with positions that are computed in a separate loop.
KNOWN(
    LargestOfTheLastPositions, (Tensor<i32, B> x) const {
      auto last2 = last<0, 2>(positions<0>(x));
      return kiln::outputs(max<0>(last2), max<0>(0 - last2), argmax<0>(last2), argmax<0>(0 - last2));
    })
// Decomposed attention whose values have a dynamic width, which the attention operation does not support.
KNOWN(
    AttentionOfARunTimeWidth, (Tensor<f32, One, 2, 2> x, Tensor<f32, One, 2, One> v)
                                  const { return matmul(softmax<2>(matmul(x, transpose<0, 2, 1>(x))), v); })

// The slice is in two kernels: one recomputes the positions, the other reads them.
KNOWN(
    PositionsHereAndThere, (Tensor<f32, 1, 1, 2> a, Tensor<f32, 1, 2, 1> b, Tensor<i32, 2> x) const {
      auto first = slice<0, 0, 1>(positions<0>(x));
      auto product = matmul(a, b);
      return kiln::outputs(where(less(first, first), product, product), sinusoidal<2>(first));
    })

// A vector of keys beyond the last one, with dynamic dimensions: the code generator divided by zero.
KNOWN(
    KeysOfAMultiple,
    (Tensor<f32, 1, 1, T3, 2> q, Tensor<f32, 1, 1, 4 * T3, 2> k) const { return attention<2, 2>(q, k, k, scale(2)); })
KNOWN(
    ColumnsOfAMultiple, (Tensor<f32, T, 2> x, Tensor<f32, 4 * T, 2> y, Tensor<f32, 16 * T, 2> z) const {
      return kiln::outputs(matmul(x, transpose<1, 0>(y)), matmul(x, transpose<1, 0>(z)));
    })
// Sums of one term, whose loop variable is in no index: a schedule did not find it.
KNOWN(
    WindowOfOneNumber, (Tensor<f32, 1, 1, 1> x) const {
      return conv2d<Conv2dOptions{.stride = Pair(1, 2)}>(x, parameter<f32, 14, 1, 1, 1>(x, "w"));
    })
KNOWN(
    WindowsOfOneNumber, (Tensor<f32, 1, 9, 1> x) const {
      return conv2d<Conv2dOptions{.stride = Pair(1, 2)}>(x, parameter<f32, 14, 1, 1, 1>(x, "w"));
    })
KNOWN(ReductionOfOne, (Tensor<f32, 1, 1> x) const { return linear(x, parameter<f32, 14, 1>(x, "w")) + sum<1>(x); })
// Fewer keys, for all values of the dynamic dimension, than a panel of columns has: the code generator assumed that the
// kernel never runs.
KNOWN(FewKeysInAllSizes, (Tensor<f32, 1, 1, Two, 2> x) const { return attention<2, 2>(x, x, x, scale(0.125)); })
KNOWN(
    FewColumnsInAllSizes,
    (Tensor<f32, Two, 9> x, Tensor<f32, 9, Two> y) const { return kiln::outputs(matmul(x, y), tanh(matmul(x, y))); })

// The simplifier crashed when it knew the bounds of the extents.
KNOWN(SquaresOfAnExtent, (Tensor<f32, T40, 1> x, Tensor<f32, T40, T40 * T40, T40> y) const { return matmul(y, x); })

// Halide took `if (a) x; if (b) y else z` for `if (a) x else if (b) y else z`: the last element was not written.
KNOWN(
    ConcatOfPositions,
    (Tensor<i32, T8> t, Tensor<i32, 4> a, Tensor<i32, 1> b) const { return concat<0>(positions<0>(t), a, b); })

// The number of positions is at most the number of rows, which a kernel in isolation does not know.
KNOWN(
    PositionsOfALongerTable,
    (Tensor<f32, T + 7, 1> table, Tensor<f32, T + 1> x) const { return embedding(positions<0>(x), table); })
// The output of each layer of a stack, also of nested stacks.
struct Layer5 : kiln::Layer<Layer5> {
  using Layer::Layer;
  Linear<5, 5> fc{"fc"};
  constexpr auto forward(const tensor auto &x) const { return tanh(fc(x)) + x; }
};
struct Group5 : kiln::Layer<Group5> {
  using Layer::Layer;
  Stack<3, Layer5> inner{"inner"};
  constexpr auto forward(const tensor auto &x) const {
    auto [y, all] = inner.hidden_states(x);
    return y * 0.5 + sum<0>(all);
  }
};
struct HiddenStates : Model {
  Stack<4, Layer5> plain{"plain"};
  Stack<2, Group5> nested{"nested"};
  constexpr auto forward(Tensor<f32, T, 5> x) const {
    auto [y, all] = plain.hidden_states(x);
    auto [z, groups] = nested.hidden_states(x);
    return kiln::outputs(y, all, mean<0>(all), groups);
  }
};
TEST(Known, HiddenStates) { expectRight<HiddenStates>(); }

// Values that depend on weights only are computed for each layer when the weights are bound, on a device as on CPUs.
struct ScaledByWeights {
  constexpr auto forward(const tensor auto &x) const {
    auto w = parameter<f32, 5>(x, "w"), v = parameter<f32, 5>(x, "v");
    return x * (w / sqrt(v + 2)) + v;
  }
};
struct ScalesOfWeights : Model {
  Stack<3, ScaledByWeights> layers{"layers"};
  constexpr auto forward(Tensor<f32, T, 5> x) const { return layers(x) / (parameter<f32, 5>(x, "u") - 3); }
};
TEST(Known, ScalesOfWeights) { expectRight<ScalesOfWeights>(); }

// Elementwise functions, sums and contractions of weights, in nested stacks, of weights of the enclosing model, and of
// bf16.
struct Normalised {
  constexpr auto forward(const tensor auto &x) const {
    auto v = parameter<f32, 7, 5>(x, "v");
    auto scale = parameter<f32, 7>(x, "g") / sqrt(sum<1>(v * v) + 1);
    return linear(linear(x, v * reshape<7, 1>(scale)), parameter<f32, 5, 7>(x, "back"));
  }
};
struct GroupOfNormalised {
  Stack<2, Normalised> inner{"inner"};
  constexpr auto forward(const tensor auto &x) const { return inner(x) * -exp(parameter<f32, 5>(x, "a_log")) + x; }
};
struct FollowsFromWeights : Model {
  Stack<3, GroupOfNormalised> groups{"groups"};
  constexpr auto scaled(const tensor auto &x) const {
    auto low = parameter<f32, 5, 2>(x, "low");
    auto whole = parameter<f32, 5, 5>(x, "whole") + matmul(low, parameter<f32, 2, 5>(x, "high")) * 0.5;
    return linear(x, whole) * cast<f32>(softplus(parameter<bf16, 5>(x, "short")));
  }
  constexpr auto forward(Tensor<f32, T, 5> x) const { return scaled(groups(x)); }
  constexpr auto other(Tensor<f32, T, 5> x) const { return scaled(x) + 1; }
  static constexpr auto entries() {
    return std::tuple{kiln::entry("forward", &FollowsFromWeights::forward),
                      kiln::entry("other", &FollowsFromWeights::other)};
  }
};
TEST(Known, FollowsFromWeights) { expectRight<FollowsFromWeights>(); }

// The new value of a state is computed from another state before that is replaced.
struct StateOfAnotherState : Model {
  State<f32, 3> first{"first"}, second{"second"};
  constexpr auto forward(Tensor<f32, 3> x) const {
    first.store(x);
    second.store(log_softmax(first.read(x)));
    return x * 2;
  }
};
TEST(Known, StateOfAnotherState) { expectRight<StateOfAnotherState>(); }

// A quantised weight as both operands of one contraction, and a table that is also the logits' weight.
struct StoredAndReadTwice : Model {
  constexpr auto forward(Tensor<f32, T, 5> x, Tensor<i32, T> indices) const {
    auto w = parameter<f32, 5, 5>(x, "w");
    auto table = parameter<f32, 17, 5>(x, "table");
    return kiln::outputs(linear(w, w), linear(x, w), linear(embedding(indices, table), table));
  }
};
TEST(Known, StoredAndReadTwice) { expectRight<StoredAndReadTwice>("int8"); }

// Weights of four bits in groups: with outputs along either dimension, of a convolution, a table, and sizes that are
// not a multiple of the group size.
struct StoredInGroups : Model {
  constexpr auto forward(Tensor<f32, T, 64> x, Tensor<i32, T> indices, Tensor<f32, 5, 7, 8> image) const {
    auto table = parameter<f32, 17, 64>(x, "table");
    auto y = matmul(linear(x + embedding(indices, table), parameter<f32, 96, 64>(x, "w")),
                    parameter<int4_zero<32>, 96, 40>(x, "m"));
    return kiln::outputs(linear(y, parameter<f32, 3, 40>(x, "odd")), linear(x, table),
                         conv2d<Conv2dOptions{}>(image, parameter<f32, 10, 8, 2, 2>(x, "window")));
  }
};
TEST(Known, StoredInGroups) { expectRight<StoredInGroups>("int4<64> except window=int4_zero"); }

// Three columns of a window in vectors of two, the last of which has a padding element.
struct WindowInGroups : Model {
  constexpr auto forward(Tensor<f32, 2, 2, 3, 8> image) const {
    return conv2d<Conv2dOptions{.padding = Pair(1, 0)}>(image, parameter<f32, 1, 8, 4, 3>(image, "window"));
  }
};
TEST(Known, WindowInGroups) { expectRight<WindowInGroups>("int4<32>"); }

// One output row of the convolution is a row of a GEMM, but its weights are in groups by window and channel.
struct WindowInGroupsOfOneRow : Model {
  constexpr auto forward(Tensor<f32, 1, 1, 32> image) const {
    return conv2d<Conv2dOptions{.padding = Pair(2, 0), .dilation = Pair(2, 1)}>(
        image, parameter<f32, 32, 32, 3, 1>(image, "window"), parameter<f32, 32>(image, "bias"));
  }
};
TEST(Known, WindowInGroupsOfOneRow) { expectRight<WindowInGroupsOfOneRow>("int4<32>"); }

// Int8 activations: for three attention projections, which are merged into one; for a table that is also the logits'
// weight; for one vector; and for several batches whose K and outputs are not multiples of the interleaved (VNNI) group
// and of the tile.
struct RowsOfInt8 : Model {
  constexpr auto forward(Tensor<f32, T, 10> x, Tensor<i32, T> indices, Tensor<f32, 10> one,
                         Tensor<f32, 3, 2, 7> many) const {
    auto q = linear(x, parameter<f32, 8, 10>(x, "q")), k = linear(x, parameter<f32, 8, 10>(x, "k")),
         v = linear(x, parameter<f32, 8, 10>(x, "v"));
    auto table = parameter<f32, 17, 10>(x, "table");
    return kiln::outputs(attention<2>(q, k, v), linear(embedding(indices, table) + x, table), linear(one, table),
                         linear(many, parameter<f32, 51, 7>(x, "odd"), parameter<f32, 51>(x, "bias")));
  }
};
TEST(Known, RowsOfInt8) { expectRight<RowsOfInt8>("int8", true); }

// Int8 activations and weights of four bits: many rows and one row, groups of each size, with and without zero points,
// also for the logits.
struct RowsOfInt8TimesInt4 : Model {
  constexpr auto forward(Tensor<f32, T, 64> x, Tensor<i32, T> indices, Tensor<f32, 128> one,
                         Tensor<f32, 3, 2, 96> many) const {
    auto table = parameter<f32, 17, 64>(x, "table");
    return kiln::outputs(linear(embedding(indices, table) + x, table),
                         linear(one, parameter<int4_zero<128>, 33, 128>(x, "one"), parameter<f32, 33>(x, "bias")),
                         linear<WeightOrder::in_out>(many, parameter<int4_zero<32>, 96, 51>(x, "odd")));
  }
};
TEST(Known, RowsOfInt8TimesInt4) { expectRight<RowsOfInt8TimesInt4>("int4<64>", true); }

// An extent that occurs only in the other entry's inputs.
struct ExtentOfAnotherEntry : Model {
  constexpr auto forward(Tensor<f32, T, 3> x) const { return x + 1; }
  constexpr auto second(Tensor<f32, 20, 3> x) const { return sum<0>(slice<0, 0, T>(x)); }
  static constexpr auto entries() {
    return std::tuple{entry("forward", &ExtentOfAnotherEntry::forward), entry("second", &ExtentOfAnotherEntry::second)};
  }
};
TEST(Known, ExtentOfAnotherEntry) { expectRight<ExtentOfAnotherEntry>(); }

} // namespace
} // namespace kiln::fuzz
