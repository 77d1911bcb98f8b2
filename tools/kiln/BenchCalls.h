// SPDX-License-Identifier: Apache-2.0
//
// The calls of a compiled model that `bench` times: the model as a library in this process, and the times of an entry
// and of its kernels.
#pragma once

#include "compiler/driver/Compile.h"
#include "compiler/tuner/LinkedObjects.h"
#include "runtime/src/core/instance.h"
#include "runtime/src/core/run.h"
#include "runtime/src/selftest/counter.h"
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace kiln {

/// The times of a kernel over some calls of an entry.
struct KernelTime {
  std::set<std::string> layers;
  uint64_t calls = 0, flops = 0, bytes = 0; // per call of the entry
  double seconds = 0;                       // sum over these calls: the median over calls of the entry
};

/// Memory that is aligned as an arena requires.
class Aligned {
public:
  explicit Aligned(uint64_t bytes) : bytes(bytes), memory(bytes + KILN_ARENA_ALIGNMENT) {}
  char *data() {
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + (KILN_ARENA_ROUND(address) - address);
  }
  const uint64_t bytes;

private:
  std::vector<char> memory; // zeros, as at the start of a session
};

/// The model as a library in this process, with weights.
class LoadedModel {
public:
  /// Links the objects of a report with EmitForm::Memory and binds computed weights.
  static llvm::Expected<LoadedModel> load(const CompileReport &report);

  kiln_status_t run(const kiln_call_t &call, uint32_t entry, const std::vector<int64_t> &extents,
                    const std::vector<void *> &arguments) const {
    return runEntry(handle.get(), &call, entry, extents.data(), arguments.data());
  }

  const kiln_entry_t &entry(uint32_t index) const { return descriptor->entries[index]; }

private:
  LoadedModel(const CompileReport &report, LinkedObjects objects) : report(report), linked(std::move(objects)) {}
  template <class Function> llvm::Expected<Function *> function(const char *name) {
    llvm::Expected<void *> address = linked.lookup(report.model.name + "_" + name);
    if (!address)
      return address.takeError();
    return reinterpret_cast<Function *>(*address);
  }

  const CompileReport &report;
  LinkedObjects linked;
  const kiln_descriptor_t *descriptor = nullptr;
  std::unique_ptr<kiln_model_t, decltype(&kiln_destroy)> handle{nullptr, nullptr};
  decltype(kiln_run) *runEntry = nullptr;
};

/// Calls of one entry with the same arguments.
class EntryCalls {
public:
  EntryCalls(const LoadedModel &model, uint32_t index, std::vector<int64_t> extents, uint64_t arenaBytes,
             const kiln_executor_t *executor);

  /// Calls the entry. Fails with the library's message.
  llvm::Error call(const kiln_trace_t *trace = nullptr);

private:
  const LoadedModel &model;
  const uint32_t index;
  const std::vector<int64_t> extents;
  std::deque<Aligned> buffers;
  std::vector<void *> arguments;
  Aligned arena;
  const kiln_executor_t *executor;
};

/// The measurements of an entry.
struct EntryTimes {
  std::string name, extents;
  double seconds = 0;                        // median of the calls
  double tracedSeconds = 0, costOfANote = 0; // median of the traced calls; overhead of tracing per kernel
  double scale = 1; // by which the kernels' times are multiplied, so that they add up to at most `seconds`
  std::map<std::string, KernelTime> kernels;
};

/// Repeats calls until the time is over, at least three times. Plain and traced calls alternate, so that both run under
/// the same conditions.
llvm::Expected<EntryTimes> measure(EntryCalls &calls, double seconds);

/// The work of a call, from its trace.
struct CallWork {
  uint64_t flops = 0, bytes = 0;
  /// Whether a call takes at most about a millisecond on one thread: then starting other threads would take as long as
  /// they save.
  bool isSmall() const { return flops <= 20'000'000 && bytes <= 8'000'000; }
};

/// Calls the entry once.
llvm::Expected<CallWork> measureWork(EntryCalls &calls);

} // namespace kiln
