// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Tensors.h"
#include "tools/new/Fields.h"

#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <set>
#include <string_view>

namespace kiln::newproject {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Whether the file is the text that git-lfs puts in the place of a large file.
static bool isPointer(std::ifstream &stream) {
  constexpr std::string_view beginning = "version https://git-lfs";
  std::string text(beginning.size(), ' ');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  stream.clear();
  stream.seekg(0);
  return text == beginning;
}

/// Returns the JSON header of a safetensors file, which follows its length in 8 bytes.
static Json readHeader(const fs::path &path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    throw Refusal(fmt::format("cannot read \"{}\"", path.string()));
  if (isPointer(stream))
    throw Refusal(fmt::format("\"{}\": a pointer of git-lfs; expected a safetensors file, which `git lfs pull` gets",
                              path.string()));
  std::uint64_t size = 0;
  char bytes[sizeof size];
  constexpr std::uint64_t most = 100 << 20; // the limit of the format
  if (stream.read(bytes, sizeof bytes))
    std::memcpy(&size, bytes, sizeof size);
  if (!stream || size > most || size > fs::file_size(path) - sizeof size)
    throw Refusal(fmt::format("\"{}\" is no safetensors file", path.string()));
  std::string text(size, ' ');
  stream.read(text.data(), static_cast<std::streamsize>(size));
  Json header = Json::parse(text, nullptr, false);
  if (!header.is_object())
    throw Refusal(fmt::format("\"{}\" is no safetensors file: its header is no JSON object", path.string()));
  return header;
}

/// Returns the files that contain a checkpoint's tensors.
static std::set<std::string> findFiles(const fs::path &folder) {
  if (const fs::path index = folder / "model.safetensors.index.json"; fs::exists(index)) {
    Fields fields = Fields::read(index.string());
    std::set<std::string> files;
    const Json map = fields.raw("weight_map");
    for (const auto &[tensor, file] : map.items()) {
      if (!file.is_string())
        throw Refusal(
            fmt::format("{}: weight_map: wrong value; expected names of files, got {}", index.string(), file.dump()));
      files.insert(file.get<std::string>());
    }
    if (files.empty())
      fields.refuse("weight_map", "tensors with their files");
    return files;
  }
  if (fs::exists(folder / "model.safetensors"))
    return {"model.safetensors"};
  throw Refusal(fmt::format("\"{}\" has no model.safetensors, nor the index of several{}", folder.string(),
                            fs::exists(folder / "pytorch_model.bin")
                                ? "; pytorch_model.bin is not read: save the model as safetensors"
                                : ""));
}

Tensors Tensors::read(const std::string &folder) {
  Tensors tensors;
  for (const std::string &file : findFiles(folder)) {
    const Json header = readHeader(fs::path(folder) / file);
    for (const auto &[name, entry] : header.items()) {
      if (name == "__metadata__")
        continue;
      std::vector<std::int64_t> shape;
      const bool hasShape = entry.is_object() && entry.contains("shape") && entry["shape"].is_array();
      for (const Json &extent : hasShape ? entry["shape"] : Json::array({Json()})) {
        if (!extent.is_number_integer())
          throw Refusal(fmt::format("{}: \"{}\" has no shape", file, name));
        shape.push_back(extent.get<std::int64_t>());
      }
      tensors.shapes[name] = std::move(shape);
    }
  }
  return tensors;
}

bool Tensors::hasPrefix(const std::string &prefix) const {
  const auto found = shapes.lower_bound(prefix);
  return found != shapes.end() && found->first.starts_with(prefix);
}

void Tensors::require(const std::string &name, const std::vector<std::int64_t> &shape) const {
  const auto found = shapes.find(name);
  const std::string wanted = fmt::format("[{}]", fmt::join(shape, ", "));
  if (found == shapes.end()) {
    std::vector<std::string> all;
    for (const auto &[each, extents] : shapes)
      all.push_back(each);
    throw Refusal(fmt::format("checkpoint: tensor is missing; expected \"{}\" of {}, got none of this name{}", name,
                              wanted, near(name, all)));
  }
  if (found->second != shape)
    throw Refusal(fmt::format("the checkpoint's tensor \"{}\": wrong shape; expected {} by config.json, got [{}]", name,
                              wanted, fmt::join(found->second, ", ")));
}

} // namespace kiln::newproject
