// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/CostModel.h"

#include "compiler/kernel/Attention.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace kiln {

using namespace mlir;

static int bitsOf(Value tensor) {
  Type element = getElementTypeOrSelf(tensor);
  return element.isIntOrFloat() ? int(element.getIntOrFloatBitWidth()) : 32;
}

ProductShape productShape(func::FuncOp kernel, ArrayRef<int64_t> extents) {
  ProductShape largest;
  double most = 0;
  const DecomposedKernel decomposed(kernel);
  decomposed.get().walk([&](linalg::GenericOp op) {
    if (op.getNumReductionLoops() == 0 || op.getNumDpsInputs() < 2 || op.getNumDpsInits() != 1)
      return;
    std::vector<int64_t> loops = loopExtents(op, extents);
    AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
    ProductShape shape{1, 1, 1};
    shape.sumBits = bitsOf(op->getResult(0));
    shape.leftBits = bitsOf(op->getOperand(0));
    shape.rightBits = bitsOf(op->getOperand(1));
    double size = 1;
    for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
      size *= double(loops[loop]);
      if (kind == utils::IteratorType::reduction)
        shape.kExtent *= loops[loop];
    }
    if (unsigned rank = out.getNumResults(); rank > 0) {
      shape.columns = loops[out.getDimPosition(rank - 1)];
      shape.rows = rank > 1 ? loops[out.getDimPosition(rank - 2)] : 1;
    }
    if (size > most)
      most = size, largest = shape;
  });
  return largest;
}

namespace {

double ragged(int64_t extent, int64_t tile) { return double((extent + tile - 1) / tile * tile) / double(extent); }

/// Returns 1 if the data fits the cache, and a penalty that grows with the excess otherwise.
double beyond(double bytes, double cache, double penalty) {
  return bytes <= cache ? 1 : 1 + penalty * std::log2(bytes / cache);
}

/// Models a GEMM with an m x n register tile that iterates over panels of b. Optional parameters: m, n, k_block,
/// rows_block.
class ProductModel {
public:
  ProductModel(const ProductShape &shape, const MachineModel &machine) : shape(shape), machine(machine) {}

  double operator()(const ScheduleConfig &config) const {
    auto get = [&](const char *key, int64_t otherwise) {
      auto found = config.find(key);
      return found == config.end() || found->second <= 0 ? otherwise : found->second;
    };
    int64_t lanes = machine.lanes(shape.sumBits);
    int64_t m = get("m", 8), n = get("n", 3 * lanes), kExtent = std::min(get("k_block", shape.kExtent), shape.kExtent);
    int64_t rows = std::min(get("rows_block", shape.rows), shape.rows), vectors = std::max<int64_t>(1, n / lanes);

    // A K iteration: two multiply-adds per cycle, two loads per cycle, and accumulators with a latency of four cycles.
    double sums = double(m * vectors);
    double cycles = std::max({sums / 2, double(m + vectors) / 2, 4.0}) / sums;
    if (m * vectors + vectors + 1 > machine.vectorRegisters)
      cycles *= 1.5 + 0.05 * double(m * vectors);
    double cost = cycles * ragged(shape.rows, m) * ragged(shape.columns, n);
    // Partial sums of a K block are accumulated in memory: a load, an add and a store for each.
    cost *= 1 + (kExtent < shape.kExtent ? 3.0 : 1.0) / double(kExtent);
    const double left = shape.leftBits / 8.0, right = shape.rightBits / 8.0; // bytes
    cost *= beyond(left * double(m * kExtent), double(machine.l1Bytes) / 2, 0.05);
    cost *= beyond(right * double(n * kExtent), double(machine.l2Bytes) / 2, 0.10);
    cost *= beyond(left * double(rows * kExtent), double(machine.l2Bytes), 0.02);
    return std::log(cost);
  }

private:
  ProductShape shape;
  MachineModel machine;
};

} // namespace

CostModel makeCostModel(llvm::StringRef strategy, const SearchSpace &space, const ProductShape &shape,
                        const MachineModel &machine) {
  bool isProduct = strategy == "contraction" && shape.kExtent > 0;
  return [=, product = ProductModel(shape, machine)](const ScheduleConfig &config) {
    double cost = isProduct ? product(config) : 0, perStep = isProduct ? 0.005 : 0.03;
    for (const TuningParameter &parameter : space) {
      auto at = [&](int64_t value) { return llvm::find(parameter.values, value) - parameter.values.begin(); };
      cost += perStep * double(std::abs(at(config.at(parameter.key)) - at(parameter.defaultValue)));
    }
    return cost;
  };
}

} // namespace kiln
