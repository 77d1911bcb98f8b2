// SPDX-License-Identifier: Apache-2.0
//
// Implements the functions of control.h.
#include "control.h"

#include <algorithm>

#include "Driver.h"

using namespace kiln::fake;

namespace {

kiln_fake_cuda_leaks_t aliveIn(const Driver &driver) {
  kiln_fake_cuda_leaks_t leaks{};
  for (const auto &[handle, context] : driver.contexts.all()) {
    leaks.contexts += !context->primary;
    leaks.allocations += static_cast<unsigned>(context->allocations.size());
    for (const auto &[address, bytes] : context->allocations)
      leaks.allocated_bytes += bytes;
  }
  for (const Device &device : driver.devices)
    leaks.primary_references += device.primaryReferences;
  leaks.modules = driver.modules.size();
  leaks.pinned = static_cast<unsigned>(driver.pinned.size());
  leaks.streams = driver.streams.size();
  leaks.events = driver.events.size();
  leaks.graphs = driver.graphs.size();
  leaks.executables = driver.executables.size();
  leaks.links = driver.links.size();
  leaks.orphans = driver.orphans;
  return leaks;
}

template <class Body> auto locked(Body body) {
  Driver &driver = Driver::get();
  const std::lock_guard lock(driver.mutex);
  return body(driver);
}

void copy(unsigned (&to)[3], const unsigned (&from)[3]) { std::copy(from, from + 3, to); }

} // namespace

void kiln_fake_cuda_alive(kiln_fake_cuda_leaks_t *leaks) {
  locked([&](Driver &driver) { *leaks = aliveIn(driver); });
}

void kiln_fake_cuda_reset(kiln_fake_cuda_leaks_t *leaks) {
  locked([&](Driver &driver) {
    if (leaks)
      *leaks = aliveIn(driver);
    driver.reset();
  });
}

int kiln_fake_cuda_set_devices(const char *devices) {
  return locked([&](Driver &driver) { return parseDevices(devices, driver.configuration.devices) ? 0 : 1; });
}

void kiln_fake_cuda_set_driver_version(int version) {
  locked([&](Driver &driver) { driver.configuration.version = version; });
}

void kiln_fake_cuda_set_absent(const char *functions) {
  locked([&](Driver &driver) { driver.configuration.absent = parseNames(functions); });
}

void kiln_fake_cuda_set_eager(int eager) {
  locked([&](Driver &driver) { driver.configuration.eager = eager != 0; });
}

void kiln_fake_cuda_set_instruction_limit(uint64_t limit) {
  locked([&](Driver &driver) { driver.configuration.instructionLimit = limit; });
}

void kiln_fake_cuda_inject(const char *function, unsigned nth, int error) {
  locked([&](Driver &driver) { driver.injections.push_back({function, nth, static_cast<CUresult>(error)}); });
}

void kiln_fake_cuda_inject_nothing(void) {
  locked([](Driver &driver) { driver.injections.clear(); });
}

unsigned kiln_fake_cuda_injections_waiting(void) {
  return locked([](Driver &driver) { return static_cast<unsigned>(driver.injections.size()); });
}

size_t kiln_fake_cuda_calls(void) {
  return locked([](Driver &driver) { return driver.records.size(); });
}

int kiln_fake_cuda_call(size_t index, kiln_fake_cuda_call_t *call) {
  return locked([&](Driver &driver) {
    if (index >= driver.records.size())
      return 1;
    const Record &record = driver.records[index];
    *call = {};
    call->function = record.function.c_str();
    call->result = record.result;
    call->bytes = record.bytes;
    call->stream = record.stream;
    call->kernel = record.kernel.c_str();
    copy(call->grid, record.grid);
    copy(call->block, record.block);
    copy(call->cluster, record.cluster);
    call->shared_bytes = record.sharedBytes;
    return 0;
  });
}

size_t kiln_fake_cuda_count(const char *function) {
  return locked([&](Driver &driver) -> size_t {
    if (std::string_view(function) == "*")
      return driver.records.size();
    const auto found = driver.counts.find(function);
    return found == driver.counts.end() ? 0 : found->second;
  });
}

void kiln_fake_cuda_totals(kiln_fake_cuda_totals_t *totals) {
  locked([&](Driver &driver) {
    *totals = {driver.kernels, driver.copies, 0, driver.warpInstructions};
    for (const auto &[handle, context] : driver.contexts.all())
      for (const auto &stream : context->streams)
        totals->waiting +=
            static_cast<std::uint64_t>(std::count_if(stream->items.begin(), stream->items.end(), [](const Item &item) {
              return item.work.kind != Work::Kind::marker;
            }));
  });
}

const char *kiln_fake_cuda_failure(void) {
  static thread_local std::string words;
  words = locked([](Driver &driver) { return driver.failure; });
  return words.c_str();
}
