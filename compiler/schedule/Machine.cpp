// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/Machine.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <set>
#include <unistd.h>

namespace kiln {

static std::string printBytes(int64_t bytes) {
  for (auto [unit, suffix] : {std::pair(int64_t(1) << 20, "M"), std::pair(int64_t(1) << 10, "K")})
    if (bytes != 0 && bytes % unit == 0)
      return std::to_string(bytes / unit) + suffix;
  return std::to_string(bytes);
}

static constexpr int64_t gibibyte = int64_t(1) << 30, mebibyte = int64_t(1) << 20;

static std::string printMemory(int64_t bytes) {
  return bytes % gibibyte ? printBytes(bytes) : std::to_string(bytes / gibibyte) + "G";
}

static std::optional<int64_t> parseBytes(llvm::StringRef text) {
  int64_t unit = text.consume_back("M") ? int64_t(1) << 20 : text.consume_back("K") ? int64_t(1) << 10 : 1;
  int64_t number;
  if (text.getAsInteger(10, number) || number < 0 || number > (int64_t(1) << 40) / unit)
    return std::nullopt;
  return number * unit;
}

static std::optional<int64_t> parseMemory(llvm::StringRef text) {
  const int64_t unit = text.consume_back("G") ? gibibyte : 1;
  std::optional<int64_t> number = parseBytes(text);
  if (!number || *number > (int64_t(1) << 50) / unit)
    return std::nullopt;
  return *number * unit;
}

Machine makeGpu(llvm::StringRef isa, llvm::StringRef name, int64_t capability, int64_t memoryBytes) {
  Machine machine;
  machine.isa = isa.str();
  for (char c : name.trim())
    machine.gpu += llvm::isAlnum(c) || c == '.' || c == '_' ? c : '-';
  if (machine.gpu.empty())
    machine.gpu = "-";
  machine.capability = capability;
  const int64_t unit = memoryBytes < gibibyte ? mebibyte : gibibyte;
  machine.memoryBytes = (memoryBytes + unit / 2) / unit * unit;
  return machine;
}

int64_t gpuLanes(int64_t capability) { return capability <= 80 ? 64 : 128; }

/// Parses NAME/MAJOR.MINOR/m:SIZE.
static bool parseGpu(llvm::ArrayRef<llvm::StringRef> parts, Machine &machine) {
  auto [major, minor] = parts[1].split('.');
  llvm::StringRef memory = parts[2];
  int64_t ofMajor, ofMinor;
  if (parts[0].empty() || major.getAsInteger(10, ofMajor) || minor.getAsInteger(10, ofMinor) || ofMajor < 0 ||
      ofMajor > 1000 || ofMinor < 0 || ofMinor > 9 || !memory.consume_front("m:"))
    return false;
  std::optional<int64_t> bytes = parseMemory(memory);
  machine.gpu = parts[0].str();
  machine.capability = 10 * ofMajor + ofMinor;
  machine.memoryBytes = bytes.value_or(0);
  return bytes.has_value();
}

std::string toString(const Machine &machine) {
  if (machine.isGpu())
    return llvm::formatv("{0}/{1}/{2}.{3}/m:{4}", machine.isa, machine.gpu, machine.capability / 10,
                         machine.capability % 10, printMemory(machine.memoryBytes));
  return llvm::formatv("{0}/c{1}/l1:{2}/l2:{3}/l3:{4}", machine.isa, machine.cores, printBytes(machine.l1Bytes),
                       printBytes(machine.l2Bytes), printBytes(machine.l3Bytes));
}

std::optional<Machine> parseMachine(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, '/');
  if (parts.empty() || parts[0].empty())
    return std::nullopt;
  Machine machine;
  machine.isa = parts[0].str();
  if (parts.size() == 4)
    return parseGpu(llvm::ArrayRef(parts).drop_front(), machine) ? std::optional(machine) : std::nullopt;
  if (parts.size() != 5)
    return std::nullopt;
  if (!parts[1].consume_front("c") || parts[1].getAsInteger(10, machine.cores) || machine.cores < 1)
    return std::nullopt;
  const std::pair<const char *, int64_t *> caches[] = {
      {"l1:", &machine.l1Bytes}, {"l2:", &machine.l2Bytes}, {"l3:", &machine.l3Bytes}};
  for (size_t i = 0; i < 3; ++i) {
    std::optional<int64_t> bytes;
    if (parts[2 + i].consume_front(caches[i].first))
      bytes = parseBytes(parts[2 + i]);
    if (!bytes)
      return std::nullopt;
    *caches[i].second = *bytes;
  }
  return machine;
}

static std::string readFile(const std::string &path) {
  // Files in sysfs have no size.
  auto buffer = llvm::MemoryBuffer::getFileAsStream(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

Machine detectMachine(llvm::StringRef isa, const std::string &folder) {
  return detectMachine(isa, std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)), folder, readFile);
}

Machine detectMachine(llvm::StringRef isa, int64_t cpus, const std::string &folder,
                      llvm::function_ref<std::string(const std::string &path)> read) {
  auto readLine = [&](const std::string &path) { return llvm::StringRef(read(path)).trim().str(); };
  Machine machine;
  machine.isa = isa.str();
  // Threads that share a core have the same name.
  std::set<std::string> cores;
  llvm::SmallVector<llvm::StringRef> ranges;
  std::string online = readLine(folder + "/online");
  llvm::StringRef(online).split(ranges, ',', -1, false);
  for (llvm::StringRef range : ranges) {
    auto [from, to] = range.split('-');
    unsigned first, last;
    if (from.getAsInteger(10, first) || (to.empty() ? from : to).getAsInteger(10, last))
      continue;
    for (unsigned cpu = first; cpu <= last; ++cpu) {
      std::string topology = folder + "/cpu" + std::to_string(cpu) + "/topology/";
      std::string core = readLine(topology + "core_id");
      cores.insert(core.empty() ? "cpu" + std::to_string(cpu)
                                : readLine(topology + "physical_package_id") + ":" + core);
    }
  }
  machine.cores = cores.empty() ? cpus : static_cast<int64_t>(cores.size());

  for (int index = 0;; ++index) {
    std::string cache = folder + "/cpu0/cache/index" + std::to_string(index) + "/";
    std::string level = readLine(cache + "level"), type = readLine(cache + "type");
    if (level.empty())
      break;
    int64_t *bytes = level == "1"   ? &machine.l1Bytes
                     : level == "2" ? &machine.l2Bytes
                     : level == "3" ? &machine.l3Bytes
                                    : nullptr;
    if (bytes && type != "Instruction")
      *bytes = parseBytes(readLine(cache + "size")).value_or(0);
  }
  return machine;
}

} // namespace kiln
