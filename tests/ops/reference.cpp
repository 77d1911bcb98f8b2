// SPDX-License-Identifier: Apache-2.0
#include "reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace kiln::testing {

std::int64_t countOf(const Shape &shape) {
  std::int64_t count = 1;
  for (std::int64_t extent : shape)
    count *= extent;
  return count;
}

std::size_t Array::offsetOf(const Index &index) const {
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < shape.size(); ++d)
    flat = flat * shape[d] + index[d];
  return static_cast<std::size_t>(flat);
}

Array generate(const Shape &shape, const std::function<double(const Index &)> &element) {
  Array result{shape, std::vector<double>(static_cast<std::size_t>(countOf(shape)))};
  Index index(shape.size(), 0);
  for (double &value : result.values) {
    value = element(index);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d])
        break;
      index[d] = 0;
    }
  }
  return result;
}

Array reshaped(Array array, Shape shape) {
  array.shape = std::move(shape);
  return array;
}

Array map(const Array &x, const std::function<double(double)> &function) {
  return generate(x.shape, [&](const Index &i) { return function(x.at(i)); });
}

/// Returns the element that a broadcast index refers to: axes are aligned at the last, and a dimension of 1 is
/// repeated.
static double broadcastAt(const Array &x, const Index &index) {
  Index own(x.shape.size());
  for (std::size_t d = 0; d < own.size(); ++d)
    own[d] = x.shape[d] == 1 ? 0 : index[index.size() - own.size() + d];
  return x.at(own);
}

static Shape broadcastShape(const Shape &a, const Shape &b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (const Shape *shape : {&a, &b})
    for (std::size_t d = 0; d < shape->size(); ++d)
      if ((*shape)[d] != 1)
        result[result.size() - shape->size() + d] = (*shape)[d];
  return result;
}

Array broadcast(const Array &a, const Array &b, const std::function<double(double, double)> &function) {
  return generate(broadcastShape(a.shape, b.shape),
                  [&](const Index &i) { return function(broadcastAt(a, i), broadcastAt(b, i)); });
}
Array plus(const Array &a, const Array &b) {
  return broadcast(a, b, [](double x, double y) { return x + y; });
}
Array minus(const Array &a, const Array &b) {
  return broadcast(a, b, [](double x, double y) { return x - y; });
}
Array times(const Array &a, const Array &b) {
  return broadcast(a, b, [](double x, double y) { return x * y; });
}
Array over(const Array &a, const Array &b) {
  return broadcast(a, b, [](double x, double y) { return x / y; });
}
/// Orders numbers with NaN as the largest, as NumPy's maximum and argmax do.
static bool isBefore(double x, double y) { return std::isnan(y) ? !std::isnan(x) : x < y; }

Array larger(const Array &a, const Array &b) {
  return broadcast(a, b, [](double x, double y) { return isBefore(x, y) ? y : x; });
}
Array number(double value) { return {{}, {value}}; }

/// Resolves a negative axis, which counts from the last.
static int axisOf(const Array &x, int axis) { return axis < 0 ? axis + static_cast<int>(x.shape.size()) : axis; }

static std::vector<double> lineAt(const Array &x, int axis, Index index) {
  std::vector<double> line;
  for (index[axis] = 0; index[axis] < x.shape[axis]; ++index[axis])
    line.push_back(x.at(index));
  return line;
}

Array reduce(const Array &x, int axis, const std::function<double(const std::vector<double> &)> &function) {
  axis = axisOf(x, axis);
  Shape shape = x.shape;
  shape.erase(shape.begin() + axis);
  return generate(shape, [&](Index index) {
    index.insert(index.begin() + axis, 0);
    return function(lineAt(x, axis, index));
  });
}

Array alongAxis(const Array &x, int axis, const std::function<void(std::vector<double> &)> &function) {
  axis = axisOf(x, axis);
  Array result = x;
  Shape lines = x.shape;
  lines[axis] = std::min<std::int64_t>(lines[axis], 1);
  generate(lines, [&](Index index) {
    std::vector<double> line = lineAt(x, axis, index);
    function(line);
    for (index[axis] = 0; index[axis] < x.shape[axis]; ++index[axis])
      result.at(index) = line[index[axis]];
    return 0.0;
  });
  return result;
}

static void softmaxLine(std::vector<double> &line) {
  const double most = *std::max_element(line.begin(), line.end());
  double total = 0;
  for (double &value : line)
    total += value = std::exp(value - most);
  for (double &value : line)
    value /= total;
}

Array softmax(const Array &x, int axis) { return alongAxis(x, axis, softmaxLine); }
Array logSoftmax(const Array &x, int axis) {
  return alongAxis(x, axis, [](std::vector<double> &line) {
    const double most = *std::max_element(line.begin(), line.end());
    double total = 0;
    for (double value : line)
      total += std::exp(value - most);
    for (double &value : line)
      value -= most + std::log(total);
  });
}

static double total(const std::vector<double> &line) {
  double result = 0;
  for (double value : line)
    result += value;
  return result;
}

Array mean(const Array &x, int axis) {
  return reduce(x, axis, [](auto &line) { return total(line) / static_cast<double>(line.size()); });
}
Array maximum(const Array &x, int axis) {
  return reduce(x, axis, [](auto &line) { return *std::max_element(line.begin(), line.end(), isBefore); });
}
Array sum(const Array &x, int axis) { return reduce(x, axis, total); }
Array argmax(const Array &x, int axis) {
  return reduce(x, axis, [](auto &line) {
    return static_cast<double>(std::max_element(line.begin(), line.end(), isBefore) - line.begin());
  });
}

Array layerNorm(const Array &x, const Array &weight, const Array &bias, double epsilon) {
  Array normal = alongAxis(x, static_cast<int>(x.shape.size()) - 1, [&](std::vector<double> &line) {
    const double n = static_cast<double>(line.size()), center = total(line) / n;
    double variance = 0;
    for (double value : line)
      variance += (value - center) * (value - center) / n;
    for (double &value : line)
      value = (value - center) / std::sqrt(variance + epsilon);
  });
  return plus(times(normal, weight), bias);
}

Array rmsNorm(const Array &x, const Array &weight, double epsilon) {
  Array normal = alongAxis(x, static_cast<int>(x.shape.size()) - 1, [&](std::vector<double> &line) {
    double squares = 0;
    for (double value : line)
      squares += value * value;
    const double root = std::sqrt(squares / static_cast<double>(line.size()) + epsilon);
    for (double &value : line)
      value /= root;
  });
  return times(normal, weight);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu(double x) { return x * sigmoid(x); }
double gelu(double x) { return x * 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double geluTanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

Array transpose(const Array &x, const std::vector<int> &permutation) {
  Shape shape;
  for (int axis : permutation)
    shape.push_back(x.shape[axis]);
  return generate(shape, [&](const Index &index) {
    Index source(index.size());
    for (std::size_t d = 0; d < index.size(); ++d)
      source[permutation[d]] = index[d];
    return x.at(source);
  });
}

Array concat(const std::vector<Array> &parts, int axis) {
  axis = axisOf(parts[0], axis);
  Shape shape = parts[0].shape;
  shape[axis] = 0;
  for (const Array &part : parts)
    shape[axis] += part.shape[axis];
  return generate(shape, [&](Index index) {
    std::size_t part = 0;
    for (; index[axis] >= parts[part].shape[axis]; ++part)
      index[axis] -= parts[part].shape[axis];
    return parts[part].at(index);
  });
}

Array slice(const Array &x, int axis, std::int64_t start, std::int64_t extent) {
  axis = axisOf(x, axis);
  Shape shape = x.shape;
  shape[axis] = extent;
  return generate(shape, [&](Index index) {
    index[axis] += start;
    return x.at(index);
  });
}

Array gather(const Array &table, const Array &indices, int axis) {
  axis = axisOf(table, axis);
  Shape shape(table.shape.begin(), table.shape.begin() + axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), table.shape.begin() + axis + 1, table.shape.end());
  const std::size_t rank = indices.shape.size();
  return generate(shape, [&](const Index &index) {
    const Index which(index.begin() + axis, index.begin() + axis + static_cast<std::int64_t>(rank));
    Index source(index.begin(), index.begin() + axis);
    source.push_back(static_cast<std::int64_t>(indices.at(which)));
    source.insert(source.end(), index.begin() + axis + static_cast<std::int64_t>(rank), index.end());
    return table.at(source);
  });
}

Array sinusoidal(std::int64_t rows, std::int64_t width, double base) {
  return generate({rows, width}, [&](const Index &i) {
    const double angle =
        static_cast<double>(i[0]) / std::pow(base, static_cast<double>(i[1] / 2 * 2) / static_cast<double>(width));
    return i[1] % 2 ? std::cos(angle) : std::sin(angle);
  });
}

Array matmul(const Array &a, const Array &b) {
  const std::int64_t depth = a.shape.back();
  Shape shape = broadcastShape({a.shape.begin(), a.shape.end() - 2}, {b.shape.begin(), b.shape.end() - 2});
  shape.push_back(a.shape[a.shape.size() - 2]);
  shape.push_back(b.shape.back());
  return generate(shape, [&](const Index &index) {
    const std::size_t rank = index.size();
    Index left = index, right = index;
    double total = 0;
    for (std::int64_t k = 0; k < depth; ++k) {
      left[rank - 1] = right[rank - 2] = k;
      total += broadcastAt(a, left) * broadcastAt(b, right);
    }
    return total;
  });
}

Array linear(const Array &x, const Array &weight, const Array &bias, bool swapped) {
  Shape shape = x.shape;
  shape.back() = weight.shape[swapped ? 1 : 0];
  return generate(shape, [&](const Index &index) {
    const std::int64_t output = index.back(), outputs = shape.back(), depth = x.shape.back();
    Index source = index;
    source.back() = 0;
    const double *row = x.values.data() + x.offsetOf(source);
    double total = bias.values.empty() ? 0 : bias.values[output];
    for (std::int64_t k = 0; k < depth; ++k)
      total += row[k] * weight.values[swapped ? k * outputs + output : output * depth + k];
    return total;
  });
}

/// Computes the output image of windows of `kernel` over x, with `channels` channels, each element by `element`.
static Array windows(const Array &x, std::int64_t channels, Sides kernel, Sides stride, Sides padding, Sides dilation,
                     const std::function<double(const Index &)> &element) {
  auto count = [](std::int64_t extent, std::int64_t k, std::int64_t s, std::int64_t p, std::int64_t d) {
    std::int64_t windows = 0;
    for (std::int64_t first = -p; first + d * (k - 1) < extent + p; first += s)
      ++windows;
    return windows;
  };
  Shape shape = x.shape;
  const std::size_t rank = shape.size();
  shape[rank - 3] = count(shape[rank - 3], kernel.height, stride.height, padding.height, dilation.height);
  shape[rank - 2] = count(shape[rank - 2], kernel.width, stride.width, padding.width, dilation.width);
  shape[rank - 1] = channels;
  return generate(shape, element);
}

/// Returns the pixel of a window's element, which may be outside of the image.
static Index pixel(Index index, Sides element, Sides stride, Sides padding, Sides dilation) {
  const std::size_t rank = index.size();
  index[rank - 3] = index[rank - 3] * stride.height + element.height * dilation.height - padding.height;
  index[rank - 2] = index[rank - 2] * stride.width + element.width * dilation.width - padding.width;
  return index;
}

static bool isInside(const Array &x, const Index &at) {
  for (std::size_t d = at.size() - 3; d < at.size() - 1; ++d)
    if (at[d] < 0 || at[d] >= x.shape[d])
      return false;
  return true;
}

Array conv2d(const Array &x, const Array &weight, const Array &bias, Sides stride, Sides padding, Sides dilation,
             std::int64_t groups) {
  const Sides kernel{weight.shape[2], weight.shape[3]};
  const std::int64_t channels = weight.shape[1], outputs = weight.shape[0] / groups;
  return windows(x, weight.shape[0], kernel, stride, padding, dilation, [&](const Index &index) {
    double total = bias.values.empty() ? 0 : bias.values[index.back()];
    for (std::int64_t i = 0; i < kernel.height; ++i)
      for (std::int64_t j = 0; j < kernel.width; ++j) {
        Index at = pixel(index, {i, j}, stride, padding, dilation);
        if (!isInside(x, at))
          continue;
        at.back() = index.back() / outputs * channels;
        const double *values = x.values.data() + x.offsetOf(at),
                     *weights = weight.values.data() + weight.offsetOf({index.back(), 0, i, j});
        for (std::int64_t c = 0; c < channels; ++c)
          total += values[c] * weights[c * kernel.height * kernel.width];
      }
    return total;
  });
}

static Array pool2d(const Array &x, Sides kernel, Sides stride, Sides padding, double initial,
                    const std::function<double(double, double)> &combine) {
  return windows(x, x.shape.back(), kernel, stride, padding, {1, 1}, [&](const Index &index) {
    double result = initial;
    for (std::int64_t i = 0; i < kernel.height; ++i)
      for (std::int64_t j = 0; j < kernel.width; ++j)
        if (Index at = pixel(index, {i, j}, stride, padding, {1, 1}); isInside(x, at))
          result = combine(result, x.at(at));
    return result;
  });
}

Array maxPool2d(const Array &x, Sides kernel, Sides stride, Sides padding) {
  return pool2d(x, kernel, stride, padding, -std::numeric_limits<double>::infinity(),
                [](double a, double b) { return isBefore(a, b) ? b : a; });
}

Array avgPool2d(const Array &x, Sides kernel, Sides stride, Sides padding) {
  const double size = static_cast<double>(kernel.height * kernel.width);
  return map(pool2d(x, kernel, stride, padding, 0, std::plus<>()), [=](double sum) { return sum / size; });
}

Array resizeBilinear(const Array &x, Sides extents) {
  Shape shape = x.shape;
  const std::size_t rows = shape.size() - 3;
  shape[rows] = extents.height;
  shape[rows + 1] = extents.width;
  return generate(shape, [&](const Index &index) {
    std::int64_t low[2];
    double part[2];
    for (std::size_t side = 0; side < 2; ++side) {
      const double ratio = static_cast<double>(x.shape[rows + side]) / static_cast<double>(shape[rows + side]);
      const double place = std::max((static_cast<double>(index[rows + side]) + 0.5) * ratio - 0.5, 0.0);
      low[side] = static_cast<std::int64_t>(place);
      part[side] = place - static_cast<double>(low[side]);
    }
    double total = 0;
    for (std::int64_t i = 0; i < 2; ++i)
      for (std::int64_t j = 0; j < 2; ++j) {
        Index at = index;
        at[rows] = std::min(low[0] + i, x.shape[rows] - 1);
        at[rows + 1] = std::min(low[1] + j, x.shape[rows + 1] - 1);
        total += x.at(at) * (i ? part[0] : 1 - part[0]) * (j ? part[1] : 1 - part[1]);
      }
    return total;
  });
}

Array attentionScores(const Array &q, const Array &k, int heads, const AttentionOptions &options) {
  const std::size_t rank = q.shape.size();
  const std::int64_t queries = q.shape[rank - 2], keys = k.shape[rank - 2], width = q.shape.back() / heads;
  const std::int64_t shared = heads / (options.keyHeads ? options.keyHeads : heads);
  const double scale = options.scale ? options.scale : 1 / std::sqrt(static_cast<double>(width));
  Shape shape(q.shape.begin(), q.shape.end() - 2);
  shape.insert(shape.end(), {heads, queries, keys});
  return generate(shape, [&](const Index &index) {
    const std::int64_t head = index[rank - 2], query = index[rank - 1], key = index[rank];
    const Index batch(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(rank) - 2);
    auto at = [&](std::int64_t row, std::int64_t column) {
      Index result = batch;
      result.insert(result.end(), {row, column});
      return result;
    };
    const std::int64_t lastKey = query + keys - queries;
    if ((options.causal && key > lastKey) || (options.window && key <= lastKey - options.window) ||
        (options.lengths && static_cast<double>(key) >= options.lengths->at(batch)))
      return -std::numeric_limits<double>::infinity();
    const double *ofQuery = q.values.data() + q.offsetOf(at(query, head * width)),
                 *ofKey = k.values.data() + k.offsetOf(at(key, head / shared * width));
    double score = 0;
    for (std::int64_t d = 0; d < width; ++d)
      score += ofQuery[d] * ofKey[d];
    score *= scale;
    if (options.softcap != 0)
      score = options.softcap * std::tanh(score / options.softcap);
    if (!options.mask)
      return score;
    return score + broadcastAt(*options.mask, options.mask->shape.size() > rank ? index : at(query, key));
  });
}

Array attentionWeights(const Array &scores) {
  return alongAxis(scores, -1, [](std::vector<double> &line) {
    if (std::all_of(line.begin(), line.end(),
                    [](double score) { return score == -std::numeric_limits<double>::infinity(); }))
      std::fill(line.begin(), line.end(), 0);
    else
      softmaxLine(line);
  });
}

Array attention(const Array &q, const Array &k, const Array &v, int heads, const AttentionOptions &options) {
  const std::size_t rank = q.shape.size();
  const int keyHeads = options.keyHeads ? options.keyHeads : heads;
  const std::int64_t keys = k.shape[rank - 2], width = v.shape.back() / keyHeads;
  Array scores = attentionScores(q, k, heads, options);
  if (options.sinks) { // in place of a further key
    Shape wider = scores.shape;
    wider.back() += 1;
    scores = generate(wider, [&, of = scores](const Index &index) {
      return index.back() < keys ? of.at(index) : options.sinks->at({index[rank - 2]});
    });
  }
  const Array weights = attentionWeights(scores);
  Shape shape = q.shape;
  shape.back() = width * heads;
  return generate(shape, [&](const Index &index) {
    const std::int64_t head = index.back() / width;
    Index row = index, pair(index.begin(), index.end() - 2);
    pair.insert(pair.end(), {head, index[rank - 2], 0});
    row.back() = head / (heads / keyHeads) * width + index.back() % width;
    double total = 0;
    for (std::int64_t key = 0; key < keys; ++key) {
      pair.back() = row[rank - 2] = key;
      total += weights.at(pair) * v.at(row);
    }
    return total;
  });
}

} // namespace kiln::testing
