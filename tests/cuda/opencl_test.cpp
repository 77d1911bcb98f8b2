// SPDX-License-Identifier: Apache-2.0
//
// Executes Halide's GPU schedules: the same loops as OpenCL C, with the launches that would run them on a GPU, on any
// OpenCL device, such as PoCL's CPU. The library is loaded into a separate linker namespace, because PoCL brings an
// LLVM that conflicts with Halide's.
#include "Halide.h"

#include "Harness.h"
#include "KernelText.h"
#include "Prepare.h"
#include "TransposedKernel.h"
#include "compiler/dialect/AffineEval.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "targets/cuda/halide/DeviceCode.h"
#include "targets/cuda/halide/Schedule.h"
#include "targets/halide/Compile.h"
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

using Handle = void *;

/// The first OpenCL device, if there is one.
class OpenCl {
public:
  OpenCl() : library(dlmopen(LM_ID_NEWLM, "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL)) {
    unsigned count = 0;
    Handle platform = nullptr;
    if (!library)
      missing = "libOpenCL.so.1 cannot be loaded";
    else if (call<int>("clGetPlatformIDs", 1U, &platform, &count) || !count)
      missing = "there is no OpenCL platform (pocl-opencl-icd has one)";
    else if (call<int>("clGetDeviceIDs", platform, ~uint64_t(0), 1U, &device, &count) || !count)
      missing = "there is no OpenCL device";
    if (!missing.empty())
      return;
    context = call<Handle>("clCreateContext", Handle(), 1U, &device, Handle(), Handle(), &status);
    queue = call<Handle>("clCreateCommandQueue", context, device, uint64_t(0), &status);
  }

  template <class Result, class... Arguments> Result call(const char *name, Arguments... arguments) {
    return reinterpret_cast<Result (*)(Arguments...)>(dlsym(library, name))(arguments...);
  }

  /// Allocates device memory with these bytes, at least one.
  Handle allocate(std::vector<std::byte> bytes) {
    bytes.resize(std::max<size_t>(bytes.size(), 1));
    constexpr uint64_t readWriteCopied = 1 | 32;
    return call<Handle>("clCreateBuffer", context, readWriteCopied, bytes.size(), Handle(bytes.data()), &status);
  }

  Handle build(const std::string &text) {
    const char *source = text.c_str();
    Handle program = call<Handle>("clCreateProgramWithSource", context, 1U, &source, (const size_t *)nullptr, &status);
    const char *options = "-D MAX_CONSTANT_BUFFER_SIZE=0 -D MAX_CONSTANT_ARGS=0";
    EXPECT_EQ(call<int>("clBuildProgram", program, 1U, &device, options, Handle(), Handle()), 0);
    return program;
  }

  void run(Handle kernel, size_t blocks, size_t threads) {
    const size_t all = blocks * threads;
    EXPECT_EQ(call<int>("clEnqueueNDRangeKernel", queue, kernel, 1U, (const size_t *)nullptr, &all, &threads, 0U,
                        Handle(), Handle()),
              0);
  }

  void read(Handle buffer, void *to, size_t bytes) {
    EXPECT_EQ(call<int>("clEnqueueReadBuffer", queue, buffer, 1U, size_t(0), bytes, to, 0U, Handle(), Handle()), 0);
  }

  std::string missing;
  int status = 0;

private:
  Handle library, device = nullptr, context = nullptr, queue = nullptr;
};

OpenCl &openCl() {
  static OpenCl instance;
  return instance;
}

template <class T> std::vector<std::byte> encode(const std::vector<double> &values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = T(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

/// A kernel with f32 and i32 arguments and one f32 result.
class OpenClKernel {
public:
  OpenClKernel(const std::string &text, const ScheduleConfig &config) : module(prepare(context, text)) {
    halide::setCodeOptions(halide::x86CodeOptions);
    function = *module->getOps<mlir::func::FuncOp>().begin();
    halide::Translator translator(function, "kernel");
    EXPECT_TRUE(succeeded(translator.run()));
    cuda::scheduleForGpu(translator, config);
    mlir::FailureOr<cuda::DeviceCode> made = cuda::compileForDevice(translator, "opencl");
    EXPECT_TRUE(succeeded(made));
    code = *made;
    program = openCl().build(code.text);
  }

  Tensor run(const std::vector<int64_t> &symbols, const std::vector<Tensor> &inputs, std::vector<int64_t> shape) {
    Tensor result = Tensor::zeros(std::move(shape));
    std::vector<Handle> tensors;
    size_t next = 0;
    for (mlir::Type type : function.getArgumentTypes())
      if (!type.isIndex()) {
        const std::vector<double> &values = inputs[next++].values;
        tensors.push_back(openCl().allocate(mlir::getElementTypeOrSelf(type).isF32() ? encode<float>(values)
                                                                                     : encode<int32_t>(values)));
      }
    std::vector<float> numbers(result.values.size(), NAN);
    tensors.push_back(openCl().allocate(encode<float>({numbers.begin(), numbers.end()})));
    for (const cuda::Launch &launch : code.launches)
      run(launch, symbols, tensors);
    if (!numbers.empty())
      openCl().read(tensors.back(), numbers.data(), numbers.size() * sizeof(float));
    result.values.assign(numbers.begin(), numbers.end());
    for (Handle tensor : tensors)
      openCl().call<int>("clReleaseMemObject", tensor);
    return result;
  }

private:
  void run(const cuda::Launch &launch, const std::vector<int64_t> &symbols, std::vector<Handle> &tensors) {
    OpenCl &cl = openCl();
    const cuda::DeviceFunction &step = code.functions[launch.function];
    Handle kernel = cl.call<Handle>("clCreateKernel", program, step.name.c_str(), &cl.status);
    ASSERT_EQ(cl.status, 0) << step.name;
    auto pass = [&, number = 0U](size_t bytes, const void *value) mutable {
      EXPECT_EQ(cl.call<int>("clSetKernelArg", kernel, number++, bytes, value), 0);
    };
    for (const cuda::Parameter &parameter : launch.parameters) {
      const int32_t symbol = parameter.kind == cuda::Parameter::Symbol ? int32_t(symbols[parameter.number]) : 0;
      if (parameter.kind == cuda::Parameter::Symbol)
        pass(sizeof symbol, &symbol);
      else
        pass(sizeof(Handle), &tensors[parameter.number]);
    }
    pass(1, nullptr); // Halide's last parameter is the block's shared memory
    if (const int64_t blocks = mlir::kiln::evaluateExtent(launch.blocks, symbols))
      cl.run(kernel, size_t(blocks), step.threads);
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  cuda::DeviceCode code;
  Handle program = nullptr;
};

const ScheduleConfig configs[] = {{{"threads", 256}, {"columns", 1}, {"elements", 1}},
                                  {{"threads", 256}, {"columns", 32}, {"elements", 1}},
                                  {{"threads", 64}, {"columns", 8}, {"elements", 4}}};

class OpenClSchedules : public ::testing::Test {
protected:
  void SetUp() override {
    if (!openCl().missing.empty())
      GTEST_SKIP() << openCl().missing;
  }
};

TEST_F(OpenClSchedules, TransposedWithBroadcasts) {
  for (const ScheduleConfig &config : configs) {
    SCOPED_TRACE(toString(config));
    OpenClKernel kernel(transposedKernel(), config);
    checkTransposed([&](int64_t m, const std::vector<Tensor> &inputs) { return kernel.run({m}, inputs, {3, m, 35}); });
  }
}

/// Look-ups of table rows, with indices out of range.
TEST_F(OpenClSchedules, LookUps) {
  KernelText k({{1, 40}});
  Value ids = k.argument(k.type({"s0"}, "i32")), table = k.argument(k.type({"30", "37"}));
  std::string text = k.finish({k.one("pp", {ids}, k.type({"s0", "37"}), {"a", "a, b"},
                                     "%i = arith.index_cast %x0 : i32 to index\n%j = linalg.index 1 : index\n"
                                     "%e = tensor.extract " +
                                         table.name + "[%i, %j] : " + table.type + "\nlinalg.yield %e : f32")});
  for (const ScheduleConfig &config : configs) {
    SCOPED_TRACE(toString(config));
    Tensor numbers = randomIntegers({33}, -10, 40), rows = randomTensor({30, 37}), wanted = Tensor::zeros({33, 37});
    for (int64_t i = 0; i < 33; ++i)
      for (int64_t j = 0; j < 37; ++j)
        wanted.at({i, j}) = rows.at({std::clamp<int64_t>(int64_t(numbers.at({i})), 0, 29), j});
    expectClose(OpenClKernel(text, config).run({33}, {numbers, rows}, {33, 37}), wanted, 0);
  }
}

} // namespace
} // namespace kiln::testing
