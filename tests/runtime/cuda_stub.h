// SPDX-License-Identifier: Apache-2.0
// A CUDA driver for tests of the run time that need no kernels: a library with the functions that the run time calls,
// in which memory is the host's at another address, work is done at once, and kernels are functions of the test. It
// counts what is alive, notes each call, and fails where a test says so.
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

/// What a device's address is above the host's of the same byte: one that no CPU follows.
constexpr uint64_t DeviceBase = uint64_t{1} << 60;
template <class T> T *onHost(uint64_t address) { return reinterpret_cast<T *>(address - DeviceBase); }

struct StubLaunch {
  unsigned blocks[3], threads, sharedBytes, cluster;
  bool isEarly;
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
  std::vector<std::function<void()>> graph; // what was captured
};

struct StubData {
  // The machine; tests change it.
  int initResult = 0, devices = 1, major = 9, minor = 0, version = 12040;
  std::map<std::string, StubKernel> kernels;
  std::string newerPtx;          // an image that the driver is too old for
  std::string log = "";          // what the assembler says
  std::string failing;           // the function that fails; "*": any
  int failAfter = 0, result = 0; // after so many successes, with this result
  // What happened.
  std::vector<std::string> calls;
  std::map<uint64_t, size_t> memory; // by address on the device, bytes
  int retained = 0, streams = 0, modules = 0, pinned = 0, links = 0, graphs = 0, executables = 0;
  std::map<std::string, int> sharedBytes; // allowed to a function
  std::vector<std::string> loaded;        // images
  std::vector<int> taken;                 // devices whose context was retained
  std::set<const void *> recorders, used; // streams that were captured, and that did work

  int alive() const {
    return static_cast<int>(memory.size()) + retained + streams + modules + pinned + links + graphs + executables;
  }
  /// How often a function was called, or all.
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
