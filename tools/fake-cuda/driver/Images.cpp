// SPDX-License-Identifier: Apache-2.0
//
// Images: which code may run on a device, the header of linked code, and the options of the just-in-time compiler.
#include "Images.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace kiln::fake {
namespace {

constexpr char magic[8] = {'K', 'I', 'L', 'N', 'C', 'U', 'B', '\0'};
struct CubinHeader {
  char magic[8];
  std::uint32_t capability, bytes; ///< bytes of the text
};

constexpr int lastOption = 34;

/// Returns the newest PTX version that a driver knows: 8.4 for CUDA 12.4; from 12.6 on the version numbers diverge.
int newestPtx(int version) {
  const int major = version / 1000, minor = version % 1000 / 10;
  if (major >= 13)
    return 90 + minor;
  if (major == 12)
    return 80 + (minor < 6 ? minor : minor - 1);
  return (major - 4) * 10 + minor;
}

std::string_view wordAfter(std::string_view text, std::string_view directive) {
  std::size_t at = text.find(directive);
  if (at == std::string_view::npos)
    return {};
  at = std::min(text.find_first_not_of(" \t", at + directive.size()), text.size());
  return text.substr(at, text.find_first_of(" \t\r\n,;/", at) - at);
}

Head headOf(std::string_view text) {
  Head head;
  int major = 0, minor = 0;
  if (std::sscanf(std::string(wordAfter(text, ".version")).c_str(), "%d.%d", &major, &minor) == 2)
    head.version = major * 10 + minor;
  const std::string target(wordAfter(text, ".target"));
  std::sscanf(target.c_str(), "sm_%d", &head.target);
  head.exact = target.ends_with('a');
  return head;
}

} // namespace

Loading parsePtx(const Driver &driver, const Device &device, std::string_view text) {
  Loading loading;
  loading.head = headOf(text);
  const auto [version, target, exact] = loading.head;
  const auto refuse = [&](CUresult code, std::string words) {
    loading.code = code;
    loading.words = "ptxas fatal : " + std::move(words);
    return loading;
  };
  if (!version || !target)
    return refuse(CUDA_ERROR_INVALID_PTX, "the text has no .version or no .target");
  if (version > newestPtx(driver.configuration.version))
    return refuse(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
                  fmt::format("unsupported .version {}.{}; this driver has {}.{}", version / 10, version % 10,
                              newestPtx(driver.configuration.version) / 10,
                              newestPtx(driver.configuration.version) % 10));
  const int capability = static_cast<int>(device.capability());
  if (exact ? capability != target : capability < target)
    return refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, fmt::format(".target sm_{}{} does not run on a device of sm_{}", target,
                                                            exact ? "a" : "", capability));
  std::string error;
  loading.module = ptx::Module::parse(text, error);
  if (!loading.module)
    return refuse(CUDA_ERROR_INVALID_PTX, error);
  return loading;
}

std::vector<char> makeCubin(const Device &device, std::string_view text) {
  CubinHeader header{{}, device.capability(), static_cast<std::uint32_t>(text.size())};
  std::memcpy(header.magic, magic, sizeof magic);
  std::vector<char> cubin(sizeof header);
  std::memcpy(cubin.data(), &header, sizeof header);
  cubin.insert(cubin.end(), text.begin(), text.end());
  return cubin;
}

bool isCubin(const void *image) { return std::strncmp(static_cast<const char *>(image), magic, sizeof magic) == 0; }

Loading openCubin(const Device &device, const void *image, std::string_view &text) {
  CubinHeader header;
  std::memcpy(&header, image, sizeof header);
  text = {static_cast<const char *>(image) + sizeof header, header.bytes};
  Loading loading;
  if (header.capability != device.capability()) {
    loading.code = CUDA_ERROR_NO_BINARY_FOR_GPU;
    loading.words = fmt::format("linked for sm_{}, and the device is of sm_{}", header.capability, device.capability());
  }
  return loading;
}

CUresult readOptions(unsigned count, const CUjit_option *options, void **values, JitOptions &read) {
  if (count && (!options || !values))
    return CUDA_ERROR_INVALID_VALUE;
  read.values = values;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] < 0 || options[i] > lastOption)
      return CUDA_ERROR_INVALID_VALUE;
    const bool error = options[i] >= jitErrorLog;
    if (options[i] == jitInfoLog || options[i] == jitErrorLog)
      read.log[error] = static_cast<char *>(values[i]);
    if (options[i] == jitInfoLogBytes || options[i] == jitErrorLogBytes) {
      read.size[error] = static_cast<std::size_t>(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values[i])));
      read.sizeIndex[error] = static_cast<int>(i);
    }
  }
  for (const bool error : {false, true})
    if (read.log[error] && read.sizeIndex[error] < 0)
      return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

void JitOptions::write(bool error, const std::string &words) const {
  if (sizeIndex[error] < 0)
    return;
  std::size_t written = 0;
  if (log[error] && size[error]) {
    written = std::min(words.size(), size[error] - 1);
    std::memcpy(log[error], words.data(), written);
    log[error][written] = 0;
  }
  values[sizeIndex[error]] = reinterpret_cast<void *>(static_cast<std::uintptr_t>(written));
}

} // namespace kiln::fake
