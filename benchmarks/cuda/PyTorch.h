// SPDX-License-Identifier: Apache-2.0
//
// PyTorch on the same GPU, in a Python process of its own (serve.py), which times its turns itself, by events.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace kiln::bench {

class GpuPyTorch {
public:
  /// Null if there is no PyTorch that finds a GPU, and `why` says what is missing.
  static std::unique_ptr<GpuPyTorch> start(std::string &why);
  ~GpuPyTorch();
  GpuPyTorch(const GpuPyTorch &) = delete;
  GpuPyTorch &operator=(const GpuPyTorch &) = delete;

  const std::string &version() const { return words; }
  /// Makes a case: the names of the forms that it can run, such as eager and compiled. None: it cannot.
  std::vector<std::string> make(const std::string &description);
  /// Seconds of a call, of so many.
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
