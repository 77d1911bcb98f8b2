// SPDX-License-Identifier: Apache-2.0
// Shared helpers of the runtime's tests: safetensors images, memory with a guard page, a counting allocator, and the
// small model that test_model.cpp defines.
#ifndef KILN_TESTS_RUNTIME_SUPPORT_H
#define KILN_TESTS_RUNTIME_SUPPORT_H

#include "core/instance.h"
#include "weights/format.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace kiln_test {

/// Returns the functions that the descriptors of parallel models refer to; null in a build without KILN_PARALLEL.
const kiln_sharding_t *sharding();

struct Tensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

/// Returns `values` as a tensor's bytes.
template <typename T> std::string bytesOf(const std::vector<T> &values) {
  return std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
}

/// Returns a file with this header, valid or not, and these bytes of data.
std::string makeImage(std::string_view header, std::string_view data);
/// Returns a well-formed file.
std::string makeImage(const std::vector<Tensor> &tensors);
/// A file in the test's temporary folder, which the destructor removes.
class TemporaryFile {
public:
  explicit TemporaryFile(std::string_view contents);
  ~TemporaryFile();
  const char *path() const { return Path.c_str(); }
  /// Returns the beginning of errors about the file's content.
  std::string words() const { return "file \"" + Path.substr(Path.rfind('/') + 1) + "\": "; }

private:
  std::string Path;
};

/// Memory that ends at a guard page, filled with 0xA5.
class GuardedMemory {
public:
  explicit GuardedMemory(size_t bytes) : Bytes(bytes) {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    Mapped = (bytes + page - 1) / page * page + page;
    Base = static_cast<char *>(mmap(nullptr, Mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (Base == MAP_FAILED || mprotect(Base + Mapped - page, page, PROT_NONE) != 0)
      std::abort();
    Data = Base + Mapped - page - bytes;
    std::memset(Base, 0xA5, Mapped - page);
  }
  explicit GuardedMemory(std::string_view contents) : GuardedMemory(contents.size()) {
    std::memcpy(Data, contents.data(), contents.size());
  }
  GuardedMemory(const GuardedMemory &) = delete;
  GuardedMemory &operator=(const GuardedMemory &) = delete;
  ~GuardedMemory() { munmap(Base, Mapped); }
  char *data() const { return Data; }
  size_t size() const { return Bytes; }
  /// Whether the bytes before data() are unchanged.
  bool isFrontIntact() const {
    for (const char *at = Base; at != Data; ++at)
      if (static_cast<unsigned char>(*at) != 0xA5)
        return false;
    return true;
  }

private:
  size_t Bytes, Mapped;
  char *Base, *Data;
};

/// An allocator that counts live allocations, and fails from allocation number `Limit` on. The destructor releases the
/// remaining ones.
struct CountingAllocator {
  CountingAllocator() = default;
  CountingAllocator(const CountingAllocator &) = delete;
  CountingAllocator &operator=(const CountingAllocator &) = delete;
  ~CountingAllocator() {
    for (void *memory : Blocks)
      std::free(memory);
  }

  int Alive = 0, Made = 0, Limit = 1 << 30;
  std::set<void *> Blocks;
  kiln_allocator_t get() {
    return {this,
            [](void *self, size_t bytes, size_t alignment) -> void * {
              auto *counter = static_cast<CountingAllocator *>(self);
              if (counter->Made == counter->Limit)
                return nullptr;
              ++counter->Made;
              ++counter->Alive;
              void *memory = std::aligned_alloc(alignment, bytes);
              counter->Blocks.insert(memory);
              return memory ? std::memset(memory, 0xA5, bytes) : nullptr; // allocators need not return zeros
            },
            [](void *self, void *memory) {
              auto *counter = static_cast<CountingAllocator *>(self);
              --counter->Alive;
              counter->Blocks.erase(memory);
              std::free(memory);
            }};
  }
};

/// Returns the placement of a weight, as kiln_placement_t, with the fields of the storage format last.
constexpr kiln_placement_t makePlacement(uint64_t offset, uint64_t stride, uint32_t tile, uint32_t dim, uint64_t shift,
                                         kiln_dtype_t dtype = KILN_F32, uint64_t scales = 0, uint32_t group = 0,
                                         uint64_t zeros = 0) {
  return {offset, stride, tile, dim, shift, scales, dtype, group, zeros};
}

/// Returns a placement whose arrays follow one another as the compiler places them, for this many outputs after the
/// shift. group: as in kiln_placement_t. hasThird: the format has zero points or outer scales.
inline kiln_placement_t makeStoredPlacement(kiln_dtype_t dtype, uint64_t outputs, uint64_t kExtent, uint32_t tile,
                                            uint32_t dim = 0, uint64_t shift = 0, uint32_t group = 0,
                                            bool hasThird = false) {
  const uint64_t whole = (shift + outputs + tile - 1) / tile * tile;
  kiln_format_array_t arrays[KILN_FORMAT_ARRAYS];
  kiln_format_arrays(kiln_format_find(dtype, group, hasThird), group, arrays);
  uint64_t offsets[KILN_FORMAT_ARRAYS] = {}, end = 0;
  for (int i = 0; i < KILN_FORMAT_ARRAYS; ++i)
    if (arrays[i].bytes) {
      offsets[i] = (end + KILN_FORMAT_ALIGNMENT - 1) / KILN_FORMAT_ALIGNMENT * KILN_FORMAT_ALIGNMENT;
      end = offsets[i] + whole * kiln_format_items(&arrays[i], kExtent) * arrays[i].bytes;
    }
  return makePlacement(0, 0, tile, dim, shift, dtype, offsets[1], group, offsets[2]);
}

/// CPU features that each machine of the tests has. The names of variants are those of x86-64 everywhere: no code is
/// compiled for them.
#if defined(__aarch64__)
constexpr uint64_t HostFeatures = KILN_CPU_AARCH64;
#else
constexpr uint64_t HostFeatures = KILN_CPU_X86_64_V2;
#endif

/// Returns a variant for CPUs.
constexpr kiln_variant_t hostVariant(const char *target, uint64_t features, const kiln_placement_t *placements,
                                     uint64_t packedBytes, const kiln_body_t *bodies) {
  kiln_variant_t variant = {};
  variant.target = target;
  variant.features = features;
  variant.memory_space = KILN_MEMORY_HOST;
  variant.placements = placements;
  variant.packed_bytes = packedBytes;
  variant.bodies = bodies;
  return variant;
}

/// The model of test_model.cpp: y[t] = W1 (W0 table[ids[t]]), rows of Width.
constexpr int Vocabulary = 5, Width = 3, Layers = 2, MaxTokens = 16;
/// Returns its weights: small integers, so that results are exact.
std::vector<Tensor> testWeights();
/// Returns the expected results of forward with the weights above.
std::vector<float> expectedRows(const std::vector<int32_t> &ids);

/// Returns an entry that is not batched.
constexpr kiln_entry_t entryOf(const char *name, const kiln_symbol_t *symbols, const kiln_argument_t *arguments,
                               uint32_t symbolCount, uint32_t argumentCount) {
  return {name, symbols, arguments, symbolCount, argumentCount, nullptr, 0, 0, 0, 0, 0};
}

/// A model of one entry "forward" without weights or arguments, for tests that provide a body.
struct BodyModel {
  kiln_body_t Body;
  kiln_entry_t Entry = entryOf("forward", nullptr, nullptr, 0, 0);
  kiln_variant_t Variant = hostVariant("x86-64-v2", HostFeatures, nullptr, 0, &Body);
  kiln_descriptor_t Descriptor = {KILN_ABI_VERSION, 0, 1, 1, "body", nullptr, &Entry, &Variant, nullptr, 0};
  kiln_model_t *Model = nullptr;

  BodyModel(int (*run)(const kiln_frame_t *), uint64_t planBytes, uint64_t scratchBytes, uint64_t taskBytes)
      : Body{run, planBytes, scratchBytes, taskBytes, 0} {
    const kiln_cpu_t cpu = kiln_cpu_detect();
    const kiln_options_t options = {};
    if (kiln_model_create(&Descriptor, &cpu, &options, &Model, nullptr) != KILN_OK)
      std::abort();
  }
  BodyModel(const BodyModel &) = delete;
  BodyModel &operator=(const BodyModel &) = delete;
  ~BodyModel() { kiln_destroy(Model); }
  size_t arenaBytes(uint32_t workers) const {
    return kiln_arena_fixed_bytes(Body.plan_bytes, Body.scratch_bytes, Body.task_bytes) +
           workers * kiln_arena_worker_bytes(Body.task_bytes);
  }
};

} // namespace kiln_test

#endif // KILN_TESTS_RUNTIME_SUPPORT_H
