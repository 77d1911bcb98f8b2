// SPDX-License-Identifier: Apache-2.0
#include "weights.h"

#include "counter.h"
#include "half_floats.h"
#include <algorithm>
#include <cctype>
#include <cstring>

namespace kiln::testing {

static std::size_t elementCount(const std::vector<std::int64_t> &shape) {
  std::size_t count = 1;
  for (std::int64_t extent : shape)
    count *= static_cast<std::size_t>(extent);
  return count;
}

static std::size_t byteCount(const Weight &weight) {
  return elementCount(weight.shape) * (weight.type == "f32" ? sizeof(float) : sizeof(std::uint16_t));
}

static std::string header(const std::vector<Weight> &weights) {
  std::string text = "{";
  std::size_t offset = 0;
  for (const Weight &weight : weights) {
    std::string extents, type = weight.type;
    for (std::int64_t extent : weight.shape)
      extents += (extents.empty() ? "" : ",") + std::to_string(extent);
    for (char &letter : type)
      letter = static_cast<char>(std::toupper(letter));
    const std::size_t end = offset + byteCount(weight);
    text += (offset ? ",\"" : "\"") + weight.name + "\":{\"dtype\":\"" + type + "\",\"shape\":[" + extents +
            "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(end) + "]}";
    offset = end;
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

static void write(char *to, const Weight &weight) {
  if (weight.type == "f32") {
    std::memcpy(to, weight.values.data(), byteCount(weight));
    return;
  }
  for (float value : weight.values) {
    const std::uint16_t bits = weight.type == "f16" ? to_f16(value) : to_bf16(value);
    std::memcpy(to, &bits, sizeof bits);
    to += sizeof bits;
  }
}

/// Returns every copy under its own name, without values.
static std::vector<Weight> copiesOf(const std::vector<WeightShape> &weights) {
  std::vector<Weight> result;
  for (const WeightShape &weight : weights)
    for (std::int64_t copy = 0; copy < weight.copies; ++copy) {
      std::string name = weight.name;
      if (std::size_t hole = name.find("{}"); hole != std::string::npos)
        name.replace(hole, 2, std::to_string(copy));
      bool isKnown = std::any_of(result.begin(), result.end(), [&](const Weight &known) { return known.name == name; });
      if (!isKnown) // a table that is packed twice is in the file once
        result.push_back({name, weight.shape, {}, weight.type});
    }
  return result;
}

WeightImage::WeightImage(const std::vector<Weight> &weights) {
  const std::string text = header(weights);
  bytes = sizeof(std::uint64_t) + text.size();
  for (const Weight &weight : weights)
    bytes += byteCount(weight);
  words.resize((bytes + 7) / 8);
  words[0] = text.size();
  char *to = characters().data() + sizeof(std::uint64_t);
  std::memcpy(to, text.data(), text.size());
  to += text.size();
  for (const Weight &weight : weights) {
    write(to, weight);
    to += byteCount(weight);
  }
}

std::vector<Weight> counterWeights(const std::vector<WeightShape> &weights) {
  std::vector<Weight> result = copiesOf(weights);
  for (Weight &weight : result) {
    const CounterWeight value(weight.name, weight.shape);
    for (std::size_t i = 0, count = elementCount(weight.shape); i < count; ++i)
      weight.values.push_back(value(i));
  }
  return result;
}

} // namespace kiln::testing
