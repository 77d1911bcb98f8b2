// SPDX-License-Identifier: Apache-2.0
//
// A weight file of which only some tensors may be read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kiln::test {

/// A weight file in memory, with the positions of its tensors.
struct Image {
  explicit Image(const std::string &path) {
    size = std::filesystem::file_size(path);
    std::string bytes(size, '\0');
    std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(size));
    data = static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memcpy(data, bytes.data(), size);
    uint64_t header = 0;
    std::memcpy(&header, data, sizeof header);
    begin = header + sizeof header;
    const std::string text = bytes.substr(sizeof header, header), offsets = "\"data_offsets\":[";
    for (size_t at = 0; (at = text.find(offsets, at)) != std::string::npos; at += offsets.size()) {
      const size_t name = text.rfind('"', text.rfind("\":{", at) - 1) + 1;
      const char *numbers = text.c_str() + at + offsets.size();
      tensors[text.substr(name, text.find('"', name) - name)] = {
          begin + std::stoull(numbers), begin + std::stoull(text.substr(text.find(',', at + offsets.size()) + 1))};
    }
  }
  ~Image() { munmap(data, size); }
  Image(const Image &) = delete;

  /// Protects every page that holds neither header bytes nor kept tensors, so that an access faults. Returns the number
  /// of protected pages.
  size_t forbid(const std::function<bool(const std::string &)> &isKept) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    std::vector<char> kept(size / page + 1);
    auto keep = [&](size_t from, size_t to) {
      std::fill(&kept[0] + from / page, &kept[0] + (to - 1) / page + 1, true);
    };
    keep(0, begin);
    for (const auto &[name, range] : tensors)
      if (isKept(name))
        keep(range.first, range.second);
    size_t forbidden = 0;
    for (size_t i = 0; i < kept.size(); ++i)
      if (!kept[i] && mprotect(data + i * page, page, PROT_NONE) == 0)
        ++forbidden;
    return forbidden;
  }

  char *data = nullptr;
  size_t size = 0, begin = 0;
  std::map<std::string, std::pair<size_t, size_t>> tensors;
};

} // namespace kiln::test
