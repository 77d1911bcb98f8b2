// SPDX-License-Identifier: Apache-2.0
//
// Runs kernels on a GPU as the runtime library does: each kernel is a runtime model with that kernel and no entries.
// The data of a workload is copied to the device when it is first used. Short calls are timed as a CUDA graph.
#include "compiler/tuner/CudaTimer.h"
#include "compiler/tuner/Session.h"

#include <map>

/// Satisfies a reference from functions of the runtime library that serve a program with one model. None is called
/// here.
extern "C" __attribute__((weak)) const kiln_descriptor_t kiln_descriptor = {};

namespace kiln {

namespace {

llvm::Error toError(kiln_status_t status, const kiln_error_t &error) {
  return status ? llvm::createStringError(error.message) : llvm::Error::success();
}

/// A model on the first GPU, with at most one kernel.
class DeviceModel {
public:
  static llvm::Expected<std::unique_ptr<DeviceModel>> create(const kiln_cuda_module_t *module) {
    auto made = std::make_unique<DeviceModel>();
    made->module = module;
    made->variant.target = "cuda";
    made->variant.memory_space = KILN_MEMORY_DEVICE;
    made->variant.backend = &kiln_cuda_backend;
    made->variant.modules = &made->module;
    made->variant.module_count = module ? 1 : 0;
    made->descriptor.abi_version = KILN_ABI_VERSION;
    made->descriptor.variant_count = 1;
    made->descriptor.variants = &made->variant;
    made->descriptor.name = "the tuner's";
    kiln_options_t options = {};
    options.device = KILN_CUDA;
    options.flags = KILN_LOAD_KERNELS_AT_CREATE;
    const kiln_cpu_t cpu = {};
    kiln_error_t error = {};
    if (llvm::Error problem =
            toError(kiln_model_create(&made->descriptor, &cpu, &options, &made->model, &error), error))
      return problem;
    return made;
  }
  DeviceModel() = default;
  DeviceModel(const DeviceModel &) = delete;
  DeviceModel &operator=(const DeviceModel &) = delete;
  ~DeviceModel() { kiln_destroy(model); }

  kiln_cuda_t &cuda() const { return *static_cast<kiln_cuda_t *>(model->device); }

  llvm::Expected<void *> allocate(int64_t bytes) const {
    void *memory = nullptr;
    kiln_error_t error = {};
    if (llvm::Error problem = toError(kiln_allocate_memory(model, size_t(bytes), &memory, &error), error))
      return problem;
    return memory;
  }
  llvm::Error copyIn(void *to, const char *from, int64_t bytes) const {
    kiln_error_t error = {};
    return toError(kiln_copy_to_memory(model, to, from, size_t(bytes), &error), error);
  }
  llvm::Error copyOut(char *to, const void *from, int64_t bytes) const {
    kiln_error_t error = {};
    return toError(kiln_copy_from_memory(model, to, from, size_t(bytes), &error), error);
  }

  kiln_model_t *model = nullptr;

private:
  const kiln_cuda_module_t *module = nullptr;
  kiln_variant_t variant = {};
  kiln_descriptor_t descriptor = {};
};

/// A workload's tensors on the device, which are released when the process ends.
struct PlacedData {
  std::vector<std::vector<void *>> tensors;     // the copies of each tensor
  std::vector<std::vector<uint64_t>> arguments; // of a call, for each rotation
};

class CudaSession : public Session {
public:
  explicit CudaSession(std::unique_ptr<DeviceModel> model) : model(std::move(model)) {}

  llvm::Expected<std::unique_ptr<Caller>> load(const KernelCode &code, const KernelAbi &abi) override;
  std::vector<Rates> probe(const MachineModel &machine, llvm::ArrayRef<int64_t> footprints) override;

  /// Returns the workload's tensors on the device, with the workload's inputs.
  llvm::Expected<const PlacedData *> place(const KernelData &data);

private:
  llvm::Expected<double> copyRate(int64_t footprint);
  double operationRate();

  std::unique_ptr<DeviceModel> model; // used to allocate memory
  std::map<const KernelData *, PlacedData> placed;
};

class CudaCaller : public Caller {
public:
  CudaCaller(CudaSession &session, LoadedKernel kernel, std::unique_ptr<DeviceModel> model,
             std::unique_ptr<CudaTimer> timer, void *scratch, int64_t scratchBytes)
      : session(session), kernel(std::move(kernel)), model(std::move(model)), timer(std::move(timer)),
        scratch(static_cast<char *>(scratch)), scratchBytes(scratchBytes) {}
  ~CudaCaller() override { kiln_release_memory(model->model, scratch); }

  llvm::Error call(KernelData &data) override;
  llvm::Expected<double> time(KernelData &data, unsigned repeats) override;

private:
  llvm::Error enqueue(const PlacedData &placed, size_t weights);

  CudaSession &session;
  LoadedKernel kernel;
  std::unique_ptr<DeviceModel> model; // of the kernel; destroyed before `kernel`
  std::unique_ptr<CudaTimer> timer;
  char *scratch;
  int64_t scratchBytes;
  size_t rotation = 0;
};

//===- Calls -------------------------------------------------------------===//

/// Enqueues a call in the model's stream. The model's context must be current.
llvm::Error CudaCaller::enqueue(const PlacedData &placed, size_t weights) {
  kiln_cuda_t &cuda = model->cuda();
  kiln_cuda_stream_t stream = {&cuda, cuda.stream, {KILN_OK, ""}};
  kiln_worker_t worker = {};
  worker.workers = &worker;
  worker.top = scratch;
  worker.end = scratch + scratchBytes;
  worker.cuda = &stream;
  std::vector<uint64_t> words{reinterpret_cast<uint64_t>(&worker)};
  llvm::append_range(words, placed.arguments[weights % placed.arguments.size()]);
  const int result = kernel.call(words);
  if (stream.error.status)
    return llvm::createStringError(stream.error.message);
  return result ? llvm::createStringError("the kernel returned " + std::to_string(result)) : llvm::Error::success();
}

llvm::Error CudaCaller::call(KernelData &data) {
  llvm::Expected<const PlacedData *> on = session.place(data);
  if (!on)
    return on.takeError();
  const std::vector<KernelData::Storage> storage = data.storage();
  for (auto [tensor, addresses] : llvm::zip_equal(storage, (*on)->tensors)) // poison the results
    if (tensor.isResult)
      if (llvm::Error error = model->copyIn(addresses[0], tensor.copies[0], tensor.bytes))
        return error;
  llvm::Expected<double> seconds = timer->time([&] { return enqueue(**on, 0); });
  if (!seconds)
    return seconds.takeError();
  for (auto [tensor, addresses] : llvm::zip_equal(storage, (*on)->tensors))
    if (tensor.isResult)
      if (llvm::Error error = model->copyOut(tensor.copies[0], addresses[0], tensor.bytes))
        return error;
  return llvm::Error::success();
}

llvm::Expected<double> CudaCaller::time(KernelData &data, unsigned repeats) {
  /// Samples with at least this many calls have short calls, for which the launch overhead of the host would matter.
  static constexpr unsigned manyCalls = 16;
  llvm::Expected<const PlacedData *> on = session.place(data);
  if (!on)
    return on.takeError();
  const bool isRecorded = repeats >= manyCalls;
  // Graphs run twice: the weights of the first calls must not be those that the last calls left in the cache.
  const size_t count = isRecorded ? std::max<size_t>(repeats, data.rotations()) : repeats;
  auto enqueueAll = [&]() -> llvm::Error {
    for (size_t i = 0; i < count; ++i)
      if (llvm::Error error = enqueue(**on, rotation++))
        return error;
    return llvm::Error::success();
  };
  llvm::Expected<double> seconds = isRecorded ? timer->timeRecorded(enqueueAll) : timer->time(enqueueAll);
  if (!seconds)
    return seconds.takeError();
  return *seconds / double(count);
}

//===- Session -----------------------------------------------------------===//

llvm::Expected<const PlacedData *> CudaSession::place(const KernelData &data) {
  auto [at, isNew] = placed.try_emplace(&data);
  PlacedData &on = at->second;
  if (!isNew)
    return &on;
  const std::vector<KernelData::Storage> storage = data.storage();
  for (const KernelData::Storage &tensor : storage) {
    std::vector<void *> &addresses = on.tensors.emplace_back();
    for (const char *copy : tensor.copies) {
      llvm::Expected<void *> memory = model->allocate(tensor.bytes);
      if (!memory)
        return memory.takeError();
      addresses.push_back(*memory);
      if (llvm::Error error = tensor.isResult ? llvm::Error::success() : model->copyIn(*memory, copy, tensor.bytes))
        return error;
    }
  }
  for (size_t i = 0; i < data.rotations(); ++i) {
    llvm::ArrayRef<uint64_t> extents = data.arguments(i).drop_back(storage.size());
    std::vector<uint64_t> &words = on.arguments.emplace_back(extents.begin(), extents.end());
    for (const std::vector<void *> &addresses : on.tensors)
      words.push_back(reinterpret_cast<uint64_t>(addresses[i % addresses.size()]));
  }
  return &on;
}

llvm::Expected<std::unique_ptr<Caller>> CudaSession::load(const KernelCode &code, const KernelAbi &abi) {
  llvm::Expected<LoadedKernel> kernel = LoadedKernel::load(code, abi);
  if (!kernel)
    return kernel.takeError();
  llvm::Expected<void *> module = kernel->find(code.symbol + deviceModuleSuffix);
  if (!module)
    return module.takeError();
  auto ofKernel = DeviceModel::create(static_cast<const kiln_cuda_module_t *>(*module));
  if (!ofKernel)
    return ofKernel.takeError();
  auto timer = CudaTimer::create((*ofKernel)->cuda());
  if (!timer)
    return timer.takeError();
  llvm::Expected<void *> scratch = (*ofKernel)->allocate(code.scratchBytes);
  if (!scratch)
    return scratch.takeError();
  return std::make_unique<CudaCaller>(*this, std::move(*kernel), std::move(*ofKernel), std::move(*timer), *scratch,
                                      code.scratchBytes);
}

//===- Probes ------------------------------------------------------------===//

/// Returns the bytes per second that are read and written by copies within a memory footprint.
llvm::Expected<double> CudaSession::copyRate(int64_t footprint) {
  static constexpr int64_t ofRound = int64_t(256) << 20, least = 4096;
  static constexpr int attempts = 5;
  const int64_t bytes = std::max(footprint / 2, least), copies = std::clamp<int64_t>(ofRound / bytes, 1, 64);
  kiln_cuda_t &cuda = model->cuda();
  auto timer = CudaTimer::create(cuda);
  if (!timer)
    return timer.takeError();
  llvm::Expected<void *> memory = model->allocate(2 * bytes);
  if (!memory)
    return memory.takeError();
  const kiln_cuda_address_t from = kiln_cuda_address(*memory);
  double best = 0;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    llvm::Expected<double> seconds = (*timer)->timeRecorded([&]() -> llvm::Error {
      kiln_error_t error = {};
      for (int64_t i = 0; i < copies; ++i)
        if (KILN_CUDA_CALL(&cuda, &error, cuMemcpyDtoDAsync_v2, from + uint64_t(bytes), from, size_t(bytes),
                           cuda.stream))
          return llvm::createStringError(error.message);
      return llvm::Error::success();
    });
    if (!seconds)
      return seconds.takeError();
    if (*seconds > 0)
      best = std::max(best, 2.0 * double(bytes * copies) / *seconds);
  }
  kiln_release_memory(model->model, *memory);
  return best;
}

/// Computed, not measured: all f32 lanes at the highest clock.
double CudaSession::operationRate() {
  static constexpr int clockKilohertz = 13, multiprocessors = 16; // CUdevice_attribute
  kiln_cuda_t &cuda = model->cuda();
  int clock = 0, count = 0;
  if (cuda.driver.cuDeviceGetAttribute(&clock, clockKilohertz, cuda.device) ||
      cuda.driver.cuDeviceGetAttribute(&count, multiprocessors, cuda.device))
    return 0;
  return 2.0 * double(gpuLanes(cuda.capability)) * count * clock * 1e3;
}

std::vector<Rates> CudaSession::probe(const MachineModel &, llvm::ArrayRef<int64_t> footprints) {
  const double operations = operationRate();
  std::vector<Rates> rates;
  for (int64_t footprint : footprints) {
    llvm::Expected<double> copied = copyRate(footprint);
    if (!copied)
      llvm::consumeError(copied.takeError());
    const double rate = copied ? *copied : 0; // reading only is not probed: at least as fast as copying
    rates.push_back({operations, rate, rate});
  }
  return rates;
}

} // namespace

llvm::Expected<std::unique_ptr<Session>> openCudaSession() {
  auto model = DeviceModel::create(nullptr);
  if (!model)
    return model.takeError();
  return std::make_unique<CudaSession>(std::move(*model));
}

} // namespace kiln
