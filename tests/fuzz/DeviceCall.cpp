// SPDX-License-Identifier: Apache-2.0
//
// Calls a model on a device: tensors and arena are allocations of exactly the requested size, whose bounds the PTX
// interpreter checks. Displaced tensors have margins before and after them that must not change, which detects errors
// on a real GPU too.
#include "CompiledModel.h"

#include <cstdlib>
#include <dlfcn.h>

namespace kiln::fuzz {

namespace {

constexpr size_t margin = 64; // bytes around a displaced tensor

/// The library's functions for device memory, which return error messages.
struct DeviceMemory {
  kiln_model_t *model;
  decltype(kiln_allocate_memory) *allocate;
  decltype(kiln_release_memory) *release;
  decltype(kiln_copy_to_memory) *copyTo;
  decltype(kiln_copy_from_memory) *copyFrom;
};

/// Returns the fault that the fake driver found in a kernel; empty with another driver.
std::string fault() {
  const char *name = std::getenv("KILN_CUDA_DRIVER");
  void *driver = name ? dlopen(name, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  void *words = driver ? dlsym(driver, "kiln_fake_cuda_failure") : nullptr;
  return words ? std::string("; ") + reinterpret_cast<const char *(*)()>(words)() : "";
}

llvm::Error check(kiln_status_t status, const kiln_error_t &error) {
  return status == KILN_OK ? llvm::Error::success() : llvm::createStringError(error.message + fault());
}

class DeviceBuffer {
public:
  /// `before`, `after`: the bytes of the margins before and after the buffer.
  DeviceBuffer(const DeviceMemory &memory, size_t bytes, size_t before, size_t after)
      : memory(memory), bytes(bytes), before(before), after(after) {}
  DeviceBuffer(DeviceBuffer &&other) noexcept
      : memory(other.memory), bytes(other.bytes), before(other.before), after(other.after),
        address(std::exchange(other.address, nullptr)) {}
  ~DeviceBuffer() { memory.release(memory.model, address); }

  llvm::Error allocate() {
    kiln_error_t error{};
    return check(memory.allocate(memory.model, before + bytes + after, &address, &error), error);
  }
  void *data() const { return static_cast<char *>(address) + before; }

  /// Writes the contents from the beginning of the buffer; fills the margins with `around`.
  llvm::Error write(const std::vector<char> &contents, unsigned char around) {
    std::vector<char> all(before, static_cast<char>(around));
    all.insert(all.end(), contents.begin(), contents.end());
    if (contents.size() == bytes)
      all.resize(all.size() + after, static_cast<char>(around));
    kiln_error_t error{};
    return all.empty() ? llvm::Error::success()
                       : check(memory.copyTo(memory.model, address, all.data(), all.size(), &error), error);
  }

  /// Reads `count` bytes from the beginning of the buffer; fails if a byte of the margins is not `around`.
  llvm::Expected<std::vector<char>> read(size_t count, unsigned char around) const {
    const size_t tail = count == bytes ? after : 0;
    std::vector<char> all(before + count + tail);
    kiln_error_t error{};
    if (!all.empty())
      if (llvm::Error failed = check(memory.copyFrom(memory.model, all.data(), address, all.size(), &error), error))
        return failed;
    for (size_t i = 0; i < all.size(); ++i)
      if ((i < before || i >= before + count) && all[i] != static_cast<char>(around))
        return llvm::createStringError("memory next to a tensor was written");
    return std::vector<char>(all.begin() + static_cast<std::ptrdiff_t>(before),
                             all.end() - static_cast<std::ptrdiff_t>(tail));
  }

private:
  DeviceMemory memory;
  size_t bytes, before, after;
  void *address = nullptr;
};

/// The tensors of a call, placed as its style says.
class Arguments {
public:
  Arguments(const DeviceMemory &memory, const CallStyle &style) : memory(memory), style(style) {}

  llvm::Error add(std::vector<char> contents, size_t elementBytes) {
    isDisplaced = style.tensors == CallStyle::Tensors::Displaced;
    contents.reserve(1); // the address of a tensor without elements must not be null
    host.push_back(std::move(contents));
    if (style.tensors == CallStyle::Tensors::OnHost) {
      addresses.push_back(host.back().data());
      return llvm::Error::success();
    }
    // An odd number of elements after the alignment of an allocation.
    const size_t before = isDisplaced ? margin + elementBytes : 0;
    DeviceBuffer &buffer = device.emplace_back(memory, host.back().size(), before, isDisplaced ? margin : 0);
    if (llvm::Error failed = buffer.allocate())
      return failed;
    addresses.push_back(buffer.data());
    return buffer.write(host.back(), style.poison);
  }

  void *const *data() const { return addresses.data(); }

  /// Returns the contents of an argument after the call; an input must be unchanged.
  llvm::Expected<std::vector<char>> read(size_t number, bool isInput) {
    if (style.tensors == CallStyle::Tensors::OnHost)
      return host[number];
    auto found = device[number].read(host[number].size(), style.poison);
    if (found && isInput && *found != host[number])
      return llvm::createStringError("an input was written to");
    return found;
  }

private:
  DeviceMemory memory;
  CallStyle style;
  bool isDisplaced = false;
  std::vector<std::vector<char>> host;
  std::vector<DeviceBuffer> device;
  std::vector<void *> addresses;
};

} // namespace

llvm::Expected<std::vector<std::vector<char>>>
CompiledModel::Session::callOnDevice(size_t entry, const interpreter::Extents &extents, const Buffers &inputs) {
  const EntryInterface &interface = model.report.model.entries[entry];
  auto allocate = model.function<decltype(kiln_allocate_memory)>("allocate_memory");
  auto release = model.function<decltype(kiln_release_memory)>("release_memory");
  auto copyTo = model.function<decltype(kiln_copy_to_memory)>("copy_to_memory");
  auto copyFrom = model.function<decltype(kiln_copy_from_memory)>("copy_from_memory");
  const DeviceMemory memory{model.handles.front().get(), llvm::cantFail(std::move(allocate)),
                            llvm::cantFail(std::move(release)), llvm::cantFail(std::move(copyTo)),
                            llvm::cantFail(std::move(copyFrom))};
  std::vector<int64_t> values;
  for (const Symbol &symbol : interface.symbols)
    values.push_back(extents.at(symbol.name));

  Arguments arguments(memory, style);
  for (const auto &[number, argument] : llvm::enumerate(interface.arguments)) {
    const size_t elements = interpreter::elementCount(interpreter::evaluate(argument.shape, extents));
    std::vector<char> contents(stored_bytes(argument.element, elements), static_cast<char>(style.poison));
    if (llvm::Error failed =
            arguments.add(argument.isOutput ? std::move(contents) : inputs[number], stored_bytes(argument.element, 1)))
      return failed;
  }
  const ArenaBytes sizes = arenaBytes(model.report.variants, entry);
  DeviceBuffer arena(memory, sizes.fixed + sizes.perWorker, 0, 0);
  std::vector<char> contents(held.front());
  if (style.fillsArena)
    contents.resize(sizes.fixed + sizes.perWorker, static_cast<char>(style.poison));
  if (llvm::Error failed = arena.allocate())
    return failed;
  if (llvm::Error failed = arena.write(contents, style.poison))
    return failed;

  kiln_error_t error{};
  kiln_call_t call{arena.data(), sizes.fixed + sizes.perWorker, nullptr, &error};
  call.memory = style.tensors == CallStyle::Tensors::OnHost ? KILN_HOST_POINTERS : KILN_DEVICE_POINTERS;
  if (llvm::Error failed = check(
          model.run(model.handles.front().get(), &call, static_cast<uint32_t>(entry), values.data(), arguments.data()),
          error))
    return failed;
  auto after = arena.read(held.front().size(), style.poison);
  if (!after)
    return after.takeError();
  held.front() = std::move(*after);
  Buffers outputs;
  for (size_t i = 0; i < interface.arguments.size(); ++i) {
    auto argument = arguments.read(i, /*isInput=*/i < inputs.size());
    if (!argument)
      return argument.takeError();
    if (i >= inputs.size())
      outputs.push_back(std::move(*argument));
  }
  return outputs;
}

} // namespace kiln::fuzz
