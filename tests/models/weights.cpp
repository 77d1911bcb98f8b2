// SPDX-License-Identifier: Apache-2.0
#include "weights.h"

#include "counter.h"
#include <algorithm>
#include <cstring>

namespace kiln::testing {

static std::size_t elementCount(const std::vector<std::int64_t> &shape) {
  std::size_t count = 1;
  for (std::int64_t extent : shape)
    count *= static_cast<std::size_t>(extent);
  return count;
}

static std::string header(const std::vector<const std::vector<std::int64_t> *> &shapes,
                          const std::vector<std::string> &names) {
  std::string text = "{";
  std::size_t offset = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string extents;
    for (std::int64_t extent : *shapes[i])
      extents += (extents.empty() ? "" : ",") + std::to_string(extent);
    std::size_t end = offset + elementCount(*shapes[i]) * sizeof(float);
    text += (i ? ",\"" : "\"") + names[i] + "\":{\"dtype\":\"F32\",\"shape\":[" + extents + "],\"data_offsets\":[" +
            std::to_string(offset) + "," + std::to_string(end) + "]}";
    offset = end;
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

float *WeightImage::begin(const std::vector<const std::vector<std::int64_t> *> &shapes,
                          const std::vector<std::string> &names) {
  std::string text = header(shapes, names);
  std::size_t elements = 0;
  for (const std::vector<std::int64_t> *shape : shapes)
    elements += elementCount(*shape);
  bytes = sizeof(std::uint64_t) + text.size() + elements * sizeof(float);
  words.resize((bytes + 7) / 8);
  words[0] = text.size();
  std::memcpy(words.data() + 1, text.data(), text.size());
  return reinterpret_cast<float *>(words.data() + 1 + text.size() / 8);
}

/// Every copy under its own name.
static std::vector<NamedShape> namesOfCopies(const std::vector<WeightShape> &weights) {
  std::vector<NamedShape> result;
  for (const WeightShape &weight : weights)
    for (std::int64_t copy = 0; copy < weight.copies; ++copy) {
      std::string name = weight.name;
      if (std::size_t hole = name.find("{}"); hole != std::string::npos)
        name.replace(hole, 2, std::to_string(copy));
      bool isKnown =
          std::any_of(result.begin(), result.end(), [&](const NamedShape &known) { return known.name == name; });
      if (!isKnown) // a table that is packed twice stands in the file once
        result.push_back({name, weight.shape});
    }
  return result;
}

WeightImage::WeightImage(const std::vector<WeightShape> &weights) {
  std::vector<NamedShape> tensors = namesOfCopies(weights);
  std::vector<const std::vector<std::int64_t> *> shapes;
  std::vector<std::string> names;
  for (const NamedShape &tensor : tensors) {
    shapes.push_back(&tensor.shape);
    names.push_back(tensor.name);
  }
  float *to = begin(shapes, names);
  for (const NamedShape &tensor : tensors) {
    CounterWeight value(tensor.name, tensor.shape);
    std::size_t count = elementCount(tensor.shape);
    for (std::size_t i = 0; i < count; ++i)
      *to++ = value(i);
  }
}

WeightImage::WeightImage(const std::vector<Weight> &weights) {
  std::vector<const std::vector<std::int64_t> *> shapes;
  std::vector<std::string> names;
  for (const Weight &weight : weights) {
    shapes.push_back(&weight.shape);
    names.push_back(weight.name);
  }
  float *to = begin(shapes, names);
  for (const Weight &weight : weights)
    to = std::copy(weight.values.begin(), weight.values.end(), to);
}

std::vector<Weight> counterWeights(const std::vector<WeightShape> &weights) {
  std::vector<Weight> result;
  for (const NamedShape &tensor : namesOfCopies(weights)) {
    CounterWeight value(tensor.name, tensor.shape);
    Weight &weight = result.emplace_back(Weight{tensor.name, tensor.shape, {}});
    for (std::size_t i = 0, count = elementCount(tensor.shape); i < count; ++i)
      weight.values.push_back(value(i));
  }
  return result;
}

} // namespace kiln::testing
