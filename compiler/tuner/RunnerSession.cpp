// SPDX-License-Identifier: Apache-2.0
//
// Calls kernels in a program on another machine (compiler/tuner/measurement.h), and times them with that machine's
// clock.
#include "compiler/tuner/Session.h"

#include "compiler/tuner/measurement.h"
#include <fmt/format.h>

namespace kiln {

namespace {

class RunnerSession : public Session {
public:
  RunnerSession(const TargetInfo &target, unsigned threads, RunnerOptions options)
      : target(target), threads(threads), options(std::move(options)) {}

  llvm::Expected<std::unique_ptr<Caller>> load(const KernelCode &code, const KernelAbi &abi) override;
  /// The peak rates of that machine are unknown.
  std::vector<Rates> probe(const MachineModel &, llvm::ArrayRef<int64_t> footprints) override {
    return std::vector<Rates>(footprints.size());
  }

  llvm::Error call(size_t kernel, KernelData &data);
  llvm::Expected<double> time(size_t kernel, unsigned repeats);

private:
  llvm::Error start(const KernelData &data);
  void put(const KernelData &data);

  const TargetInfo &target;
  unsigned threads;
  RunnerOptions options;
  std::vector<KernelCode> codes;
  std::unique_ptr<Runner> runner; // created by the first call
};

class RunnerCaller : public Caller {
public:
  RunnerCaller(RunnerSession &session, size_t kernel) : session(session), kernel(kernel) {}
  llvm::Error call(KernelData &data) override { return session.call(kernel, data); }
  llvm::Expected<double> time(KernelData &, unsigned repeats) override { return session.time(kernel, repeats); }

private:
  RunnerSession &session;
  size_t kernel;
};

} // namespace

llvm::Expected<std::unique_ptr<Caller>> RunnerSession::load(const KernelCode &code, const KernelAbi &) {
  assert(!runner && "the program is linked at the first call");
  codes.push_back(code);
  return std::make_unique<RunnerCaller>(*this, codes.size() - 1);
}

llvm::Error RunnerSession::start(const KernelData &data) {
  MeasurementArguments arguments{data.extents().size(), {}, &data.abi()};
  for (const KernelData::Storage &tensor : data.storage())
    arguments.tensors.push_back({tensor.element, static_cast<int64_t>(tensor.shape.size())});
  llvm::Expected<std::unique_ptr<Runner>> started = startMeasurementProgram(options, target, codes, arguments);
  if (!started)
    return started.takeError();
  runner = std::move(*started);
  int64_t scratch = 0;
  for (const KernelCode &code : codes)
    scratch = std::max(scratch, code.scratchBytes);
  Messages &messages = runner->messages();
  messages.put(KILN_MEASURE_BEGIN);
  messages.put(threads);
  messages.put(static_cast<uint64_t>(scratch));
  messages.send();
  messages.number();
  return runner->check();
}

void RunnerSession::put(const KernelData &data) {
  Messages &messages = runner->messages();
  const std::vector<KernelData::Storage> tensors = data.storage();
  size_t words = data.extents().size();
  for (const KernelData::Storage &tensor : tensors)
    words += 1 + tensor.shape.size();
  messages.put(KILN_MEASURE_DATA);
  messages.put(data.isStep());
  messages.put(words);
  messages.put(data.extents().size());
  for (int64_t extent : data.extents())
    messages.put(static_cast<uint64_t>(extent));
  messages.put(tensors.size());
  for (const KernelData::Storage &tensor : tensors) {
    messages.put(tensor.isResult);
    messages.put(tensor.copies.size());
    messages.put(tensor.shape.size());
    for (int64_t extent : tensor.shape)
      messages.put(static_cast<uint64_t>(extent));
    if (tensor.isResult)
      messages.put(static_cast<uint64_t>(tensor.bytes));
    else
      messages.put(tensor.copies.front(), static_cast<size_t>(tensor.bytes));
  }
  messages.send();
  messages.number();
}

/// The arguments are sent with each call, since the caller may have changed them.
llvm::Error RunnerSession::call(size_t kernel, KernelData &data) {
  if (!runner)
    if (llvm::Error error = start(data))
      return error;
  put(data);
  Messages &messages = runner->messages();
  messages.put(KILN_MEASURE_CALL);
  messages.put(kernel);
  messages.send();
  const auto status = static_cast<int64_t>(messages.number());
  if (status == 0)
    for (const KernelData::Storage &tensor : data.storage())
      if (tensor.isResult)
        messages.bytes(tensor.copies.front(), static_cast<size_t>(tensor.bytes));
  if (llvm::Error error = runner->check())
    return error;
  return status == 0 ? llvm::Error::success() : llvm::createStringError(fmt::format("the kernel returned {}", status));
}

/// Times calls with the arguments of the last call().
llvm::Expected<double> RunnerSession::time(size_t kernel, unsigned repeats) {
  Messages &messages = runner->messages();
  messages.put(KILN_MEASURE_TIME);
  messages.put(kernel);
  messages.put(repeats);
  messages.send();
  const uint64_t nanoseconds = messages.number();
  if (llvm::Error error = runner->check())
    return error;
  return static_cast<double>(nanoseconds) * 1e-9 / repeats;
}

std::unique_ptr<Session> openRunnerSession(const TargetInfo &target, unsigned threads, const RunnerOptions &options) {
  return std::make_unique<RunnerSession>(target, threads, options);
}

} // namespace kiln
