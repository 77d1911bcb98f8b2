// SPDX-License-Identifier: Apache-2.0
//
// A generated library in a GPU benchmark: its model with the generator's weights, and tensors on the device. A failure
// is reported and ends the program.
#pragma once

#include "benchmarks/cuda/Compare.h"
#include "benchmarks/support/Threads.h"
#include "tests/models/half_floats.h"
#include "tests/models/weights.h"

#include <algorithm>
#include <cstdlib>
#include <type_traits>

namespace kiln::bench {

/// The functions of a NAME.h that a benchmark calls.
template <class Handle> struct DeviceFunctions {
  kiln_status_t (*create)(const kiln_options_t *, Handle **, kiln_error_t *);
  kiln_status_t (*bind)(Handle *, const void *, std::size_t, kiln_error_t *);
  kiln_status_t (*allocate)(const Handle *, std::size_t, void **, kiln_error_t *);
  kiln_status_t (*copyTo)(const Handle *, void *, const void *, std::size_t, kiln_error_t *);
  kiln_status_t (*copyFrom)(const Handle *, void *, const void *, std::size_t, kiln_error_t *);
  void (*release)(const Handle *, void *);
  void (*destroy)(Handle *);
};
#define KILN_BENCH_DEVICE_FUNCTIONS(name)                                                                              \
  {name##_create_on,        name##_bind_weights_from_memory, name##_allocate_memory, name##_copy_to_memory,            \
   name##_copy_from_memory, name##_release_memory,           name##_destroy}

/// Converts values to elements of type `T`; bf16, which is `uint16_t` here, rounds to nearest even.
template <class T> std::vector<T> toElements(std::vector<float> values) {
  if constexpr (std::is_same_v<T, float>) {
    return values;
  } else {
    static_assert(std::is_same_v<T, std::uint16_t>);
    std::vector<T> elements(values.size());
    std::transform(values.begin(), values.end(), elements.begin(), testing::to_bf16);
    return elements;
  }
}

template <class T> std::vector<float> toFloats(std::vector<T> elements) {
  if constexpr (std::is_same_v<T, float>) {
    return elements;
  } else {
    static_assert(std::is_same_v<T, std::uint16_t>);
    std::vector<float> values(elements.size());
    std::transform(elements.begin(), elements.end(), values.begin(), testing::from_bf16);
    return values;
  }
}

/// For NAME_WEIGHTS(X): the elements of a vector of WeightShape.
#define KILN_BENCH_DEVICE_WEIGHT(name, type, copies, ...) {name, copies, {__VA_ARGS__}},

template <class Handle> class DeviceModel {
public:
  DeviceModel(const DeviceFunctions<Handle> &functions, const std::vector<testing::WeightShape> &weights)
      : functions(functions) {
    kiln_options_t options = {};
    options.device = KILN_CUDA;
    check(functions.create(&options, &handle, &error));
    const testing::WeightImage image(weights);
    if (!weights.empty())
      check(functions.bind(handle, image.data(), image.size(), &error));
  }
  ~DeviceModel() {
    for (void *each : memory)
      functions.release(handle, each);
    functions.destroy(handle);
  }
  DeviceModel(const DeviceModel &) = delete;
  DeviceModel &operator=(const DeviceModel &) = delete;

  const Handle *get() const { return handle; }

  /// Allocates device memory, without or with values; it lives as long as the model.
  void *allocate(std::size_t bytes) {
    check(functions.allocate(handle, bytes, &memory.emplace_back(), &error));
    return memory.back();
  }
  template <class T> T *place(const std::vector<T> &values) {
    void *to = allocate(values.size() * sizeof(T));
    copyTo(to, values);
    return static_cast<T *>(to);
  }
  template <class T> void copyTo(void *to, const std::vector<T> &values) {
    check(functions.copyTo(handle, to, values.data(), values.size() * sizeof(T), &error));
  }
  /// Copies values from the device, as f32.
  template <class T> std::vector<float> fetch(const T *from, std::size_t count) {
    std::vector<T> values(count);
    check(functions.copyFrom(handle, values.data(), from, count * sizeof(T), &error));
    return toFloats(std::move(values));
  }

  /// Returns a device call in the GPU's stream, with an arena that is shared with other calls that need at most as
  /// much.
  kiln_call_t makeCall(const Gpu &gpu, std::size_t arenaBytes) {
    kiln_call_t call = {};
    if (arenaBytes > sharedBytes) {
      sharedArena = allocate(arenaBytes);
      sharedBytes = arenaBytes;
    }
    call.arena = sharedArena;
    call.arena_bytes = arenaBytes;
    call.error = &error;
    call.stream = gpu.stream();
    call.memory = KILN_DEVICE_POINTERS;
    return call;
  }
  void check(kiln_status_t status) const {
    if (status == KILN_OK)
      return;
    std::fprintf(stderr, "error: %s\n", error.message);
    std::exit(1);
  }

private:
  DeviceFunctions<Handle> functions;
  Handle *handle = nullptr;
  kiln_error_t error = {};
  std::vector<void *> memory;
  void *sharedArena = nullptr;
  std::size_t sharedBytes = 0;
};

/// A run of `entry(model, call, ...)`, whose first output has `count` elements.
template <class Handle, class Element, class Entry>
GpuRun makeRun(std::shared_ptr<DeviceModel<Handle>> model, const Gpu &gpu, std::size_t arenaBytes,
               const Element *output, std::size_t count, Entry entry) {
  const kiln_call_t call = model->makeCall(gpu, arenaBytes);
  return {[model, call, entry] { model->check(entry(model->get(), &call)); },
          [model, output, count] { return model->fetch(output, count); }};
}

} // namespace kiln::bench
