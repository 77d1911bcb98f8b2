// SPDX-License-Identifier: Apache-2.0
#include "DeviceKernel.h"

#include "Launch.h"
#include "Module.h"
#include "Prepare.h"
#include "TensorMap.h"
#include "compiler/dialect/AffineEval.h"
#include "compiler/dialect/Extents.h"
#include "compiler/interpreter/Compare.h"
#include "mlir/IR/Diagnostics.h"
#include "targets/cuda/Compile.h"
#include "llvm/ADT/APFloat.h"
#include <gtest/gtest.h>

namespace kiln::testing {

using namespace mlir;

//===- Numbers as bytes --------------------------------------------------===//

static const llvm::fltSemantics *narrowFloat(Type type) {
  return type.isF16() ? &llvm::APFloat::IEEEhalf() : type.isBF16() ? &llvm::APFloat::BFloat() : nullptr;
}

template <class T> static void append(std::vector<std::byte> &bytes, T value) {
  auto *raw = reinterpret_cast<const std::byte *>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof value);
}

static std::vector<std::byte> encode(Type type, const std::vector<double> &values) {
  std::vector<std::byte> bytes;
  for (double value : values)
    if (const llvm::fltSemantics *semantics = narrowFloat(type)) {
      llvm::APFloat number(value);
      bool losesInfo = false;
      number.convert(*semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
      append(bytes, uint16_t(number.bitcastToAPInt().getZExtValue()));
    } else if (type.isF32()) {
      append(bytes, float(value));
    } else if (type.isInteger(32)) {
      append(bytes, int32_t(value));
    } else {
      append(bytes, int8_t(value));
    }
  return bytes;
}

template <class T> static double at(const std::vector<std::byte> &bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  return double(value);
}

static std::vector<double> decode(Type type, const std::vector<std::byte> &bytes) {
  std::vector<double> values;
  const size_t width = mlir::kiln::storedBytes(type, 1);
  for (size_t i = 0; i < bytes.size() / width; ++i)
    if (const llvm::fltSemantics *semantics = narrowFloat(type)) {
      llvm::APFloat number(*semantics, llvm::APInt(16, uint64_t(at<uint16_t>(bytes, i))));
      values.push_back(number.convertToDouble());
    } else if (type.isF32()) {
      values.push_back(at<float>(bytes, i));
    } else {
      values.push_back(type.isInteger(32) ? at<int32_t>(bytes, i) : at<int8_t>(bytes, i));
    }
  return values;
}

static std::vector<int64_t> shapeOf(Type type, const std::vector<int64_t> &symbols) {
  std::vector<int64_t> shape;
  for (AffineExpr extent : mlir::kiln::getExtents(cast<RankedTensorType>(type)))
    shape.push_back(mlir::kiln::evaluateExtent(extent, symbols));
  return shape;
}

static SmallVector<Type> tensorsOf(func::FuncOp function) {
  return llvm::filter_to_vector(function.getArgumentTypes(), llvm::IsaPred<RankedTensorType>);
}

//===- Running -----------------------------------------------------------===//

DeviceKernel::DeviceKernel(const std::string &text, const ScheduleConfig *config)
    : parsed(parseKernel(context, text)), module(prepare(context, text)) {
  if (!parsed || !module)
    throw std::runtime_error("the kernel does not parse");
  function = *module->getOps<func::FuncOp>().begin();
  FailureOr<cuda::LaunchPlan> plan = cuda::planKernel(function, config);
  if (failed(plan))
    throw std::runtime_error("the kernel does not compile");
  made = std::move(*plan);
  if (std::getenv("KILN_PRINT"))
    printf("%s\n%s\n%s\n%s\n", text.c_str(), made.text.c_str(), made.images.front().text.c_str(),
           made.tmaImage ? made.tmaImage->text.c_str() : "");
}

namespace {

/// The interpreter's memory, and the values that a launch plan refers to.
struct Machine {
  ptx::Memory memory;
  std::vector<uint64_t> tensors;
  uint64_t scratch = 0;
  uint64_t bankConflicts = 0;

  using TensorMaps = std::vector<std::array<std::byte, 128>>;
  uint32_t tmaBlocks = 0; // maximum number of blocks of a TMA launch; 0: no TMA launches
  int tma = 0;

  uint64_t valueOf(const cuda::Parameter &parameter, const std::vector<int64_t> &symbols) const {
    return parameter.kind == cuda::Parameter::Symbol   ? uint64_t(symbols[parameter.number])
           : parameter.kind == cuda::Parameter::Tensor ? tensors[parameter.number]
                                                       : scratch + parameter.number;
  }

  /// Returns nothing if a tensor map cannot be encoded.
  std::optional<TensorMaps> mapsOf(const cuda::TmaLaunch &launch, const std::vector<int64_t> &symbols) const {
    TensorMaps maps;
    for (const cuda::TensorMap &wanted : launch.maps) {
      ptx::TensorMap map;
      map.address = valueOf(wanted.tensor, symbols);
      map.rank = uint8_t(wanted.extents.size());
      map.elementBytes = wanted.element == cuda::TensorMap::TF32 ? 4 : 2;
      map.swizzle = ptx::TensorMap::Swizzle::bytes128;
      for (size_t i = 0; i < wanted.extents.size(); ++i) {
        map.extents[i] = uint64_t(mlir::kiln::evaluateExtent(wanted.extents[i], symbols));
        map.box[i] = uint16_t(wanted.box[i]);
        if (i > 0)
          map.strides[i - 1] = uint64_t(mlir::kiln::evaluateExtent(wanted.pitches[i - 1], symbols));
      }
      if (ptx::check(map))
        return std::nullopt;
      maps.push_back(ptx::encode(map));
    }
    return maps;
  }

  std::vector<std::byte> parametersOf(const ptx::Entry &entry, const std::vector<cuda::Parameter> &parameters,
                                      const TensorMaps &maps, const std::vector<int64_t> &symbols) const {
    std::vector<std::byte> bytes(entry.parameterBytes);
    EXPECT_EQ(entry.parameters.size(), parameters.size());
    for (auto [place, parameter] : llvm::zip_equal(entry.parameters, parameters)) {
      const bool isMap = parameter.kind == cuda::Parameter::Map;
      EXPECT_EQ(place.size, isMap ? 128U : parameter.kind == cuda::Parameter::Symbol ? 4U : 8U);
      const uint64_t value = isMap ? 0 : valueOf(parameter, symbols);
      std::memcpy(bytes.data() + place.offset, isMap ? (const void *)maps[parameter.number].data() : &value,
                  place.size);
    }
    return bytes;
  }

  std::string launch(const ptx::LoadedModule &code, const cuda::DeviceFunction &function, uint32_t blocks,
                     const std::vector<cuda::Parameter> &parameters, const TensorMaps &maps,
                     const std::vector<int64_t> &symbols) {
    const ptx::Entry *entry = code.module().find(function.name);
    if (!entry)
      return function.name + " is not there";
    ptx::LaunchConfig config;
    config.grid.x = blocks;
    config.block.x = function.threads;
    config.cluster.x = function.cluster;
    config.dynamicShared = function.sharedBytes;
    // Halide's modules have no programmatic dependent launch
    config.isDependentLaunch = function.isDependentLaunch && code.module().target() != "sm_80";
    const auto result =
        ptx::launch(code, function.name, config, parametersOf(*entry, parameters, maps, symbols), memory);
    bankConflicts += result.bankConflicts;
    return result.error;
  }

  /// Runs the plan's launches. Returns an empty string, or the error message.
  std::string run(const cuda::LaunchPlan &plan, const std::vector<int64_t> &symbols) {
    std::string error;
    scratch = memory.allocate(plan.scratchBytes);
    auto load = [&](const std::string &text) -> std::optional<ptx::LoadedModule> {
      std::optional<ptx::Module> code = ptx::Module::parse(text, error);
      return code ? std::optional(ptx::LoadedModule(*code, memory)) : std::nullopt;
    };
    std::optional<ptx::LoadedModule> code = load(plan.images.front().text), tmaCode;
    if (plan.tmaImage && tmaBlocks)
      tmaCode = load(plan.tmaImage->text);
    for (size_t i = 0; i < plan.launches.size() && error.empty(); ++i) {
      const cuda::Launch &wanted = plan.launches[i];
      const auto blocks = uint32_t(mlir::kiln::evaluateExtent(wanted.blocks, symbols));
      std::optional<TensorMaps> maps = wanted.tma && tmaCode ? mapsOf(*wanted.tma, symbols) : std::nullopt;
      if (blocks == 0)
        continue;
      if (maps) {
        const cuda::DeviceFunction &function = plan.tmaFunctions[wanted.tma->function];
        const auto tiles = uint32_t(mlir::kiln::evaluateExtent(wanted.tma->blocks, symbols));
        const uint32_t most = std::max(tmaBlocks / function.cluster, 1U) * function.cluster;
        error = launch(*tmaCode, function, std::min(tiles, most), wanted.tma->parameters, *maps, symbols);
        ++tma;
        i += wanted.tma->count - 1;
      } else {
        error = launch(*code, plan.functions[wanted.function], blocks, wanted.parameters, {}, symbols);
      }
    }
    return error;
  }
};

} // namespace

std::vector<Tensor> DeviceKernel::run(const std::vector<int64_t> &symbols, const std::vector<Tensor> &inputs,
                                      std::optional<std::pair<unsigned, unsigned>> shared) {
  Machine machine;
  auto allocate = [&](Type type, size_t bytes, int64_t after) {
    const auto ahead = int64_t(llvm::alignTo(after, mlir::kiln::storedBytes(getElementTypeOrSelf(type), 1)));
    return machine.memory.allocate(bytes + ahead) + ahead;
  };
  machine.tmaBlocks = tmaBlocks;
  for (auto [type, input] : llvm::zip_equal(tensorsOf(function), inputs)) {
    const std::vector<std::byte> bytes = encode(getElementTypeOrSelf(type), input.values);
    machine.tensors.push_back(allocate(type, bytes.size(), offset));
    machine.memory.copyIn(machine.tensors.back(), bytes);
  }
  std::vector<Tensor> results;
  std::vector<size_t> sizes;
  for (auto [number, type] : llvm::enumerate(function.getResultTypes())) {
    results.push_back(Tensor::zeros(shapeOf(type, symbols)));
    sizes.push_back(mlir::kiln::storedBytes(getElementTypeOrSelf(type), int64_t(results.back().values.size())));
    machine.tensors.push_back(shared && shared->first == number ? machine.tensors[shared->second]
                                                                : allocate(type, sizes.back(), offset + resultOffset));
  }
  EXPECT_EQ(machine.run(made, symbols), "");
  conflicts = machine.bankConflicts;
  tma += machine.tma;
  for (auto [number, type] : llvm::enumerate(function.getResultTypes())) {
    const uint64_t address = machine.tensors[inputs.size() + number];
    EXPECT_EQ(machine.memory.unwritten(address, sizes[number]), 0U) << "result " << number;
    std::vector<std::byte> bytes(sizes[number]);
    machine.memory.copyOut(address, bytes);
    results[number].values = decode(getElementTypeOrSelf(type), bytes);
  }
  return results;
}

//===- Comparing ---------------------------------------------------------===//

std::vector<verify::SharedTensor> DeviceKernel::expected(const std::vector<int64_t> &symbols,
                                                         const std::vector<Tensor> &inputs) {
  std::vector<verify::SharedTensor> arguments;
  for (auto [type, input] : llvm::zip_equal(tensorsOf(function), inputs))
    arguments.push_back(std::make_shared<interpreter::Tensor>(
        interpreter::Tensor::of(*mlir::kiln::toElementType(getElementTypeOrSelf(type)), input.shape, input.values)));
  verify::ModuleInterpreter interpreter(nullptr);
  return interpreter.run(*parsed->getOps<func::FuncOp>().begin(), symbols, arguments);
}

void DeviceKernel::compare(const std::vector<Tensor> &results, const std::vector<verify::SharedTensor> &expected,
                           double tolerance) const {
  ASSERT_EQ(results.size(), expected.size());
  for (auto [number, actual, wanted] : llvm::enumerate(results, expected)) {
    SCOPED_TRACE("result " + std::to_string(number));
    ASSERT_EQ(actual.shape, wanted->shape);
    double largest = 0;
    for (double value : wanted->values)
      largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
    for (size_t i = 0; i < actual.values.size(); ++i) {
      const double got = actual.values[i], value = wanted->values[i];
      const double allowed = wanted->errors[i] + tolerance * largest;
      ASSERT_TRUE(std::abs(got - value) <= allowed || got == value || (std::isnan(got) && std::isnan(value)) ||
                  std::isinf(wanted->errors[i]))
          << "element " << i << " of " << actual.values.size() << ": got " << got << ", expected " << value << " +- "
          << allowed;
    }
  }
}

void DeviceKernel::check(const std::vector<int64_t> &symbols, const std::vector<Tensor> &inputs, double tolerance) {
  const std::vector<verify::SharedTensor> wanted = expected(symbols, inputs);
  compare(run(symbols, inputs), wanted, tolerance);
  auto inPlace = function->getAttrOfType<DenseI64ArrayAttr>("kiln.inplace");
  for (auto [result, type] : llvm::enumerate(function.getResultTypes()))
    for (int64_t argument : inPlace ? inPlace.asArrayRef() : ArrayRef<int64_t>()) {
      if (tensorsOf(function)[argument] != type)
        continue;
      SCOPED_TRACE("result " + std::to_string(result) + " in argument " + std::to_string(argument));
      compare(run(symbols, inputs, std::pair(unsigned(result), unsigned(argument))), wanted, tolerance);
    }
}

std::vector<Tensor> randomInputs(const std::string &text, const std::vector<int64_t> &symbols, int low, int high) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = parseKernel(context, text);
  std::vector<Tensor> inputs;
  for (Type type : tensorsOf(*module->getOps<func::FuncOp>().begin())) {
    Type element = getElementTypeOrSelf(type);
    const std::vector<int64_t> shape = shapeOf(type, symbols);
    inputs.push_back(isa<FloatType>(element) ? randomTensor(shape)
                     : element.isInteger(1)  ? randomIntegers(shape, 0, 2)
                                             : randomIntegers(shape, low, high));
  }
  return inputs;
}

std::string refusal(const std::string &text, const ScheduleConfig *config) {
  return refusalOf(text, [&](func::FuncOp kernel) { return LogicalResult(cuda::planKernel(kernel, config)); });
}

} // namespace kiln::testing
