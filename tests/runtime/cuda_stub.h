// SPDX-License-Identifier: Apache-2.0
// A CUDA driver for runtime tests that need no kernels: a library with the driver functions that the runtime calls.
// Device memory is host memory at an offset address, work runs immediately, and kernels are functions of the test. The
// stub counts live objects, records each call, and fails where a test says so.
#ifndef KILN_TESTS_RUNTIME_CUDA_STUB_H
#define KILN_TESTS_RUNTIME_CUDA_STUB_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace kiln_test {

/// The offset of a device address from the host address of the same byte. The result is not a valid CPU address.
constexpr uint64_t DeviceBase = uint64_t{1} << 60;
template <class T> T *onHost(uint64_t address) { return reinterpret_cast<T *>(address - DeviceBase); }

struct StubLaunch {
  unsigned blocks[3], threads, sharedBytes, cluster;
  bool isDependentLaunch;
  std::vector<std::vector<char>> parameters;

  template <class T> T parameter(size_t index) const {
    T value;
    std::memcpy(&value, parameters.at(index).data(), sizeof value);
    return value;
  }
};

struct StubKernel {
  std::vector<size_t> parameterBytes;
  std::function<void(const StubLaunch &)> run;
};

struct StubStream {
  bool isCapturing = false;
  std::vector<std::function<void()>> graph; // the captured work
};

struct StubData {
  // The configuration of the machine; tests change it.
  int initResult = 0, devices = 1, major = 9, minor = 0, version = 12040;
  std::map<std::string, StubKernel> kernels;
  std::string newerPtx;          // an image that requires a newer driver
  std::string log = "";          // the assembler's log
  std::string failing;           // the function that fails; "*" for any function
  int failAfter = 0, result = 0; // the number of successes before the failure, and the failure's result
  // Recorded events.
  std::vector<std::string> calls;
  std::map<uint64_t, size_t> memory; // bytes by device address
  int retained = 0, streams = 0, modules = 0, pinned = 0, links = 0, graphs = 0, executables = 0;
  std::map<std::string, int> sharedBytes; // the maximum that was set for a function
  std::vector<std::string> loaded;        // images
  std::vector<int> taken;                 // devices whose primary context was retained
  std::set<const void *> recorders, used; // streams that were captured, and those that ran work

  int alive() const {
    return static_cast<int>(memory.size()) + retained + streams + modules + pinned + links + graphs + executables;
  }
  /// Returns how often a function, or any function, was called.
  int count(const std::string &name) const {
    int count = 0;
    for (const std::string &call : calls)
      count += call == name;
    return count;
  }
};

struct StubState : StubData {
  std::recursive_mutex lock;
};

} // namespace kiln_test

#endif // KILN_TESTS_RUNTIME_CUDA_STUB_H
