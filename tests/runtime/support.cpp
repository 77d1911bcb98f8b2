// SPDX-License-Identifier: Apache-2.0
#include "support.h"

#include <cstdio>

namespace kiln_test {

std::string makeImage(std::string_view header, std::string_view data) {
  std::string image;
  for (int i = 0; i < 8; ++i)
    image += static_cast<char>(static_cast<uint64_t>(header.size()) >> 8 * i & 0xFF);
  image += header;
  image += data;
  return image;
}

std::string makeImage(const std::vector<Tensor> &tensors) {
  std::string header = "{", data;
  for (const Tensor &tensor : tensors) {
    std::string shape;
    for (int64_t extent : tensor.shape)
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    header += (header.size() > 1 ? ",\"" : "\"") + tensor.name + "\":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[" +
              shape + "],\"data_offsets\":[" + std::to_string(data.size()) + ",";
    data += tensor.bytes;
    header += std::to_string(data.size()) + "]}";
  }
  return makeImage(header + "}", data);
}

TemporaryFile::TemporaryFile(std::string_view contents) {
  const char *folder = std::getenv("TMPDIR");
  Path = std::string(folder ? folder : "/tmp") + "/kiln_runtime_XXXXXX";
  int descriptor = mkstemp(Path.data());
  if (descriptor < 0 || write(descriptor, contents.data(), contents.size()) != static_cast<ssize_t>(contents.size()))
    std::abort();
  close(descriptor);
}

TemporaryFile::~TemporaryFile() { std::remove(Path.c_str()); }

} // namespace kiln_test
