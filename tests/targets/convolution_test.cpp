// SPDX-License-Identifier: Apache-2.0
//
// Convolutions against a loop in f64: strides, padding, dilation, widths that no register tile divides, one channel and
// many, output channels that fill no tile, epilogues, and the configurations of both strategies' search spaces.
#include "Harness.h"
#include "compiler/schedule/SearchSpace.h"
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

struct Case {
  int64_t height, width, channels, outputs, kernelHeight, kernelWidth, stride, padding, dilation;
  int64_t resultHeight() const { return (height + 2 * padding - dilation * (kernelHeight - 1) - 1) / stride + 1; }
  int64_t resultWidth() const { return (width + 2 * padding - dilation * (kernelWidth - 1) - 1) / stride + 1; }
};

std::string list(std::initializer_list<int64_t> extents, const char *separator) {
  std::string text;
  for (int64_t extent : extents)
    text += (text.empty() ? "" : separator) + std::to_string(extent);
  return text;
}

std::string image(std::initializer_list<int64_t> extents) {
  return "tensor<?x" + list(extents, "x") + "xf32, affine_map<()[s0] -> (s0, " + list(extents, ", ") + ")>>";
}

/// Returns max(conv2d(x, w) + b, 0) + r for up to 3 images; r may be overwritten.
std::string textOf(const Case &c, const std::string &target) {
  int64_t tile = findTarget(target)->weightTile(96, 64);
  std::string x = image({c.height, c.width, c.channels}), y = image({c.resultHeight(), c.resultWidth(), c.outputs});
  std::string w = "tensor<" + list({c.outputs, c.channels, c.kernelHeight, c.kernelWidth}, "x") +
                  "xf32, #kiln.tiled<0, " + std::to_string(tile) + ">>";
  std::string b = "tensor<" + std::to_string(c.outputs) + "xf32>";
  auto pair = [](int64_t n) { return "[" + list({n, n}, ", ") + "]"; };
  return "func.func private @conv(%s0: index, %x: " + x + ", %w: " + w + ", %b: " + b + ", %r: " + y + ") -> " + y +
         " attributes {kiln.kernel, kiln.bounds = array<i64: 1, 3>, kiln.inplace = array<i64: 3>} {\n" +
         "  %0 = kiln.conv2d %x, %w, %b stride = " + pair(c.stride) + " padding = " + pair(c.padding) +
         " dilation = " + pair(c.dilation) + " groups = 1 : (" + x + ", " + w + ", " + b + ") -> " + y +
         "\n  %1 = kiln.relu %0 : " + y + "\n  %2 = kiln.add %1, %r : (" + y + ", " + y + ") -> " + y +
         "\n  return %2 : " + y + "\n}\n";
}

void check(Kernel &kernel, const Case &c, int64_t batch) {
  Tensor x = randomTensor({batch, c.height, c.width, c.channels}),
         w = randomTensor({c.outputs, c.channels, c.kernelHeight, c.kernelWidth}), b = randomTensor({c.outputs}),
         r = randomTensor({batch, c.resultHeight(), c.resultWidth(), c.outputs}), expected = Tensor::zeros(r.shape);
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t i = 0; i < c.resultHeight(); ++i)
      for (int64_t j = 0; j < c.resultWidth(); ++j)
        for (int64_t o = 0; o < c.outputs; ++o) {
          double sum = b.at({o});
          for (int64_t p = 0; p < c.kernelHeight; ++p)
            for (int64_t q = 0; q < c.kernelWidth; ++q) {
              int64_t row = i * c.stride + p * c.dilation - c.padding,
                      pixel = j * c.stride + q * c.dilation - c.padding;
              if (row < 0 || row >= c.height || pixel < 0 || pixel >= c.width)
                continue;
              for (int64_t k = 0; k < c.channels; ++k)
                sum += x.at({n, row, pixel, k}) * w.at({o, k, p, q});
            }
          expected.at({n, i, j, o}) = std::max(sum, 0.0) + r.at({n, i, j, o});
        }
  expectClose(kernel.run({batch}, {x, w, b, r})[0], expected, 1e-5, false, 1);
  expectClose(kernel.run({batch}, {x, w, b, r}, /*aliased=*/3, /*workers=*/2)[0], expected, 1e-5, false, 1);
}

class Convolution : public ::testing::TestWithParam<std::string> {};

TEST_P(Convolution, Shapes) {
  for (const Case &c :
       {Case{7, 7, 64, 50, 3, 3, 1, 1, 1}, Case{15, 15, 24, 50, 3, 3, 1, 1, 1}, Case{14, 15, 128, 33, 3, 3, 2, 1, 1},
        Case{9, 29, 3, 64, 7, 7, 2, 3, 1}, Case{12, 12, 5, 70, 3, 3, 1, 2, 2}, Case{12, 9, 16, 17, 3, 3, 3, 0, 1},
        Case{6, 8, 112, 49, 1, 1, 2, 0, 1}, Case{5, 2, 4, 9, 5, 1, 1, 0, 1}}) {
    SCOPED_TRACE(list({c.height, c.width, c.channels, c.outputs, c.kernelHeight, c.kernelWidth}, " "));
    Kernel kernel(textOf(c, GetParam()), GetParam());
    EXPECT_EQ(kernel.object().strategy, "convolution");
    for (int64_t batch : {1, 3})
      check(kernel, c, batch);
  }
}

TEST_P(Convolution, MinimalFiltering) {
  for (const Case &c : {Case{11, 12, 96, 50, 3, 3, 1, 1, 1}, Case{20, 9, 40, 64, 3, 3, 1, 0, 1},
                        Case{2, 61, 33, 97, 3, 3, 1, 2, 1}, Case{70, 2, 32, 32, 3, 3, 1, 1, 1}}) {
    SCOPED_TRACE(list({c.height, c.width, c.channels, c.outputs}, " "));
    Kernel kernel(textOf(c, GetParam()), GetParam());
    EXPECT_EQ(kernel.object().strategy, "winograd");
    EXPECT_LT(describe(textOf(c, GetParam()), GetParam()).operationShare, 0.5);
    for (int64_t batch : {1, 3})
      check(kernel, c, batch);
  }
}

TEST_P(Convolution, ConfigsOfTheSearchSpace) {
  for (const Case &c :
       {Case{11, 13, 96, 50, 3, 3, 1, 1, 1}, Case{11, 13, 96, 50, 3, 3, 1, 1, 2}, Case{12, 9, 48, 33, 3, 3, 3, 0, 1}}) {
    std::string text = textOf(c, GetParam());
    for (const ScheduleConfig &config : configsToTry(describe(text, GetParam()).space, 6, GetParam())) {
      SCOPED_TRACE(toString(config));
      Kernel kernel(text, GetParam(), &config);
      for (int64_t batch : {1, 2})
        check(kernel, c, batch);
    }
  }
}

TEST_P(Convolution, WindowsSideBySideShareNoPixel) {
  // A window of 16 columns whose pixels all stayed in registers would leave none for a tile of accumulators.
  const std::string text = textOf({64, 224, 3, 96, 16, 16, 16, 0, 1}, GetParam());
  EXPECT_GE(defaultConfigOf(describe(text, GetParam()).space).at("m"), 4);
}

INSTANTIATE_TEST_SUITE_P(Targets, Convolution, ::testing::ValuesIn(runnableTargets()),
                         [](const auto &info) { return "v" + info.param.substr(8); });

} // namespace
} // namespace kiln::testing
