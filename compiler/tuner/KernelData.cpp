// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/KernelData.h"

#include "compiler/dialect/ElementTypes.h"
#include "compiler/dialect/StoredParts.h"
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>

namespace kiln {

using namespace mlir;

namespace {

constexpr size_t alignment = 64;
constexpr int64_t mostRotations = 64;

struct FreeMemory {
  void operator()(char *memory) const { std::free(memory); }
};
using Bytes = std::unique_ptr<char, FreeMemory>;

Bytes allocate(int64_t bytes) {
  size_t rounded = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  Bytes memory(static_cast<char *>(std::aligned_alloc(alignment, rounded)));
  if (!memory)
    llvm::report_bad_alloc_error("no memory for a kernel's arguments");
  return memory;
}

/// A fast generator (xorshift64*), since arguments of hundreds of megabytes are filled.
class Random {
public:
  uint32_t next() {
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return (state * 0x2545f4914f6cdd1dULL) >> 32;
  }
  /// Returns a number in [-1, 1).
  float real() { return float(int32_t(next())) * 0x1p-31f; }
  /// Returns the bits of an f16 or bf16 in (-1, 1): a sign and a fraction with one of the eight exponents below that of
  /// 1.
  uint16_t halfReal(int fractionBits) {
    const uint32_t bits = next(), one = fractionBits == 10 ? 15 : 127;
    return (bits & (0x8000u | ((1u << fractionBits) - 1))) | (one - 1 - (bits >> 16) % 8) << fractionBits;
  }

private:
  uint64_t state = 0x9e3779b97f4a7c15ULL;
};

} // namespace

double readElement(Type element, const char *data, int64_t i) {
  if (element.isF32()) {
    float value;
    memcpy(&value, data + 4 * i, 4);
    return value;
  }
  if (element.isInteger(32)) {
    int32_t value;
    memcpy(&value, data + 4 * i, 4);
    return value;
  }
  if (mlir::kiln::isHalfFloat(element)) {
    uint16_t bits;
    memcpy(&bits, data + 2 * i, 2);
    return llvm::APFloat(cast<FloatType>(element).getFloatSemantics(), llvm::APInt(16, bits)).convertToDouble();
  }
  return static_cast<signed char>(data[i]);
}

int64_t rotatedWeightBytes(ModuleOp module, const Machine &machine, const Target &target) {
  int64_t bytes = 0;
  module.walk([&](mlir::kiln::ParameterOp parameter) {
    bytes += storedBytes(cast<RankedTensorType>(parameter.getType()), {}) * int64_t(parameter.getCopies());
  });
  return std::min(bytes, 2 * (machine.l3Bytes ? machine.l3Bytes : target.machine().l3Bytes));
}

struct KernelData::Tensor {
  Type element;
  std::vector<int64_t> shape;
  int64_t elements = 1, bytes = 0;
  std::vector<Bytes> copies, descriptors;
  std::vector<uint64_t> words; // the argument that a call passes for each copy

  Tensor(RankedTensorType type, ArrayRef<int64_t> extents, size_t numCopies, const KernelAbi &abi)
      : element(type.getElementType()), shape(shapeOf(type, extents)) {
    for (int64_t extent : shape)
      elements *= extent;
    bytes = mlir::kiln::storedBytes(element, elements);
    for (size_t i = 0; i < numCopies; ++i) {
      copies.push_back(allocate(bytes));
      descriptors.push_back(allocate(abi.descriptorBytes(shape.size())));
      words.push_back(abi.describe(copies[i].get(), element, shape, descriptors[i].get()));
    }
  }
  Tensor(const Tensor &) = delete;
  Tensor(Tensor &&) = default;

  void fill(Random &random, std::pair<int64_t, int64_t> range) {
    char *data = copies[0].get();
    for (int64_t i = 0; i < elements; ++i) {
      if (element.isF32()) {
        float value = random.real();
        memcpy(data + 4 * i, &value, 4);
      } else if (element.isInteger(32)) {
        int32_t value = int32_t(range.first + random.next() % (range.second - range.first));
        memcpy(data + 4 * i, &value, 4);
      } else if (mlir::kiln::isHalfFloat(element)) {
        uint16_t bits = random.halfReal(element.isF16() ? 10 : 7);
        memcpy(data + 2 * i, &bits, 2);
      } else if (element.isInteger(16)) { // two interleaved i8
        auto bits = uint16_t(random.next());
        memcpy(data + 2 * i, &bits, 2);
      } else {
        data[i] = element.isInteger(1) ? random.next() % 8 != 0 : char(random.next());
      }
    }
    share();
  }

  /// Makes all copies equal to the first one.
  void share() {
    for (size_t i = 1; i < copies.size(); ++i)
      memcpy(copies[i].get(), copies[0].get(), bytes);
  }

  double at(const char *data, int64_t i) const { return readElement(element, data, i); }
};

struct KernelData::Memory {
  std::vector<Tensor> inputs, results; // parts of tensors
  std::vector<size_t> firstParts;      // the first part of each kernel argument, among the inputs
  std::vector<int64_t> extents;
  std::vector<std::vector<uint64_t>> arguments; // one list per rotation
  int64_t footprint = 0;
  bool isStep = false;
  const KernelAbi *abi = nullptr;
};

/// Makes scales those of numbers around 1, like the random numbers of other types, where random bits are not:
/// exponents, and pairs of f16.
static void keepScales(const Format &format, char *scales, int64_t scaleBytes, char *outers, int64_t outerBytes) {
  for (int64_t i = 0; format.scale == KILN_ROW_F8E8M0 && i < scaleBytes; ++i)
    scales[i] = char(120 + (scales[i] & 7));
  for (int64_t i = 1; format.has_minimums && i < outerBytes; i += 2)
    outers[i] = char(0x2C | (outers[i] & 3)); // 2^-4 to 2^-3
}

/// Establishes the invariants of interleaved i8 layouts: zeros after K, and offsets of 128 times the sums of outputs;
/// and those of scales.
void KernelData::keepPromises(RankedTensorType type, MutableArrayRef<Tensor> parts) {
  auto layout = dyn_cast_if_present<mlir::kiln::TiledAttr>(type.getEncoding());
  if (layout && layout.getStorage() && parts.size() > 1) {
    Tensor &scales = parts[1], &last = parts.back();
    keepScales(mlir::kiln::getFormat(layout.getStorage()), scales.copies[0].get(), scales.bytes, last.copies[0].get(),
               last.bytes);
    scales.share();
    last.share();
  }
  if (!layout || !layout.isVnni())
    return;
  const int64_t interleave = layout.getInterleave(), kExtent = layout.kExtentOf(type.getShape()),
                size = layout.getSize();
  const int64_t steps = layout.getStoredShape(type.getShape())[1];
  char *numbers = parts[0].copies[0].get();
  std::vector<int32_t> sums(parts[1].elements);
  for (int64_t i = 0; i < parts[0].bytes; ++i) {
    const int64_t at = i / interleave; // index of the interleaved element
    if (at / size % steps * interleave + i % interleave >= kExtent)
      numbers[i] = 0;
    sums[at / size / steps * size + at % size] += 128 * static_cast<signed char>(numbers[i]);
  }
  parts[0].share();
  if (!mlir::kiln::hasOffsets(layout))
    return;
  memcpy(parts[2].copies[0].get(), sums.data(), parts[2].bytes);
  parts[2].share();
}

KernelData::KernelData(const KernelUse &use, ArrayRef<int64_t> extents, int64_t rotatedBytes, const KernelAbi &abi)
    : memory(std::make_unique<Memory>()) {
  memory->abi = &abi;
  memory->extents = extents;
  func::FuncOp kernel = use.kernel;
  const std::vector<bool> &isFresh = use.isFresh;
  memory->isStep = use.isStep;
  ArrayRef<Type> types = kernel.getArgumentTypes().drop_front(extents.size());
  int64_t weights = 0;
  for (auto [type, rotates] : llvm::zip(types, isFresh))
    weights += rotates ? storedBytes(cast<RankedTensorType>(type), extents) : 0;
  int64_t rotations = weights ? std::clamp<int64_t>((rotatedBytes + weights - 1) / weights, 1, mostRotations) : 1;

  Work work = measureWork(kernel, extents);
  memory->footprint = int64_t(work.bytesRead + work.bytesWritten) + (rotations - 1) * weights;

  Random random;
  for (auto [i, type] : llvm::enumerate(types)) {
    memory->firstParts.push_back(memory->inputs.size());
    for (const mlir::kiln::StoredPart &part : mlir::kiln::getStoredParts(cast<RankedTensorType>(type))) {
      memory->inputs.emplace_back(part.type, extents, isFresh[i] ? rotations : 1, abi);
      std::pair<int64_t, int64_t> range{0, 1};
      if (cast<RankedTensorType>(type).getElementType().isInteger(32))
        range = integerRange(kernel, extents.size() + i, extents);
      else if (memory->inputs.back().element.isInteger(32)) // interleaved or packed elements
        range = {std::numeric_limits<int32_t>::min(), int64_t(1) << 31};
      memory->inputs.back().fill(random, range);
    }
    keepPromises(cast<RankedTensorType>(type), MutableArrayRef(memory->inputs).drop_front(memory->firstParts.back()));
  }
  for (Type type : kernel.getResultTypes())
    memory->results.emplace_back(cast<RankedTensorType>(type), extents, 1, abi);
  for (int64_t rotation = 0; rotation < rotations; ++rotation) {
    std::vector<uint64_t> &list = memory->arguments.emplace_back(extents.begin(), extents.end());
    for (std::vector<Tensor> *tensors : {&memory->inputs, &memory->results})
      for (Tensor &tensor : *tensors)
        list.push_back(tensor.words[rotation % tensor.words.size()]);
  }
}

KernelData::~KernelData() = default;
KernelData::KernelData(KernelData &&) noexcept = default;

const KernelAbi &KernelData::abi() const { return *memory->abi; }

bool KernelData::isStep() const { return memory->isStep; }

ArrayRef<int64_t> KernelData::extents() const { return memory->extents; }

size_t KernelData::rotations() const { return memory->arguments.size(); }

ArrayRef<uint64_t> KernelData::arguments(size_t rotation) const { return memory->arguments[rotation % rotations()]; }

std::vector<KernelData::Storage> KernelData::storage() const {
  std::vector<Storage> all;
  for (const std::vector<Tensor> *tensors : {&memory->inputs, &memory->results})
    for (const Tensor &tensor : *tensors) {
      Storage &storage =
          all.emplace_back(Storage{{}, tensor.bytes, tensors == &memory->results, tensor.element, tensor.shape});
      for (const Bytes &copy : tensor.copies)
        storage.copies.push_back(copy.get());
    }
  return all;
}

const char *KernelData::input(size_t number, size_t part) const {
  return memory->inputs[memory->firstParts[number] + part].copies[0].get();
}

int64_t KernelData::footprint() const { return memory->footprint; }

void KernelData::poisonResults() {
  for (Tensor &result : memory->results)
    memset(result.copies[0].get(), 0xff, result.bytes);
}

std::string KernelData::saveResults() const {
  std::string saved;
  for (const Tensor &result : memory->results)
    saved.append(result.copies[0].get(), result.bytes);
  return saved;
}

std::string KernelData::compareResults(StringRef saved, double tolerance) const {
  const char *expected = saved.data();
  for (auto [number, result] : llvm::enumerate(memory->results)) {
    const double rounding = mlir::kiln::isHalfFloat(result.element) ? result.element.isF16() ? 0x1p-10 : 0x1p-7 : 0;
    double largest = 0;
    for (int64_t i = 0; i < result.elements; ++i)
      if (double value = std::abs(result.at(expected, i)); std::isfinite(value))
        largest = std::max(largest, value);
    for (int64_t i = 0; i < result.elements; ++i) {
      double e = result.at(expected, i), a = result.at(result.copies[0].get(), i);
      if (a != e && !(std::isnan(a) && std::isnan(e)) && !(std::abs(a - e) <= std::max(tolerance, rounding) * largest))
        return fmt::format("element {} of result {} is {}, with the default schedule {}", i, number, a, e);
    }
    expected += result.bytes;
  }
  return "";
}

} // namespace kiln
