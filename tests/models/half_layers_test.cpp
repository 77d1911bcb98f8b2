// SPDX-License-Identifier: Apache-2.0
//
// Layers of every kind in f16 and in bf16, with inputs and outputs of these types, within the interpreter's bounds for
// ops that round their results once or leave them in f32.
#include "half_floats.h"
#include "half_layers.h"
#include "session.h"
#include "specs/half_layers.h"
#include "support.h"
#include "tests/interpreter/traced.h"

namespace kiln::testing {
namespace {

using interpreter::TensorShape;
using Bits = std::vector<std::uint16_t>;

Session<half_layers_t> &session() {
  static Session<half_layers_t> only(KILN_TEST_LIBRARY(half_layers, HALF_LAYERS_WEIGHTS));
  return only;
}

interpreter::Traced<interpreter::SampledInterpreter> &oracle() {
  static interpreter::Traced<interpreter::SampledInterpreter> only(trace<specs::HalvesOfLayers>());
  return only;
}

struct Type {
  const char *name;
  ElementType element;
  std::uint16_t (*bits)(float);
  float (*number)(std::uint16_t);
  decltype(&half_layers_rows_half) rows;
  decltype(&half_layers_image_half) image;
};
const Type types[] = {
    {"half", ElementType::f16, to_f16, from_f16, half_layers_rows_half, half_layers_image_half},
    {"bfloat", ElementType::bf16, to_bf16, from_bf16, half_layers_rows_bfloat, half_layers_image_bfloat}};

/// Returns numbers in [-2, 2) for the library and for the interpreter.
std::pair<Input<std::uint16_t>, interpreter::Tensor> inputOf(const Type &type, const char *name,
                                                             const TensorShape &shape) {
  const interpreter::Tensor x = interpreter::uniform(name, shape, 2);
  Bits bits;
  for (double value : x.values)
    bits.push_back(type.bits(static_cast<float>(value)));
  return {std::piecewise_construct, std::forward_as_tuple(bits),
          std::forward_as_tuple(interpreter::Tensor::of(type.element, shape, x.values))};
}

void expectRight(const Type &type, const interpreter::Tensor &expected, const Output<std::uint16_t> &output,
                 const char *name) {
  std::vector<float> got;
  for (std::uint16_t bits : output.values())
    got.push_back(type.number(bits));
  const interpreter::Comparison comparison = interpreter::compare(expected, std::span(std::as_const(got)));
  EXPECT_TRUE(comparison.isRight) << name << ": " << describe(comparison);
  EXPECT_EQ(comparison.undetermined, 0U) << name;
}

TEST(HalfLayers, OfRows) {
  for (const Type &type : types)
    for (std::int64_t n : {2, 7, 20}) {
      SCOPED_TRACE(std::string(type.name) + " " + std::to_string(n));
      auto [input, x] = inputOf(type, "rows", {n, 12});
      Output<std::uint16_t> outputs(n * 12), mixed(n * 12), added(n * 12), sums(n * 12), logarithms(3 * n * n);
      session().run(type.rows, n, input, outputs, mixed, added, sums, logarithms);
      const auto expected = oracle().run(std::string("rows_") + type.name, {{"steps", n}}, {x});
      expectRight(type, expected[0], outputs, "lstm");
      expectRight(type, expected[1], mixed, "block");
      expectRight(type, expected[2], added, "additive attention");
      expectRight(type, expected[3], sums, "cumsum of l2_normalize");
      expectRight(type, expected[4], logarithms, "log_softmax of attention_weights");
    }
}

TEST(HalfLayers, OfImages) {
  for (const Type &type : types) {
    SCOPED_TRACE(type.name);
    auto [input, x] = inputOf(type, "image", {4, 6, 12});
    Output<std::uint16_t> pooled(2 * 3 * 10), gated(4 * 6 * 12), merged(2 * 3 * 24);
    session().run(type.image, input, pooled, gated, merged);
    const auto expected = oracle().run(std::string("image_") + type.name, {}, {x});
    expectRight(type, expected[0], pooled, "convolution");
    expectRight(type, expected[1], gated, "group norm");
    expectRight(type, expected[2], merged, "swin");
  }
}

} // namespace
} // namespace kiln::testing
