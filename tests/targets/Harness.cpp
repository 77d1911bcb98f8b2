// SPDX-License-Identifier: Apache-2.0
#include "Harness.h"

#include "HalideRuntime.h"
#include "Prepare.h"
#include "StoredTensor.h"
#include "compiler/dialect/AffineEval.h"
#include "compiler/dialect/Extents.h"
#include "compiler/schedule/SearchSpace.h"
#include "mlir/IR/Diagnostics.h"
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>
#include <regex>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

// The runtime hooks: workers, each with a stack of scratch memory of the size that the target stated. A freed block is
// popped once all blocks above it are freed, as in runtime/src/core/worker.c.
namespace {

struct Block {
  char *start;
  bool isFree;
};

struct Worker {
  std::vector<Block> blocks;
  char *top = nullptr, *end = nullptr;
  bool exceeded = false;
};

std::vector<Worker> workers;
thread_local size_t current = 0; // this thread's worker
thread_local bool isInTask = false;

} // namespace

extern "C" {
void *halide_malloc(void *, size_t bytes) {
  Worker &worker = workers[current];
  char *memory = worker.top + 64, *top = memory + (bytes + 63) / 64 * 64;
  if (top > worker.end) {
    worker.exceeded = true;
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64); // leaked: the test has failed
  }
  worker.blocks.push_back({worker.top, false});
  worker.top = top;
  memset(memory, 0xff, bytes);
  return memory;
}
void halide_free(void *, void *memory) {
  Worker &worker = workers[current];
  for (Block &block : worker.blocks)
    if (block.start + 64 == memory)
      block.isFree = true;
  for (; !worker.blocks.empty() && worker.blocks.back().isFree; worker.blocks.pop_back())
    worker.top = worker.blocks.back().start;
}
int halide_do_par_for(void *context, halide_task_t task, int min, int size, uint8_t *closure) {
  if (isInTask || workers.size() == 1) {
    for (int i = min + size; i-- > min;) // the order is not part of the contract
      if (int error = task(context, i, closure))
        return error;
    return 0;
  }
  std::atomic<int> result = 0;
  auto work = [&](size_t number) {
    current = number;
    isInTask = true;
    for (int i = int(number); i < size; i += int(workers.size()))
      if (int error = task(context, min + i, closure))
        result = error;
    isInTask = false;
  };
  std::vector<std::thread> threads;
  for (size_t number = 1; number < workers.size(); ++number)
    threads.emplace_back(work, number);
  work(0);
  for (std::thread &thread : threads)
    thread.join();
  return result;
}
}

namespace kiln::testing {

using namespace mlir;

//===- Compiling ---------------------------------------------------------===//

/// Parses a text, which must succeed, and finds its kernel.
struct Prepared {
  explicit Prepared(const std::string &text) : module(prepare(context, text)) {
    if (!module)
      throw std::runtime_error("the kernel does not parse");
    kernel = *module->getOps<func::FuncOp>().begin();
  }
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp kernel;
};

Kernel::Kernel(const std::string &text, const std::string &target, const ScheduleConfig *config) {
  if (std::getenv("KILN_PRINT"))
    puts(text.c_str());
  module = prepare(context, text);
  if (!module)
    throw std::runtime_error("the kernel does not parse");
  function = *module->getOps<func::FuncOp>().begin();
  auto compiled = findTarget(target)->compilerOf(function).compileChecked(function, "kernel", config);
  if (failed(compiled))
    throw std::runtime_error("the kernel does not compile");
  code = std::move(*compiled);

  // dlopen returns the same library for equal names, even after the file is deleted.
  static int count = 0;
  std::string stem = ::testing::TempDir() + "kiln_kernel_" + std::to_string(getpid()) + "_" + std::to_string(count++);
  std::ofstream(stem + ".o", std::ios::binary) << code.object;
  if (std::system(("cc -shared -o " + stem + ".so " + stem + ".o").c_str()) != 0)
    throw std::runtime_error("the kernel does not link");
  library = dlopen((stem + ".so").c_str(), RTLD_NOW);
  if (!library)
    throw std::runtime_error(dlerror());
  entry = dlsym(library, "kernel");
  unlink((stem + ".o").c_str());
  unlink((stem + ".so").c_str());
}

Kernel::~Kernel() {
  if (library)
    dlclose(library);
}

Schedulable describe(const std::string &text, const std::string &target) {
  Prepared prepared(text);
  return findTarget(target)->compilerOf(prepared.kernel).describe(prepared.kernel);
}

std::vector<ShapeVariant> shapeVariants(const std::string &text, const std::string &target) {
  Prepared prepared(text);
  return findTarget(target)->compilerOf(prepared.kernel).shapeVariants(prepared.kernel);
}

static std::string print(const std::string &text, const std::string &target, const ScheduleConfig &config,
                         ::kiln::KernelText form) {
  Prepared prepared(text);
  auto printed = findTarget(target)->compilerOf(prepared.kernel).print(prepared.kernel, "kernel", form, &config);
  if (failed(printed))
    throw std::runtime_error("the kernel does not compile");
  return *printed;
}

std::string assemblyOf(const std::string &text, const std::string &target, const ScheduleConfig &config) {
  return print(text, target, config, ::kiln::KernelText::Assembly);
}

std::string statementOf(const std::string &text, const std::string &target, const ScheduleConfig &config) {
  // Halide adds a number to names that the process has used before.
  return std::regex_replace(print(text, target, config, ::kiln::KernelText::Stmt), std::regex("\\$[0-9]+"), "");
}

MemoryCheck checkMemory(const std::string &text, const std::string &target, const std::vector<MemoryCase> &cases,
                        const ScheduleConfig *config) {
  Prepared prepared(text);
  auto check = findTarget(target)->compilerOf(prepared.kernel).checkMemory(prepared.kernel, cases, config);
  if (failed(check))
    throw std::runtime_error("the kernel does not compile");
  return *check;
}

std::string compileError(const std::string &text, const ScheduleConfig *config, const std::string &target) {
  return refusalOf(text, [&](func::FuncOp kernel) {
    return LogicalResult(findTarget(target)->compilerOf(kernel).compile(kernel, "kernel", config));
  });
}

//===- Running -----------------------------------------------------------===//

namespace {

/// A buffer of the exact size between guard pages, at the end or at the start of its pages.
class Guarded {
public:
  Guarded(size_t bytes, bool atEnd) {
    size_t page = sysconf(_SC_PAGESIZE), inner = (bytes + page - 1) / page * page;
    length = inner + 2 * page;
    base = static_cast<char *>(mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base + page, inner, PROT_READ | PROT_WRITE);
    data = base + page + (atEnd ? inner - bytes : 0);
  }
  ~Guarded() { munmap(base, length); }
  char *data;

private:
  char *base;
  size_t length;
};

void encode(Type type, const std::vector<double> &values, char *out) {
  for (double value : values) {
    if (type.isF32()) {
      float v = value;
      memcpy(out, &v, 4), out += 4;
    } else if (type.isInteger(32)) {
      int32_t v = value;
      memcpy(out, &v, 4), out += 4;
    } else if (type.isInteger(16)) {
      auto v = int16_t(value);
      memcpy(out, &v, 2), out += 2;
    } else if (auto halfFloat = dyn_cast<FloatType>(type)) {
      llvm::APFloat rounded(value);
      bool isInexact;
      rounded.convert(halfFloat.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &isInexact);
      uint16_t v = uint16_t(rounded.bitcastToAPInt().getZExtValue());
      memcpy(out, &v, 2), out += 2;
    } else {
      *out++ = char(int(value));
    }
  }
}

double decode(Type type, const char *in, int64_t i) {
  if (type.isF32()) {
    float v;
    memcpy(&v, in + 4 * i, 4);
    return v;
  }
  if (type.isInteger(32)) {
    int32_t v;
    memcpy(&v, in + 4 * i, 4);
    return v;
  }
  if (auto halfFloat = dyn_cast<FloatType>(type)) {
    uint16_t v;
    memcpy(&v, in + 2 * i, 2);
    return llvm::APFloat(halfFloat.getFloatSemantics(), llvm::APInt(16, v)).convertToDouble();
  }
  return in[i];
}

int elementBytes(Type type) { return std::max<int>(type.getIntOrFloatBitWidth() / 8, 1); }

halide_type_t halideType(Type type) {
  if (type.isF32())
    return {halide_type_float, 32};
  if (type.isInteger(32))
    return {halide_type_int, 32};
  if (isa<FloatType>(type))
    return {halide_type_uint, 16};
  return {type.isInteger(1) ? halide_type_uint : halide_type_int, uint8_t(type.isInteger(16) ? 16 : 8)};
}

struct Buffer {
  halide_buffer_t buffer{};
  halide_dimension_t dims[8]{};

  Buffer(Type type, const std::vector<int64_t> &shape, char *data) {
    buffer.host = reinterpret_cast<uint8_t *>(data);
    buffer.type = halideType(type);
    buffer.dimensions = shape.size();
    buffer.dim = dims;
    int64_t stride = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t extent = shape[shape.size() - 1 - i];
      dims[i] = {0, int32_t(extent), int32_t(stride), 0};
      stride *= extent;
    }
  }
};

std::vector<int64_t> shapeOf(RankedTensorType type, const std::vector<int64_t> &symbols) {
  std::vector<int64_t> shape;
  for (AffineExpr extent : mlir::kiln::getExtents(type))
    shape.push_back(mlir::kiln::evaluateExtent(extent, symbols));
  return shape;
}

/// Calls fn(worker, scalars.., buffers..) with any number of integer arguments: pointers and int32 are both passed in
/// integer registers and stack slots.
int callWith(void *fn, const std::vector<uint64_t> &a) {
  auto f =
      reinterpret_cast<int (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                               uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t)>(fn);
  std::vector<uint64_t> p(a);
  p.resize(16);
  return f(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12], p[13], p[14], p[15]);
}

} // namespace

static std::vector<Tensor> runOnce(func::FuncOp function, void *entry, int64_t scratchBytes,
                                   const std::vector<int64_t> &symbols, const std::vector<Tensor> &inputs, int aliased,
                                   bool atEnd, int workerCount) {
  std::vector<std::unique_ptr<Guarded>> scratch;
  workers.assign(workerCount, {});
  for (Worker &worker : workers) {
    scratch.push_back(std::make_unique<Guarded>(scratchBytes + 64, /*atEnd=*/false));
    worker.top = scratch.back()->data;
    worker.end = worker.top + scratchBytes;
  }
  std::vector<uint64_t> arguments{0};
  std::vector<std::unique_ptr<Guarded>> memory;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<size_t> firstPart; // index of each input's first part in `memory`
  for (int64_t symbol : symbols)
    arguments.push_back(symbol);
  auto add = [&](Type element, const std::vector<int64_t> &shape, char *data) {
    buffers.push_back(std::make_unique<Buffer>(element, shape, data));
    arguments.push_back(reinterpret_cast<uint64_t>(&buffers.back()->buffer));
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto type = cast<RankedTensorType>(function.getArgumentTypes()[symbols.size() + i]);
    if (inputs[i].shape != shapeOf(type, symbols))
      throw std::runtime_error("input " + std::to_string(i) + " has another shape than the kernel's argument");
    firstPart.push_back(memory.size());
    for (const auto &[element, part] : storedParts(inputs[i], type)) {
      memory.push_back(std::make_unique<Guarded>(part.values.size() * elementBytes(element), atEnd));
      encode(element, part.values, memory.back()->data);
      add(element, part.shape, memory.back()->data);
    }
  }
  std::vector<Tensor> results;
  std::vector<char *> resultData;
  for (Type t : function.getResultTypes()) {
    auto type = cast<RankedTensorType>(t);
    results.push_back(Tensor::zeros(shapeOf(type, symbols)));
    size_t bytes = results.back().values.size() * elementBytes(type.getElementType());
    char *data;
    if (aliased >= 0 && results.size() == 1) {
      data = memory[firstPart[aliased]]->data;
    } else {
      memory.push_back(std::make_unique<Guarded>(bytes, atEnd));
      data = memory.back()->data;
      memset(data, 0xff, bytes); // NaN
    }
    resultData.push_back(data);
    add(type.getElementType(), results.back().shape, data);
  }
  EXPECT_EQ(callWith(entry, arguments), 0);
  for (const Worker &worker : workers)
    EXPECT_FALSE(worker.exceeded) << "the kernel used more scratch memory than its bound of " << scratchBytes
                                  << " bytes";
  for (size_t i = 0; i < results.size(); ++i)
    for (size_t j = 0; j < results[i].values.size(); ++j)
      results[i].values[j] =
          decode(cast<RankedTensorType>(function.getResultTypes()[i]).getElementType(), resultData[i], j);
  return results;
}

std::vector<Tensor> Kernel::run(const std::vector<int64_t> &symbols, const std::vector<Tensor> &inputs, int aliased,
                                int workers) {
  auto first = runOnce(function, entry, code.scratchBytes, symbols, inputs, aliased, /*atEnd=*/true, workers);
  auto second = runOnce(function, entry, code.scratchBytes, symbols, inputs, aliased, /*atEnd=*/false, workers);
  for (size_t i = 0; i < first.size(); ++i)
    for (size_t j = 0; j < first[i].values.size(); ++j)
      if (const double a = first[i].values[j], b = second[i].values[j]; a != b && !(std::isnan(a) && std::isnan(b))) {
        ADD_FAILURE() << "two runs differ at element " << j << " of result " << i;
        break;
      }
  return first;
}

} // namespace kiln::testing
