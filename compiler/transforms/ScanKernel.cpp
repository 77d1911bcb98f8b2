// SPDX-License-Identifier: Apache-2.0
//
// The kernel has all symbols of the module, so that types do not change. The body is lowered as a kernel function of
// its own, whose arguments are what the body reads.
#include "compiler/transforms/ScanKernel.h"

#include "compiler/dialect/Extents.h"
#include "compiler/dialect/lowering/KernelBuilder.h"
#include "compiler/kernel/ScanBlocks.h"
#include "compiler/transforms/KernelGroups.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::kiln {

namespace {

/// Whether the op is a constant that a kernel contains.
bool isSplat(Operation *op) { return isa_and_nonnull<ConstantOp>(op) && !isHostOp(op); }

bool isOfKernels(ScanOp scan) {
  if (scan.getUntil() || scan.getLayers() || scan.getAhead() > 0)
    return false;
  return llvm::all_of(scan.getBody().front().without_terminator(),
                      [](Operation &op) { return isa<KernelOpInterface>(op); });
}

/// Returns the values from outside that the body reads, except for constants that the kernel contains.
llvm::SetVector<Value> capturedBy(ScanOp scan) {
  llvm::SetVector<Value> captured;
  for (Operation &op : scan.getBody().front())
    for (Value operand : op.getOperands())
      if (operand.getParentBlock() != &scan.getBody().front() && !isSplat(operand.getDefiningOp()))
        captured.insert(operand);
  return captured;
}

/// Moves constants that are arguments of kernels out of the body.
void hoistTables(ScanOp scan) {
  for (Operation &op : llvm::make_early_inc_range(scan.getBody().front()))
    if (isa<ConstantOp>(op) && isHostOp(&op))
      op.moveBefore(scan);
}

func::FuncOp createKernel(ScanOp scan, func::FuncOp entry, StringRef name, ArrayRef<Value> operands) {
  OpBuilder builder(entry);
  SmallVector<Type> inputs;
  SmallVector<int64_t> bounds;
  for (Interval interval : getSymbolBounds(entry)) {
    inputs.push_back(builder.getIndexType());
    bounds.append({std::max<int64_t>(1, interval.min), interval.max});
  }
  const size_t symbols = inputs.size();
  for (Value operand : operands)
    inputs.push_back(operand.getType());
  auto kernel =
      func::FuncOp::create(builder, scan.getLoc(), name, builder.getFunctionType(inputs, scan.getResultTypes()));
  kernel.setPrivate();
  kernel->setAttr(kernelAttrName, builder.getUnitAttr());
  kernel->setAttr(boundsAttrName, builder.getDenseI64ArrayAttr(bounds));

  Block *body = kernel.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  IRMapping mapping;
  for (auto [operand, argument] : llvm::zip_equal(operands, body->getArguments().drop_front(symbols)))
    mapping.map(operand, argument);
  llvm::SetVector<Operation *> constants;
  scan->walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (Operation *source = operand.getDefiningOp(); isSplat(source) && !scan->isProperAncestor(source))
        constants.insert(source);
  });
  for (Operation *constant : constants)
    if (!mapping.contains(constant->getResult(0)))
      builder.clone(*constant, mapping);
  Operation *clone = builder.clone(*scan, mapping);
  func::ReturnOp::create(builder, scan.getLoc(), clone->getResults());
  return kernel;
}

} // namespace

func::FuncOp outlineScan(ScanOp scan, func::FuncOp entry, StringRef name) {
  if (!isOfKernels(scan))
    return {};
  hoistTables(scan);
  llvm::SetVector<Value> operands;
  for (Value init : scan.getInits())
    if (!isSplat(init.getDefiningOp()))
      operands.insert(init);
  operands.insert_range(scan.getSequences());
  operands.insert_range(capturedBy(scan));
  SmallVector<Value> indices;
  for (BlockArgument argument : entry.getArguments())
    if (argument.getType().isIndex())
      indices.push_back(argument);
  if (indices.size() != getSymbolBounds(entry).size())
    return {};

  func::FuncOp kernel = createKernel(scan, entry, name, operands.getArrayRef());
  func::FuncOp trial = kernel.clone();
  const bool isKernel = succeeded(lowerScan(trial, /*isBatchInvariant=*/false)) &&
                        ::kiln::findScanBlocks(::kiln::scanOf(trial)).has_value();
  trial->erase();
  if (!isKernel) {
    kernel.erase();
    return {};
  }
  OpBuilder builder(scan);
  auto call = CallOp::create(builder, scan.getLoc(), scan.getResultTypes(), FlatSymbolRefAttr::get(kernel), indices,
                             operands.getArrayRef(), /*ends=*/Value(),
                             /*per_group=*/DenseI64ArrayAttr());
  scan->replaceAllUsesWith(call.getResults());
  scan->erase();
  return kernel;
}

namespace {

/// Finds the values of the body that are stored rather than computed where they are read: costly ones that are read
/// several times, which includes readers with more elements.
class StoredValues {
public:
  explicit StoredValues(ScanOp scan) : bounds(getSymbolBounds(scan)) {
    for (Operation &op : llvm::reverse(scan.getBody().front().without_terminator()))
      for (Value result : op.getResults())
        visit(op, result);
    std::reverse(stored.begin(), stored.end());
  }
  SmallVector<Value> stored;

private:
  double elementsOf(Value value) const {
    auto type = cast<RankedTensorType>(value.getType());
    std::optional<Interval> found = getBounds(getProduct(getExtents(type), value.getContext()), bounds);
    return found ? double(found->max) : 1e9;
  }

  /// Counts how many elements are read for each time the value is computed.
  void visit(Operation &op, Value result) {
    double count = 0;
    for (Operation *user : result.getUsers()) {
      auto inKernel = dyn_cast<KernelOpInterface>(user);
      const bool isPassedOn = inKernel && inKernel.isLazy();
      count += isPassedOn ? std::max(reads.lookup(user), elementsOf(user->getResult(0))) : elementsOf(result);
    }
    if (llvm::any_of(result.getUsers(), llvm::IsaPred<YieldOp>))
      count = elementsOf(result); // stored in any case
    auto inKernel = cast<KernelOpInterface>(op);
    if (inKernel.isLazy() && inKernel.getElementCost() == ElementCost::Costly && count > elementsOf(result)) {
      stored.push_back(result);
      count = elementsOf(result);
    }
    reads[&op] = std::max(reads.lookup(&op), count);
  }

  SmallVector<Interval> bounds;
  llvm::DenseMap<Operation *, double> reads;
};

/// Makes initial values that are constants filled tensors, which lowered kernels may have.
void fillInitialValues(ScanOp scan) {
  OpBuilder builder(scan);
  Block &entry = scan->getParentOfType<func::FuncOp>().getBody().front();
  for (OpOperand &init : scan.getInitsMutable()) {
    auto constant = init.get().getDefiningOp<ConstantOp>();
    if (!constant)
      continue;
    auto type = cast<RankedTensorType>(init.get().getType());
    SmallVector<Value> sizes;
    for (AffineExpr extent : getExtents(type))
      if (!isa<AffineConstantExpr>(extent)) {
        // Only the type states the extent to those who read the kernel; the value has the right symbols.
        auto symbol = dyn_cast<AffineSymbolExpr>(extent);
        sizes.push_back(symbol ? Value(entry.getArgument(symbol.getPosition())) : Value());
      }
    if (llvm::is_contained(sizes, Value()))
      continue;
    const Location loc = scan.getLoc();
    auto value = cast<DenseElementsAttr>(constant.getValue()).getSplatValue<TypedAttr>();
    Value empty = tensor::EmptyOp::create(builder, loc, type, sizes);
    Value number = arith::ConstantOp::create(builder, loc, value);
    init.set(linalg::FillOp::create(builder, loc, number, empty).getResult(0));
  }
}

/// Returns a function of the body: its arguments are the kernel's symbols and what the body reads.
OwningOpRef<func::FuncOp> bodyFunction(ScanOp scan, ArrayRef<Value> inputs, ArrayRef<Value> stored) {
  auto kernel = scan->getParentOfType<func::FuncOp>();
  Block &body = scan.getBody().front();
  SmallVector<Value> results(stored);
  llvm::append_range(results, body.getTerminator()->getOperands());
  Builder types(scan.getContext());
  auto function = func::FuncOp::create(
      scan.getLoc(), "body", types.getFunctionType(TypeRange(ValueRange(inputs)), TypeRange(ValueRange(results))));
  function->setAttr(kernelAttrName, types.getUnitAttr());
  function->setAttr(boundsAttrName, kernel->getAttr(boundsAttrName));
  OpBuilder builder = OpBuilder::atBlockBegin(function.addEntryBlock());
  IRMapping mapping;
  mapping.map(inputs, function.getArguments());
  for (Value input : inputs)
    if (auto constant = input.getDefiningOp<ConstantOp>())
      mapping.map(input, builder.clone(*constant)->getResult(0));
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  func::ReturnOp::create(builder, scan.getLoc(),
                         llvm::map_to_vector(results, [&](Value value) { return mapping.lookup(value); }));
  return function;
}

} // namespace

LogicalResult lowerScan(func::FuncOp kernel, bool isBatchInvariant) {
  ScanOp scan = ::kiln::scanOf(kernel);
  Block &body = scan.getBody().front(), &entry = kernel.getBody().front();
  SmallVector<Value> inputs;
  for (BlockArgument argument : entry.getArguments())
    if (argument.getType().isIndex())
      inputs.push_back(argument);
  llvm::append_range(inputs, body.getArguments());
  llvm::SetVector<Value> captured;
  for (Operation &op : body)
    for (Value operand : op.getOperands())
      if (operand.getParentBlock() != &body)
        captured.insert(operand);
  llvm::append_range(inputs, captured);
  OwningOpRef<func::FuncOp> function = bodyFunction(scan, inputs, StoredValues(scan).stored);
  if (failed(KernelBuilder(*function, isBatchInvariant).run()))
    return failure();

  Operation *yield = body.getTerminator();
  SmallVector<Operation *> old;
  for (Operation &op : body.without_terminator())
    old.push_back(&op);
  IRMapping mapping;
  mapping.map(function->getArguments(), inputs);
  OpBuilder inBody(yield), atStart = OpBuilder::atBlockBegin(&entry);
  for (Operation &op : function->getBody().front().without_terminator())
    (isa<arith::ConstantOp>(op) ? atStart : inBody).clone(op, mapping);
  Operation *returned = function->getBody().front().getTerminator();
  for (auto [operand, value] :
       llvm::zip_equal(yield->getOpOperands(), returned->getOperands().take_back(yield->getNumOperands())))
    operand.set(mapping.lookup(value));
  for (Operation *op : llvm::reverse(old))
    op->erase();
  fillInitialValues(scan);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(entry)))
    if (isa<ConstantOp>(op) && op.use_empty())
      op.erase();
  const bool isLowered = llvm::none_of(entry, [](Operation &op) { return isa<ConstantOp>(op); });
  return success(isLowered);
}

} // namespace mlir::kiln
