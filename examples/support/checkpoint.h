// SPDX-License-Identifier: Apache-2.0
//
// Loads third-party checkpoints for a model: one safetensors file, or several with an index, of f32, f16 or bf16, whose
// tensor names are mapped to the model's by a table of rules. The result is one f32 image in memory to bind; the bind
// reports missing or unknown tensors and wrong shapes.
#pragma once

#include "json.h"
#include "safetensors.h"

#include <bit>
#include <fstream>
#include <iterator>
#include <set>

namespace support {

/// Renames tensors whose name matches `from`, where one * matches any text, to `to`, where * is replaced by that text.
/// Without a name they are ignored; with several they are split into equal parts along the first axis. `isTransposed`:
/// a matrix [in, out] becomes [out, in] first.
struct Rule {
  std::string from;
  std::vector<std::string> to;
  bool isTransposed = false;
};

namespace detail {

/// Matches the name, and sets `star` to the text that the * matches. Returns false if it does not match.
inline bool fits(const std::string &name, const std::string &pattern, std::string &star) {
  const std::size_t at = pattern.find('*');
  if (at == std::string::npos)
    return name == pattern;
  const std::string before = pattern.substr(0, at), after = pattern.substr(at + 1);
  if (name.size() < before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return false;
  star = name.substr(before.size(), name.size() - before.size() - after.size());
  return true;
}

inline std::string replaced(std::string pattern, const std::string &star) {
  const std::size_t at = pattern.find('*');
  return at == std::string::npos ? pattern : pattern.replace(at, 1, star);
}

/// A tensor of a file, or a part of one.
struct Piece {
  Tensor tensor;
  const char *data; // start of row `first` of the stored tensor, unless it is transposed
  std::string type;
  std::size_t first = 0; // row in the whole tensor
  bool isTransposed = false;
  std::size_t stored_columns = 0; // only if transposed
};

inline std::size_t bytes_of(const std::string &type) {
  if (type == "F32")
    return 4;
  if (type == "F16" || type == "BF16")
    return 2;
  throw std::runtime_error("checkpoint: unsupported element type; expected F32, F16 or BF16, got " + type);
}

inline float number(const char *at, const std::string &type) {
  if (type == "F32") {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  if (type == "BF16")
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16, exponent = bits >> 10 & 31,
                      rest = bits & 1023;
  if (exponent == 31) // infinity, NaN
    return std::bit_cast<float>(sign | 0x7F800000 | rest << 13);
  if (exponent == 0) // subnormal: a multiple of 2^-24
    return (sign ? -1.0f : 1.0f) * static_cast<float>(rest) / 16777216.0f;
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | rest << 13);
}

/// Applies all matching rules to a tensor, in order. Returns the resulting pieces.
inline std::vector<Piece> apply(Piece whole, const std::vector<Rule> &rules) {
  std::vector<Piece> pieces{std::move(whole)};
  for (const Rule &rule : rules) {
    std::vector<Piece> next;
    for (const Piece &piece : pieces) {
      std::string star;
      if (!fits(piece.tensor.name, rule.from, star)) {
        next.push_back(piece);
        continue;
      }
      Piece part = piece;
      std::vector<std::int64_t> &shape = part.tensor.shape;
      if (rule.isTransposed) {
        if (shape.size() != 2)
          throw std::runtime_error("\"" + piece.tensor.name + "\": cannot be transposed; expected a matrix, got " +
                                   std::to_string(shape.size()) + " dimensions");
        part.isTransposed = true;
        part.stored_columns = static_cast<std::size_t>(shape[1]);
        std::swap(shape[0], shape[1]);
      }
      const auto parts = static_cast<std::int64_t>(rule.to.size());
      if (parts > 1 && (shape.empty() || shape[0] % parts != 0))
        throw std::runtime_error("\"" + piece.tensor.name + "\": cannot be split; expected " + std::to_string(parts) +
                                 " equal parts");
      if (parts > 1)
        shape[0] /= parts;
      for (const std::string &name : rule.to) {
        part.tensor.name = replaced(name, star);
        next.push_back(part);
        part.first += parts > 1 ? static_cast<std::size_t>(shape[0]) : 0;
      }
    }
    pieces = std::move(next);
  }
  return pieces;
}

inline void read(const Piece &piece, std::span<float> values) {
  const std::size_t size = bytes_of(piece.type),
                    rows = piece.tensor.shape.empty() ? 1 : static_cast<std::size_t>(piece.tensor.shape[0]);
  const std::size_t columns = values.size() / rows;
  for (std::size_t row = 0, i = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column, ++i) {
      const std::size_t from = piece.isTransposed ? column * piece.stored_columns + piece.first + row
                                                  : (piece.first + row) * columns + column;
      values[i] = number(piece.data + from * size, piece.type);
    }
}

} // namespace detail

/// Reads `path`: a .safetensors file, or the .json index of several in the same folder; and the image `more`, if there
/// is one, as a further file. Throws std::runtime_error.
inline std::vector<std::byte> load_checkpoint(const std::string &path, const std::vector<Rule> &rules,
                                              std::span<const std::byte> more = {}) {
  std::vector<std::pair<std::string, std::string>> files; // paths with contents
  if (path.ends_with(".json")) {
    const Json index = JsonReader(read_file(path)).read();
    std::set<std::string> names;
    for (const auto &[tensor, file] : index.at("weight_map").members)
      names.insert(path.substr(0, path.rfind('/') + 1) + file.text);
    for (const std::string &name : names)
      files.emplace_back(name, read_file(name));
  } else {
    files.emplace_back(path, read_file(path));
  }
  if (!more.empty())
    files.emplace_back("more", std::string(reinterpret_cast<const char *>(more.data()), more.size()));

  std::vector<detail::Piece> pieces; // point into `files`
  std::set<std::string> known;
  for (const auto &[file, bytes] : files) {
    std::uint64_t size = 0;
    std::memcpy(&size, bytes.data(), std::min(bytes.size(), sizeof size));
    if (bytes.size() < sizeof size || size > bytes.size() - sizeof size)
      throw std::runtime_error("\"" + file + "\" is no safetensors file");
    const Json header = JsonReader(std::string_view(bytes).substr(sizeof size, size)).read();
    for (const auto &[name, entry] : header.members) {
      if (name == "__metadata__")
        continue;
      detail::Piece whole{{name, {}}, nullptr, entry.at("dtype").text};
      for (const Json &extent : entry.at("shape").items)
        whole.tensor.shape.push_back(static_cast<std::int64_t>(extent.number()));
      const std::vector<Json> &offsets = entry.at("data_offsets").items;
      std::vector<detail::Piece> parts = detail::apply(whole, rules);
      if (parts.empty())
        continue; // ignored, whatever its type
      const std::size_t begin = offsets.at(0).number(), end = offsets.at(1).number(), data = sizeof size + size;
      if (begin > end || end > bytes.size() - data ||
          end - begin != whole.tensor.count() * detail::bytes_of(whole.type))
        throw std::runtime_error("\"" + name + "\": wrong offsets in the header of \"" + file + "\"");
      for (detail::Piece &part : parts) {
        part.data = bytes.data() + data + begin;
        if (!known.insert(part.tensor.name).second)
          throw std::runtime_error("\"" + part.tensor.name +
                                   "\": several tensors of the checkpoint have this name; expected one");
        pieces.push_back(std::move(part));
      }
    }
  }
  std::vector<Tensor> tensors;
  for (const detail::Piece &piece : pieces)
    tensors.push_back(piece.tensor);
  return make_image(tensors, [&](std::size_t i, std::span<float> values) { detail::read(pieces[i], values); });
}

} // namespace support
