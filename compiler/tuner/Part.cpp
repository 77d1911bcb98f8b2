// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/Part.h"

#include "compiler/kernel/KernelKey.h"
#include "compiler/kernel/Workload.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace kiln {

std::optional<Part> parsePart(const std::string &text) {
  auto [number, count] = llvm::StringRef(text).split('/');
  Part part;
  if (number.getAsInteger(10, part.number) || count.getAsInteger(10, part.count))
    return std::nullopt;
  return part.number >= 1 && part.number <= part.count ? std::optional(part) : std::nullopt;
}

std::string toString(const Part &part) { return fmt::format("{}/{}", part.number, part.count); }

std::vector<unsigned> dealKernels(const std::vector<DealtKernel> &kernels, unsigned count) {
  std::map<std::string, double> times;
  for (const DealtKernel &kernel : kernels)
    times[kernel.key] += kernel.time;
  std::vector<std::pair<std::string, double>> cards(times.begin(), times.end()); // sorted by key, which breaks ties
  llvm::stable_sort(cards, [](const auto &a, const auto &b) { return a.second > b.second; });
  std::map<std::string, unsigned> parts;
  for (auto [i, card] : llvm::enumerate(cards)) {
    const unsigned round = i / count, seat = i % count;
    parts[card.first] = 1 + (round % 2 == 0 ? seat : count - 1 - seat);
  }
  std::vector<unsigned> numbers;
  for (const DealtKernel &kernel : kernels)
    numbers.push_back(parts[kernel.key]);
  return numbers;
}

/// Returns the time in units of one operation. A byte takes about as long as ten operations; the larger of both counts.
static double timeInModel(const KernelToTune &kernel) {
  double time = 0;
  for (const Workload &workload : kernel.workloads) {
    const Work work = measureWork(kernel.use.kernel, workload.extents);
    time += workload.calls * std::max(work.operations, 10 * (work.bytesRead + work.bytesWritten));
  }
  return time;
}

std::vector<KernelToTune> takePart(std::vector<KernelToTune> kernels, const Part &part) {
  std::vector<DealtKernel> dealt;
  for (const KernelToTune &kernel : kernels) {
    const KernelKey key = keyOf(kernel.use.kernel);
    dealt.push_back(
        {fmt::format("{} {} {}", key.structure, toString(key.shape), toString(key.bounds)), timeInModel(kernel)});
  }
  std::vector<KernelToTune> taken;
  for (auto [kernel, number] : llvm::zip_equal(kernels, dealKernels(dealt, part.count)))
    if (number == part.number)
      taken.push_back(std::move(kernel));
  return taken;
}

} // namespace kiln
