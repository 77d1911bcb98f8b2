// SPDX-License-Identifier: Apache-2.0
//
// conv2d: y[..., i, j, o] = sum over a, b, c of x[..., i s + a d - p, j s + b d - p, c] weight[o, c, a, b] + bias[o],
// where x is 0 outside of the image and each group of outputs sees its own channels.
//
// A window of 3 x 3 with stride 1 may be computed by Winograd's F(2 x 2, 3 x 3) (Lavin and Gray 2016), which sums other
// terms than the window's; see WinogradSize.
#include <algorithm>
#include <cmath>
#include <optional>

#include "compiler/interpreter/OpCall.h"

namespace kiln::interpreter {

std::int64_t windowCount(const OpCall &call, std::int64_t extent, std::int64_t kernel, int stride, int padding,
                         int dilation) {
  call.require(kernel >= 1 && stride >= 1 && dilation >= 1 && padding >= 0 && padding < (1 << 20) &&
                   dilation < (1 << 20) && kernel < (1 << 20),
               "wrong window; expected stride, dilation and kernel of at least 1 and padding of at least 0");
  const std::int64_t room = extent + 2 * std::int64_t{padding} - dilation * (kernel - 1) - 1;
  call.require(room >= 0, "image is too small; expected one that has a window");
  return room / stride + 1;
}

namespace {

/// The operands with named dimensions: images [n, height, width, channels].
struct Convolution {
  explicit Convolution(const OpCall &call)
      : call(call), x(call[0]), weight(call[1]), window(call.attributes().window), arithmetic(x.element) {
    height = x.shape[x.rank() - 3];
    width = x.shape[x.rank() - 2];
    channels = x.shape.back();
    images = x.size() / (height * width * channels);
    outputs = weight.shape[0];
    each = weight.shape[1];
    kernelHeight = weight.shape[2];
    kernelWidth = weight.shape[3];
  }

  /// Returns the pixel at `row` and `column`, which may be in the padding.
  Value pixel(std::int64_t image, std::int64_t row, std::int64_t column, std::int64_t channel) const {
    if (row < 0 || row >= height || column < 0 || column >= width)
      return exact(0);
    return x.at(((image * height + row) * width + column) * channels + channel);
  }
  Value weightAt(std::int64_t o, std::int64_t c, std::int64_t a, std::int64_t b) const {
    return weight.at(((o * each + c) * kernelHeight + a) * kernelWidth + b);
  }

  Value element(std::int64_t image, std::int64_t i, std::int64_t j, std::int64_t o) const {
    const std::int64_t first = o / (outputs / call.attributes().groups) * each;
    Sum sum(arithmetic);
    for (std::int64_t a = 0; a < kernelHeight; ++a)
      for (std::int64_t b = 0; b < kernelWidth; ++b)
        for (std::int64_t c = 0; c < each; ++c)
          sum.addProduct(pixel(image, i * window.stride.height + a * window.dilation.height - window.padding.height,
                               j * window.stride.width + b * window.dilation.width - window.padding.width, first + c),
                         weightAt(o, c, a, b));
    if (call.count() == 3)
      sum.add(call[2].at(o));
    return sum.result();
  }

  bool mayUseWinograd() const {
    return kernelHeight == 3 && kernelWidth == 3 && window.stride == Pair(1) && window.dilation == Pair(1) &&
           call.attributes().groups == 1;
  }

  const OpCall &call;
  const Tensor &x, &weight;
  const Window &window;
  Arithmetic arithmetic;
  std::int64_t images, height, width, channels, outputs, each, kernelHeight, kernelWidth;
};

/// An upper bound on the sum of |terms| to which the roundings of F(2 x 2, 3 x 3) apply:
///   Y = A^T [ sum over c of (G g G^T) * (B^T d B) ] A
/// with the absolute values of all of these. A pixel may be any of the four of its tile; only its own window of the
/// tile contributes to it.
class WinogradSize {
public:
  explicit WinogradSize(const Convolution &c) : c(c), filters(static_cast<std::size_t>(c.outputs * c.channels * 16)) {
    static constexpr double G[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, {0, 0, 1}};
    for (std::int64_t filter = 0; filter < c.outputs * c.channels; ++filter)
      for (std::int64_t u = 0; u < 4; ++u)
        for (std::int64_t v = 0; v < 4; ++v)
          for (std::int64_t k = 0; k < 9; ++k)
            filters[(filter * 4 + u) * 4 + v] += G[u][k / 3] * G[v][k % 3] * sizeOf(c.weight.at(filter * 9 + k));
  }

  /// Prepares the pixel (i, j) of the result.
  void goTo(std::int64_t image, std::int64_t i, std::int64_t j) {
    for (std::int64_t place = 0; place < 4; ++place) {
      tiles[place].clear();
      for (std::int64_t channel = 0; channel < c.channels; ++channel)
        addTile(place, image, i - place / 2 - c.window.padding.height, j - place % 2 - c.window.padding.width, channel);
    }
  }

  /// Returns the bound for one output; infinite or NaN where the window has a non-finite element.
  double of(std::int64_t output) const {
    double most = 0;
    for (std::int64_t place = 0; place < 4; ++place) {
      double size = 0;
      for (std::int64_t channel = 0; channel < c.channels; ++channel)
        for (std::int64_t k = 0; k < 9; ++k)
          size += filters[(output * c.channels + channel) * 16 + (place / 2 + k / 3) * 4 + place % 2 + k % 3] *
                  tiles[place][channel * 9 + k];
      if (!std::isfinite(size))
        return size;
      most = std::max(most, size);
    }
    return most;
  }

private:
  static double sizeOf(Value x) { return std::abs(x.value) + x.error; }

  /// Appends the nine elements of B^T d B that contribute to the pixel at `place` of the tile that begins at (top,
  /// left).
  void addTile(std::int64_t place, std::int64_t image, std::int64_t top, std::int64_t left, std::int64_t channel) {
    static constexpr std::int64_t rows[4][2] = {{0, 2}, {1, 2}, {1, 2}, {1, 3}}; // the nonzero elements of B^T
    for (std::int64_t k = 0; k < 9; ++k) {
      double size = 0;
      for (std::int64_t row : rows[place / 2 + k / 3])
        for (std::int64_t column : rows[place % 2 + k % 3])
          size += sizeOf(c.pixel(image, top + row, left + column, channel));
      tiles[place].push_back(size);
    }
  }

  const Convolution &c;
  std::vector<double> filters;  // |G| |g| |G|^T, [output, channel, 4, 4]
  std::vector<double> tiles[4]; // [channel, 9], by the pixel's position in its tile
};

/// Adds the additional error of Winograd's algorithm. It may turn an infinity into a NaN; a NaN stays one.
Value withWinograd(const Convolution &convolution, Value direct, double size) {
  if (direct.isDetermined() && std::isnan(direct.value) && std::isnan(size))
    return direct;
  if (!direct.isDetermined() || !convolution.arithmetic.holds(size))
    return undetermined(direct.value);
  const double rounded = roundings(convolution.channels) + 12;
  return convolution.arithmetic.settle(direct.value, direct.error + convolution.arithmetic.unit * rounded * size);
}

} // namespace

Tensor evaluateConv2d(const OpCall &call) {
  call.requireOperands(2, 3);
  call.requireFloating();
  call.requireSameElements();
  call.requireRank(0, 3);
  call.require(call[1].rank() == 4, "wrong rank of the weight; expected 4");
  const Convolution c(call);
  const std::int64_t groups = call.attributes().groups;
  call.require(groups >= 1 && c.channels == c.each * groups,
               "wrong number of channels; expected the weight's times the groups");
  call.require(c.outputs % groups == 0, "outputs are not divisible; expected a multiple of the groups");
  call.require(call.count() == 2 || call[2].shape == TensorShape{c.outputs}, "wrong shape of the bias; expected [out]");
  const Window &w = c.window;
  TensorShape shape = c.x.shape;
  const std::int64_t rows = shape[shape.size() - 3] =
      windowCount(call, c.height, c.kernelHeight, w.stride.height, w.padding.height, w.dilation.height);
  const std::int64_t columns = shape[shape.size() - 2] =
      windowCount(call, c.width, c.kernelWidth, w.stride.width, w.padding.width, w.dilation.width);
  shape.back() = c.outputs;
  Tensor result = call.result(shape, c.x.element);
  std::optional<WinogradSize> winograd;
  if (c.mayUseWinograd())
    winograd.emplace(c);
  std::int64_t flat = 0;
  for (std::int64_t image = 0; image < c.images; ++image)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        if (winograd)
          winograd->goTo(image, i, j);
        for (std::int64_t o = 0; o < c.outputs; ++o, ++flat) {
          const Value direct = c.element(image, i, j, o);
          result.set(flat, winograd ? withWinograd(c, direct, winograd->of(o)) : direct);
        }
      }
  return result;
}

} // namespace kiln::interpreter
