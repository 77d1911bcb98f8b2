// SPDX-License-Identifier: Apache-2.0
// Weights and inputs from a counter: every value is a function of (name, flat index) only.
//
// oracle/counter.py is the same generator in Python, and oracle/README.md specifies it; both give the same bits.
// PyTorch and the compiled model therefore use the same weights, and no large file is stored.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::testing {

/// The 64-bit FNV-1a hash of the name's bytes.
constexpr uint64_t fnv1a64(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

/// The splitmix64 stream that starts at the name's hash, at position `i`.
constexpr uint64_t counter_hash(uint64_t name_hash, uint64_t i) {
  uint64_t z = name_hash + (i + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

/// Returns a multiple of 2^-23 in [-1, 1).
constexpr double counter_unit(uint64_t hash) { return static_cast<double>(hash >> 40) * 0x1p-23 - 1.0; }

/// The values of one parameter, by flat row-major index.
class CounterWeight {
public:
  CounterWeight(std::string_view name, std::span<const int64_t> shape) : name_hash(fnv1a64(name)) {
    std::vector<std::string_view> components;
    for (size_t begin = 0, end = 0; end != name.npos; begin = end + 1) {
      end = name.find('.', begin);
      components.push_back(name.substr(begin, end - begin));
    }
    auto is_any_of = [](std::string_view component, auto... names) { return ((component == names) || ...); };
    if (components.back() == "score") {
      scale = 1;
      return;
    }
    if (shape.size() <= 1) {
      bool is_norm = components.back() == "weight" || components.back() == "running_var";
      center = is_norm ? 1.0 : 0.0;
      scale = is_norm ? 0.1f : 0.02f;
      return;
    }
    if (name.find("embedding") != name.npos ||
        (components.size() > 1 && is_any_of(components[components.size() - 2], "wte", "wpe"))) {
      scale = 0.05f;
      return;
    }
    bool makes_scores = std::any_of(components.begin(), components.end(), [&](std::string_view component) {
      return is_any_of(component, "q_proj", "k_proj", "query", "key", "c_attn");
    });
    int64_t rest = 1;
    for (int64_t extent : shape.subspan(1))
      rest *= extent;
    scale = static_cast<float>(std::sqrt((makes_scores ? 20.0 : 3.0) / static_cast<double>(shape[0] + rest)));
  }

  /// `scale` and the unit have 24 bits each, so their product is exact in double, with or without a fused multiply-add.
  float operator()(uint64_t i) const {
    return static_cast<float>(center + double{scale} * counter_unit(counter_hash(name_hash, i)));
  }

private:
  uint64_t name_hash;
  double center = 0.0;
  float scale = 0.0f;
};

inline float counter_weight(std::string_view name, std::span<const int64_t> shape, uint64_t i) {
  return CounterWeight(name, shape)(i);
}

/// Returns an f32 input in [-1, 1).
constexpr float counter_uniform(std::string_view name, uint64_t i) {
  return static_cast<float>(counter_unit(counter_hash(fnv1a64(name), i)));
}

/// Returns an i32 input in [0, vocabulary).
constexpr int32_t counter_token(std::string_view name, uint64_t i, int32_t vocabulary) {
  return static_cast<int32_t>(counter_hash(fnv1a64(name), i) % static_cast<uint64_t>(vocabulary));
}

struct NamedShape {
  std::string name;
  std::vector<int64_t> shape;
};

/// Writes the generated parameters as one safetensors file of f32, in the order given; returns false if the file cannot
/// be written. Names must not need JSON escapes.
inline bool write_safetensors(const std::string &path, std::span<const NamedShape> parameters) {
  static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");
  auto elements = [](const NamedShape &parameter) {
    uint64_t count = 1;
    for (int64_t extent : parameter.shape)
      count *= static_cast<uint64_t>(extent);
    return count;
  };

  std::string header = "{";
  uint64_t offset = 0;
  for (const NamedShape &parameter : parameters) {
    std::string shape;
    for (int64_t extent : parameter.shape)
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    uint64_t end = offset + elements(parameter) * sizeof(float);
    header += (offset ? ",\"" : "\"") + parameter.name + "\":{\"dtype\":\"F32\",\"shape\":[" + shape +
              "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(end) + "]}";
    offset = end;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');

  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (!file)
    return false;
  uint64_t header_size = header.size();
  bool written = std::fwrite(&header_size, sizeof header_size, 1, file.get()) == 1 &&
                 std::fwrite(header.data(), 1, header.size(), file.get()) == header.size();
  std::vector<float> block(1 << 16);
  for (const NamedShape &parameter : parameters) {
    CounterWeight value(parameter.name, parameter.shape);
    uint64_t count = elements(parameter);
    for (uint64_t start = 0; start < count && written; start += block.size()) {
      size_t size = static_cast<size_t>(std::min<uint64_t>(block.size(), count - start));
      for (size_t i = 0; i < size; ++i)
        block[i] = value(start + i);
      written = std::fwrite(block.data(), sizeof(float), size, file.get()) == size;
    }
  }
  return std::fclose(file.release()) == 0 && written;
}

} // namespace kiln::testing
