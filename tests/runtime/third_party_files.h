// SPDX-License-Identifier: Apache-2.0
//
// Random third-party quantised checkpoints: the bytes of GGUF's blocks and files and of GPTQ's and AWQ's tensors, and
// their values in f64 by the formats' definitions, without use of the runtime.
#pragma once

#include "published/published.h"
#include "stored_numbers.h"

#include <functional>

namespace kiln_test {

/// A random number generator that is the same on every machine.
class Draw {
public:
  explicit Draw(uint32_t seed) : State(seed * 2654435761u + 1) {}
  int operator()(int limit) { return static_cast<int>(((State = State * 1664525u + 1013904223u) >> 8) % limit); }
  /// Returns an f16 with a magnitude between 2^-14 and 4, occasionally 0 or subnormal.
  uint16_t half() {
    const int kind = (*this)(16), bits = kind == 0 ? 0 : kind == 1 ? 1 + (*this)(1023) : 0x400 + (*this)(0x4000);
    return static_cast<uint16_t>(bits | (*this)(2) << 15);
  }

private:
  uint32_t State;
};

template <typename T> void append(std::string &bytes, const T &value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
}

/// Values in the order of a row or of a matrix, and their bytes.
struct Numbers {
  std::string Bytes;
  std::vector<float> Values;

  /// Rounds the exact value once.
  void add(double value) { Values.push_back(static_cast<float>(value)); }
};

// GGUF types.
constexpr uint32_t GgufF32 = 0, GgufF16 = 1, Q4_0 = 2, Q8_0 = 8, Q4_K = 12, Q6_K = 14, GgufBF16 = 30;

inline void addQ4_0(Numbers &to, Draw &draw) {
  const uint16_t d = draw.half();
  int q[32];
  append(to.Bytes, d);
  for (int &each : q) {
    each = draw(16);
    to.add((each - 8) * valueOfHalf(d));
  }
  for (int i = 0; i < 16; ++i)
    append(to.Bytes, static_cast<uint8_t>(q[i] | q[i + 16] << 4));
}

inline void addQ8_0(Numbers &to, Draw &draw) {
  const uint16_t d = draw.half();
  append(to.Bytes, d);
  for (int i = 0; i < 32; ++i) {
    const int q = draw(256) - 128;
    to.add(q * valueOfHalf(d));
    append(to.Bytes, static_cast<int8_t>(q));
  }
}

/// Eight groups of 32: d s q - m t, where s and t have six bits.
inline void addQ4_K(Numbers &to, Draw &draw) {
  const uint16_t d = draw.half(), m = draw.half();
  int s[8], t[8];
  uint8_t six[12] = {}, low[128] = {};
  for (int run = 0; run < 8; ++run) {
    s[run] = draw(64), t[run] = draw(64);
    for (int i = 0; i < 32; ++i) {
      const int q = draw(16);
      low[run / 2 * 32 + i] |= q << run % 2 * 4;
      to.add(valueOfHalf(d) * s[run] * q - valueOfHalf(m) * t[run]);
    }
  }
  for (int i = 0; i < 4; ++i) {
    six[i] = static_cast<uint8_t>(s[i] | s[i + 4] / 16 << 6);
    six[i + 4] = static_cast<uint8_t>(t[i] | t[i + 4] / 16 << 6);
    six[i + 8] = static_cast<uint8_t>(s[i + 4] % 16 | t[i + 4] % 16 << 4);
  }
  append(to.Bytes, d);
  append(to.Bytes, m);
  append(to.Bytes, six);
  append(to.Bytes, low);
}

/// Sixteen groups of 16: d s (q - 32), where q has six bits and s is signed.
inline void addQ6_K(Numbers &to, Draw &draw) {
  const uint16_t d = draw.half();
  int8_t s[16];
  uint8_t low[128] = {}, high[64] = {};
  for (int run = 0; run < 16; ++run) {
    s[run] = static_cast<int8_t>(draw(256) - 128);
    for (int i = 0; i < 16; ++i) {
      const int q = draw(64), at = run * 16 + i, half = at / 128, quarter = at % 128 / 32, lane = at % 32;
      low[half * 64 + quarter % 2 * 32 + lane] |= q % 16 << quarter / 2 * 4;
      high[half * 32 + lane] |= q / 16 << quarter * 2;
      to.add(valueOfHalf(d) * s[run] * (q - 32));
    }
  }
  append(to.Bytes, low);
  append(to.Bytes, high);
  append(to.Bytes, s);
  append(to.Bytes, d);
}

inline void addPlain(Numbers &to, Draw &draw, uint32_t type) {
  const uint16_t bits = draw.half();
  const bool isBrain = type == GgufBF16;
  const double value = isBrain ? std::ldexp(draw(255) - 127, draw(20) - 10) : valueOfHalf(bits);
  to.add(value);
  if (type == GgufF32)
    append(to.Bytes, to.Values.back());
  else
    append(to.Bytes, isBrain ? rounded(KILN_BF16, to.Values.back()) : bits);
}

/// Returns a random matrix, or a vector as one row.
inline Numbers drawGguf(uint32_t type, int64_t rows, int64_t columns, uint32_t seed) {
  Numbers result;
  Draw draw(seed + 1000 * type);
  while (static_cast<int64_t>(result.Values.size()) < rows * columns)
    type == Q4_0   ? addQ4_0(result, draw)
    : type == Q8_0 ? addQ8_0(result, draw)
    : type == Q4_K ? addQ4_K(result, draw)
    : type == Q6_K ? addQ6_K(result, draw)
                   : addPlain(result, draw, type);
  return result;
}

struct GgufTensor {
  std::string Name;
  std::vector<uint64_t> Extents; // the innermost first
  uint32_t Type;
  std::string Bytes;
};

inline void appendText(std::string &bytes, std::string_view text) {
  append<uint64_t>(bytes, text.size());
  bytes += text;
}

/// Encodes a metadata value: type and bytes.
inline std::string metadata(std::string_view key, uint32_t type, const std::string &value) {
  std::string bytes;
  appendText(bytes, key);
  append(bytes, type);
  return bytes + value;
}
template <typename T> std::string metadata(std::string_view key, uint32_t type, T value) {
  std::string bytes;
  append(bytes, value);
  return metadata(key, type, bytes);
}

inline std::string makeGguf(const std::vector<GgufTensor> &tensors, const std::vector<std::string> &values = {},
                            uint64_t alignment = 32, uint32_t version = 3) {
  std::string bytes = "GGUF", data;
  append(bytes, version);
  append<uint64_t>(bytes, tensors.size());
  append<uint64_t>(bytes, values.size());
  for (const std::string &value : values)
    bytes += value;
  for (const GgufTensor &tensor : tensors) {
    appendText(bytes, tensor.Name);
    append(bytes, static_cast<uint32_t>(tensor.Extents.size()));
    for (uint64_t extent : tensor.Extents)
      append(bytes, extent);
    append(bytes, tensor.Type);
    data.resize((data.size() + alignment - 1) / alignment * alignment, 'p');
    append<uint64_t>(bytes, data.size());
    data += tensor.Bytes;
  }
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment, 'p');
  return bytes + data;
}

/// Returns a safetensors file, for tests that are not linked with makeImage.
inline std::string imageOf(const std::vector<Tensor> &tensors) {
  std::string header = "{", data, image;
  for (const Tensor &tensor : tensors) {
    header += (data.empty() ? "\"" : ",\"") + tensor.name + "\":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[";
    for (size_t i = 0; i < tensor.shape.size(); ++i)
      header += (i ? "," : "") + std::to_string(tensor.shape[i]);
    header += "],\"data_offsets\":[" + std::to_string(data.size()) + ",";
    data += tensor.bytes;
    header += std::to_string(data.size()) + "]}";
  }
  header += "}";
  append<uint64_t>(image, header.size());
  return image + header + data;
}

/// A 4-bit matrix [outputs, inputs], with groups along the inputs.
struct Int4Matrix {
  int64_t Outputs, Inputs, Group;
  std::vector<int> Elements, Zeros; // [outputs][inputs]; [groups][outputs]
  std::vector<uint16_t> Scales;     // [groups][outputs]
  std::vector<int32_t> GroupOfInput;

  /// With isActOrder, inputs belong to groups in random order.
  Int4Matrix(int64_t outputs, int64_t inputs, int64_t group, uint32_t seed, bool isCentred = false,
             bool isActOrder = false)
      : Outputs(outputs), Inputs(inputs), Group(group) {
    Draw draw(seed);
    const int64_t groups = (inputs + group - 1) / group;
    for (int64_t i = 0; i < outputs * inputs; ++i)
      Elements.push_back(draw(16));
    for (int64_t i = 0; i < groups * outputs; ++i) {
      Zeros.push_back(isCentred ? 8 : draw(16));
      Scales.push_back(draw.half());
    }
    for (int64_t i = 0; i < inputs; ++i)
      GroupOfInput.push_back(static_cast<int32_t>(isActOrder ? draw(static_cast<int>(groups)) : i / group));
  }
  int64_t groups() const { return static_cast<int64_t>(Zeros.size()) / Outputs; }
  std::vector<float> values() const {
    std::vector<float> result;
    for (int64_t output = 0; output < Outputs; ++output)
      for (int64_t input = 0; input < Inputs; ++input) {
        const int64_t at = GroupOfInput[input] * Outputs + output;
        result.push_back(static_cast<float>((Elements[output * Inputs + input] - Zeros[at]) * valueOfHalf(Scales[at])));
      }
    return result;
  }
  /// Packs rows of 4-bit elements, eight per 32-bit word; `place` gives the position in the word for each of the eight.
  static std::string words(int64_t rows, int64_t columns, const std::function<int(int64_t, int64_t)> &element,
                           const std::vector<int> &place) {
    std::string bytes;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t first = 0; first < columns; first += 8) {
        uint32_t word = 0;
        for (int i = 0; i < 8; ++i)
          word |= static_cast<uint32_t>(element(row, first + i) & 15) << 4 * place[i];
        append(bytes, word);
      }
    return bytes;
  }
  /// `less`: the file stores zero points reduced by this number.
  std::vector<Tensor> gptq(const std::string &name, int less = 1, bool hasGroups = true) const {
    const std::vector<int> inOrder = {0, 1, 2, 3, 4, 5, 6, 7};
    std::string qweight;
    for (int64_t first = 0; first < Inputs; first += 8)
      for (int64_t output = 0; output < Outputs; ++output)
        qweight += words(1, 8, [&](int64_t, int64_t i) { return Elements[output * Inputs + first + i]; }, inOrder);
    std::vector<Tensor> tensors = {
        {name + ".qweight", "I32", {Inputs / 8, Outputs}, qweight},
        {name + ".qzeros",
         "I32",
         {groups(), Outputs / 8},
         words(
             groups(), Outputs, [&](int64_t g, int64_t n) { return Zeros[g * Outputs + n] - less; }, inOrder)},
        {name + ".scales", "F16", {groups(), Outputs}, bytesOf(Scales)}};
    if (hasGroups)
      tensors.push_back({name + ".g_idx", "I32", {Inputs}, bytesOf(GroupOfInput)});
    return tensors;
  }
  /// From the lowest bits on, a word has the outputs 0 2 4 6 1 3 5 7.
  std::vector<Tensor> awq(const std::string &name) const {
    const std::vector<int> interleaved = {0, 4, 1, 5, 2, 6, 3, 7};
    return {{name + ".qweight",
             "I32",
             {Inputs, Outputs / 8},
             words(
                 Inputs, Outputs, [&](int64_t k, int64_t n) { return Elements[n * Inputs + k]; }, interleaved)},
            {name + ".qzeros",
             "I32",
             {groups(), Outputs / 8},
             words(
                 groups(), Outputs, [&](int64_t g, int64_t n) { return Zeros[g * Outputs + n]; }, interleaved)},
            {name + ".scales", "F16", {groups(), Outputs}, bytesOf(Scales)}};
  }
};

} // namespace kiln_test
