// SPDX-License-Identifier: Apache-2.0
//
// Convolutions, pooling, resizing.
#include <algorithm>

#include "tests/fuzz/Generator.h"

namespace kiln::fuzz {

/// Returns an image with a fixed number of channels, of at least this height and width.
int Generator::image(int leastExtent) {
  const int found = choose([&](int id) {
    const Extents &extents = shapeOf(id);
    const std::size_t rank = extents.size();
    return isFloat(b.node(id).element) && rank >= 3 && extents.back().fixed() &&
           extents[rank - 3].min() >= leastExtent && extents[rank - 2].min() >= leastExtent;
  });
  if (found >= 0 && random.percent(80))
    return found;
  const int list = choose([&](int id) {
    return isFloat(b.node(id).element) && shapeOf(id).size() >= 2 && shapeOf(id).size() <= 5 &&
           shapeOf(id).back().fixed() && shapeOf(id)[shapeOf(id).size() - 2].min() >= leastExtent && leastExtent <= 1;
  });
  if (list >= 0 && random.percent(40)) { // rows as an image of height 1
    Extents extents = shapeOf(list);
    extents.insert(extents.end() - 2, Dim(1));
    return reshapedTo(list, extents);
  }
  Extents extents = shape(0, 2);
  while (mostElements(extents) > 60)
    extents.pop_back();
  for (int i = 0; i < 2; ++i) {
    Dim side = random.percent(70) ? Dim(random.between(1, 14)) : namedExtent();
    if (side.max() > 40)
      side = static_cast<int>(random.between(1, 14));
    if (side.min() < leastExtent)
      side = side + Dim(leastExtent - side.min());
    extents.push_back(side);
  }
  extents.push_back(random.of({1, 2, 3, 4, 6, 6, 8, 9, 12, 16, 17}));
  return fresh(floatType(extents));
}

Window Generator::window(const Extents &image, bool isPool) {
  Window result;
  const Dim sides[] = {image[image.size() - 3], image[image.size() - 2]};
  int kernel[2], stride[2], padding[2], dilation[2];
  const bool isSquare = random.percent(60);
  for (int i = 0; i < 2; ++i) {
    const auto least = static_cast<int>(sides[i].min());
    kernel[i] = random.of({1, 2, 2, 3, 3, 3, 4, 5, 7});
    stride[i] = random.of({1, 1, 1, 2, 2, 3, 4});
    padding[i] = static_cast<int>(random.below(isPool ? kernel[i] / 2 + 1 : kernel[i] + 1));
    dilation[i] = isPool ? 1 : random.of({1, 1, 1, 2, 3});
    if (i == 1 && isSquare) {
      kernel[1] = kernel[0], stride[1] = stride[0], padding[1] = padding[0], dilation[1] = dilation[0];
    }
    if (sides[i].factor % stride[i] != 0 || sides[i].second % stride[i] != 0)
      stride[i] = 1;
    if (least + 2 * padding[i] < dilation[i] * (kernel[i] - 1) + 1)
      dilation[i] = 1;
    if (least + 2 * padding[i] < kernel[i])
      kernel[i] = std::max(1, std::min(kernel[i], least)), padding[i] = 0;
  }
  result.kernel = {kernel[0], kernel[1]};
  result.stride = {stride[0], stride[1]};
  result.padding = {padding[0], padding[1]};
  result.dilation = {dilation[0], dilation[1]};
  return result;
}

int Generator::conv2d(Op op) {
  const int x = image(static_cast<int>(random.of({1, 1, 3, 5})));
  if (x < 0)
    return -1;
  const auto channels = static_cast<int>(shapeOf(x).back().offset);
  Attributes attributes;
  attributes.window = window(shapeOf(x), false);
  std::vector<int> divisors;
  for (int i = 1; i <= channels; ++i)
    if (channels % i == 0)
      divisors.push_back(i);
  // One group, depthwise, or several channels per group.
  attributes.groups = random.percent(40) ? 1 : random.percent(35) ? channels : random.from(divisors);
  int outputs = 1;
  if (attributes.groups > 1)
    outputs = attributes.groups * static_cast<int>(random.of({1, 1, 1, 2, 3}));
  else
    outputs = static_cast<int>(random.of({1, 2, 3, 4, 5, 7, 8, 8, 15, 16, 17, 31, 32, 33, 48, 49}));
  const Pair kernel = attributes.window.kernel;
  const Type type = floatType({outputs, channels / attributes.groups, kernel.height, kernel.width});
  if (mostElements(type.shape) > options.maxElements)
    return -1;
  const int weight = random.percent(92) ? parameter(type) : ofType(type);
  if (weight < 0)
    return -1;
  if (random.percent(40))
    return tamed(make(op, {x, weight}, attributes));
  const int bias = random.percent(85) ? parameter(floatType({outputs})) : ofType(floatType({outputs}));
  return tamed(make(op, {x, weight, bias}, attributes));
}

int Generator::pool(Op op) {
  const int x = image(static_cast<int>(random.of({1, 2, 4})));
  if (x < 0)
    return -1;
  Attributes attributes;
  attributes.window = window(shapeOf(x), true);
  return make(op, {x}, attributes);
}

int Generator::resize(Op op) {
  int x = choose([&](int id) {
    const Extents &extents = shapeOf(id);
    const std::size_t rank = extents.size();
    return isFloat(b.node(id).element) && rank >= 3 && extents[rank - 3].fixed() && extents[rank - 2].fixed();
  });
  if (x < 0 || random.percent(20)) {
    Extents extents = shape(0, 2);
    while (mostElements(extents) > 60)
      extents.pop_back();
    for (int i = 0; i < 2; ++i)
      extents.push_back(random.between(1, 12));
    extents.push_back(random.percent(85) ? Dim(random.between(1, 9)) : extent());
    x = fresh(floatType(extents));
  }
  if (x < 0)
    return -1;
  Extents extents = shapeOf(x);
  for (std::size_t i = 3; i > 1; --i) {
    Dim &side = extents[extents.size() - i];
    switch (random.below(5)) {
    case 0:
      side = side * Dim(2);
      break;
    case 1:
      side = random.of({1, 2});
      break;
    case 2:
      break;
    default:
      side = random.between(1, 20);
    }
  }
  return make(op, {x}, {}, floatType(extents));
}

} // namespace kiln::fuzz
