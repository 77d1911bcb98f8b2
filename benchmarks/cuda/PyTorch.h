// SPDX-License-Identifier: Apache-2.0
//
// PyTorch on the same GPU, in a separate Python process (serve.py), which times its own turns by events.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace kiln::bench {

class GpuPyTorch {
public:
  /// Returns null if there is no PyTorch with a GPU, and `why` says what is missing.
  static std::unique_ptr<GpuPyTorch> start(std::string &why);
  ~GpuPyTorch();
  GpuPyTorch(const GpuPyTorch &) = delete;
  GpuPyTorch &operator=(const GpuPyTorch &) = delete;

  const std::string &version() const { return words; }
  /// Creates a case and returns the names of the available forms, such as eager and compiled; empty if it cannot.
  std::vector<std::string> make(const std::string &description);
  /// Returns the seconds per call, over `calls` calls.
  double run(const std::string &form, int calls);
  std::vector<float> output(std::size_t count);

private:
  GpuPyTorch() = default;
  void command(const std::string &line);
  std::string readLine();

  pid_t child = -1;
  std::FILE *commands = nullptr, *answers = nullptr;
  std::string words;
};

} // namespace kiln::bench
