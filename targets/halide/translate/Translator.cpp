// SPDX-License-Identifier: Apache-2.0
//
// 1. Index arguments become scalar parameters, tensors become image parameters with dense strides.
// 2. Each fill becomes a constant Func, each generic a Func; a reduction is initialised from its init operand and
//    updated over an RDom.
// 3. Results are stored by separate output Funcs, which leaves every other Func free to be placed by the strategy.
#include "targets/halide/translate/Translator.h"

#include "compiler/dialect/AffineEval.h"
#include "compiler/dialect/Extents.h"
#include "compiler/dialect/StoredParts.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "targets/halide/Structure.h"
#include "targets/halide/workarounds/KnownValues.h"

namespace kiln::halide {

using namespace mlir;
using Halide::Expr;
using Halide::Var;

Var dimensionVar(unsigned dimension) { return Var("d" + std::to_string(dimension)); }

static std::vector<Var> dimensionVars(unsigned rank) {
  std::vector<Var> vars;
  for (unsigned i = 0; i < rank; ++i)
    vars.push_back(dimensionVar(i));
  return vars;
}

Exprs reversed(Exprs exprs) {
  std::reverse(exprs.begin(), exprs.end());
  return exprs;
}

Translator::Translator(func::FuncOp kernel, StringRef symbol)
    : isBatchInvariant(::kiln::isBatchInvariant(kernel)), kernel(kernel), madeOfKnown(madeOfKnownValues(kernel)),
      prefix(symbol) {}

std::string Translator::name(StringRef what) { return prefix + "_" + what.str(); }

void Translator::prefetch(linalg::GenericOp op, unsigned operand, int64_t advance, int lines, StringRef rowLoop) {
  unsigned number = cast<BlockArgument>(op->getOperand(operand)).getArgNumber();
  StreamPrefetch wanted{name("in" + std::to_string(number)), advance, lines, rowLoop.str()};
  // Two operands may be parts of one argument, which is prefetched once.
  if (llvm::none_of(prefetches, [&](const StreamPrefetch &known) {
        return std::tie(known.buffer, known.advance, known.lines, known.rowLoop) ==
               std::tie(wanted.buffer, wanted.advance, wanted.lines, wanted.rowLoop);
      }))
    prefetches.push_back(std::move(wanted));
}

LogicalResult Translator::run() {
  if (failed(translateArguments()))
    return failure();
  for (Operation &op : kernel.getBody().front()) {
    LogicalResult done = success();
    if (auto fill = dyn_cast<linalg::FillOp>(op))
      done = translate(fill);
    else if (auto generic = dyn_cast<linalg::GenericOp>(op))
      done = translate(generic);
    else if (auto ret = dyn_cast<func::ReturnOp>(op))
      done = translateOutputs(ret);
    else if (!isa<tensor::EmptyOp>(op) && llvm::any_of(op.getResultTypes(), llvm::IsaPred<ShapedType>))
      done = op.emitError() << "the halide target has no translation for op '" << op.getName() << "'";
    if (failed(done))
      return failure();
  }
  return success();
}

//===- Arguments and extents ---------------------------------------------===//

/// Sets the extents and strides of the dense buffers of one Func; Halide uses the extents of the first one for all of
/// them.
static void setDense(std::vector<Halide::OutputImageParam> buffers, const Exprs &extents) {
  Expr stride = 1;
  for (unsigned i = 0; i < extents.size(); ++i) {
    buffers.front().dim(i).set_bounds(0, extents[i]);
    for (Halide::OutputImageParam &buffer : buffers)
      buffer.dim(i).set_stride(stride);
    stride = Halide::Internal::simplify(stride * extents[i]);
  }
}

LogicalResult Translator::translateArguments() {
  SmallVector<mlir::kiln::Interval> bounds = KernelFunction(kernel).bounds();
  for (BlockArgument argument : kernel.getArguments()) {
    if (argument.getType().isIndex()) {
      mlir::kiln::Interval range = bounds[symbols.size()];
      Halide::Param<int32_t> param(name("s" + std::to_string(symbols.size())));
      param.set_min_value(int32_t(range.min));
      // Only the variant for one row gets an upper bound. For other arguments with a single value, a bound only makes
      // Halide compute the allocation sizes of branches that are never taken, which may be negative.
      if (range.max == 1)
        param.set_max_value(1);
      symbols.push_back(param);
      scalars[argument] = param;
      arguments.push_back(param);
      continue;
    }
    if (failed(translateTensor(argument)))
      return failure();
  }
  return success();
}

LogicalResult Translator::translateTensor(BlockArgument argument) {
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  Halide::Type element = type ? elementType(type.getElementType()) : Halide::Handle();
  if (element.is_handle())
    return kernel.emitError() << "the halide target has no argument of type " << argument.getType();
  Source source{Halide::Func(), -1, true, element.is_bool()};
  for (auto [number, part] : llvm::enumerate(mlir::kiln::getStoredParts(type))) {
    Halide::ImageParam param(partElement(type, number), part.type.getRank(),
                             name("in" + std::to_string(argument.getArgNumber()) + partSuffix(number)));
    setDense({param}, reversed(extents(part.type)));
    (number == 0 ? source.func : number == 1 ? source.scales : source.thirds) = param;
    arguments.push_back(param);
  }
  sources[argument] = source;
  return success();
}

Halide::Func Translator::argument(unsigned number) { return sources[kernel.getArgument(symbols.size() + number)].func; }

Exprs Translator::extents(RankedTensorType type) {
  Exprs result;
  auto map = dyn_cast_if_present<AffineMapAttr>(type.getEncoding());
  for (int64_t i = 0; i < type.getRank(); ++i)
    result.push_back(map ? Halide::Internal::simplify(affine(map.getValue().getResult(i), {}, symbols))
                         : Expr(int(type.getDimSize(i))));
  return result;
}

Expr Translator::extent(Value tensor, unsigned dimension) {
  return extents(cast<RankedTensorType>(tensor.getType()))[dimension];
}

Expr Translator::loopExtent(linalg::GenericOp op, unsigned loop) {
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (unsigned i = 0; i < map.getNumResults(); ++i)
      if (auto dim = dyn_cast<AffineDimExpr>(map.getResult(i)); dim && dim.getPosition() == loop)
        return extent(operand.get(), i);
  }
  return Expr();
}

namespace {

struct ExprArithmetic : mlir::kiln::AffineOperands<Expr> {
  Expr constant(int64_t number) const { return Expr(int(number)); }
  Expr add(const Expr &a, const Expr &b) const { return a + b; }
  Expr multiply(const Expr &a, const Expr &b) const { return a * b; }
  Expr floorDivide(const Expr &a, const Expr &b) const { return a / b; }
  Expr ceilDivide(const Expr &a, const Expr &b) const { return (a + b - 1) / b; }
  Expr modulo(const Expr &a, const Expr &b) const { return a % b; }
};

} // namespace

Expr Translator::affine(AffineExpr expr, const Exprs &dims, const Exprs &symbolValues) {
  return mlir::kiln::evaluateAffine(expr, ExprArithmetic{{dims, symbolValues}});
}

//===- Regions -----------------------------------------------------------===//

/// Whether the op is the accumulation of a reduction, or the product that it adds. Schedules and fused multiply-adds
/// need both in their original form.
static bool isAccumulation(Operation &op) {
  auto generic = dyn_cast<linalg::GenericOp>(op.getParentOp());
  if (!generic || generic.getNumReductionLoops() == 0)
    return false;
  auto isSum = [&](Operation &each) {
    return llvm::any_of(each.getOperands(),
                        [&](Value operand) { return llvm::is_contained(generic.getRegionOutputArgs(), operand); });
  };
  return isSum(op) ||
         (isa<arith::MulFOp>(op) && llvm::any_of(op.getUsers(), [&](Operation *user) { return isSum(*user); }));
}

Expr Translator::translateScalar(Operation *op, const Exprs &operands) {
  if (isa<math::FmaOp>(op) && vectorFunctions.hasFma && operands[0].type() == Halide::Float(32)) {
    usesVectorFunctions = true;
    return fusedMultiplyAdd(operands[0], operands[1], operands[2]);
  }
  // An operand that a strategy has already widened in a copy stays as it is.
  if (auto widened = dyn_cast<arith::ExtFOp>(op); widened && mlir::kiln::isHalfFloat(widened.getIn().getType()))
    return operands[0].type().is_float() ? operands[0] : widen(widened.getIn().getType(), operands[0]);
  if (isa<arith::TruncFOp>(op) && mlir::kiln::isHalfFloat(op->getResult(0).getType()))
    return narrow(op->getResult(0).getType(), operands[0]);
  // Strict, so that an elementwise function has the same bits in every kernel. Halide and LLVM would treat floats as
  // real numbers, but (a * 2) * b is not (a * b) * 2, and would fuse a product into any sum that reads it.
  return translateScalarOp(op, operands,
                           !isAccumulation(*op) || madeOfKnown.contains(op) || op->hasAttr(mlir::kiln::strictAttrName));
}

/// Returns the f16 or bf16 that is widened only to be rounded again; null for another op.
static Value movedHalf(Operation &op) {
  auto rounded = dyn_cast<arith::TruncFOp>(op);
  auto widened = rounded ? rounded.getIn().getDefiningOp<arith::ExtFOp>() : arith::ExtFOp();
  return widened && widened.getIn().getType() == rounded.getType() ? widened.getIn() : Value();
}

/// Returns the value of a scalar that is defined outside of regions.
Expr Translator::scalar(Value value) {
  if (Expr known = scalars.lookup(value); known.defined())
    return known;
  Operation *op = value.getDefiningOp();
  if (!op)
    return Expr();
  Exprs operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(scalar(operand));
    if (!operands.back().defined())
      return Expr();
  }
  Expr result;
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    AffineMap map = apply.getAffineMap();
    auto firstSymbol = operands.begin() + map.getNumDims();
    result = affine(map.getResult(0), {operands.begin(), firstSymbol}, {firstSymbol, operands.end()});
  } else {
    result = translateScalar(op, operands);
  }
  return scalars[value] = result;
}

Exprs Translator::loopVariables(linalg::GenericOp op, const Halide::RDom &domain) {
  Exprs loops(op.getNumLoops());
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (unsigned i = 0; i < map.getNumResults(); ++i)
    if (auto dim = dyn_cast<AffineDimExpr>(map.getResult(i)))
      loops[dim.getPosition()] = dimensionVar(map.getNumResults() - 1 - i);
  int next = domain.defined() ? domain.dimensions() : 0;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      loops[loop] = domain[--next];
  return loops;
}

Exprs Translator::body(linalg::GenericOp op, const Exprs &loops, Operands operands) {
  return evaluate(op, op.getBlock()->getTerminator()->getOperands(), loops, operands);
}

Exprs Translator::evaluate(linalg::GenericOp op, ValueRange wanted, const Exprs &loops, Operands operands) {
  llvm::DenseMap<Value, Expr> local;
  auto lookup = [&](Value value) {
    Expr known = local.lookup(value);
    return known.defined() ? known : scalar(value);
  };
  Block *block = op.getBlock();
  for (BlockArgument argument : block->getArguments())
    if (!argument.use_empty())
      local[argument] = operands(argument.getArgNumber());
  for (Operation &inner : block->without_terminator()) {
    Exprs values;
    unsigned scalarOperands = isa<tensor::ExtractOp>(inner) ? 1 : 0;
    for (Value value : llvm::drop_begin(inner.getOperands(), scalarOperands)) {
      values.push_back(lookup(value));
      if (!values.back().defined()) {
        inner.emitError() << "the halide target cannot translate operand " << values.size() - 1 + scalarOperands
                          << " of op '" << inner.getName() << "'";
        return {};
      }
    }
    Expr result;
    if (auto index = dyn_cast<linalg::IndexOp>(inner))
      result = loops[index.getDim()];
    else if (Value moved = movedHalf(inner); moved && !lookup(moved).type().is_float())
      result = lookup(moved);
    else if (auto extract = dyn_cast<tensor::ExtractOp>(inner))
      result = translateExtract(extract, values);
    else if (isa<arith::SelectOp>(inner) && padded.count(op))
      // Full tiles are computed: the condition, hidden from Halide, must not narrow the region that is required of the
      // operands.
      result = choose(Halide::cast<uint8_t>(values[0]) != 0, values[1], values[2]);
    else
      result = translateScalar(&inner, values);
    if (!result.defined()) {
      inner.emitError() << "the halide target has no translation for op '" << inner.getName() << "'";
      return {};
    }
    local[inner.getResult(0)] = result;
  }
  Exprs results;
  for (Value value : wanted) {
    results.push_back(lookup(value));
    if (!results.back().defined()) {
      op.emitError() << "the halide target cannot translate a value of op '" << op.getOperationName() << "'";
      return {};
    }
  }
  return results;
}

//===- Ops ---------------------------------------------------------------===//

LogicalResult Translator::translate(linalg::FillOp op) {
  Expr value = scalar(op.getInputs().front());
  if (!value.defined())
    return op.emitError() << "the halide target cannot translate the value of op 'linalg.fill'";
  Halide::Func func(name("fill"));
  func(dimensionVars(cast<RankedTensorType>(op.getResult(0).getType()).getRank())) = value;
  sources[op.getResult(0)] = {func};
  return success();
}

LogicalResult Translator::translate(linalg::GenericOp op) {
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (!loopExtent(op, loop).defined())
      return op.emitError()
             << "op 'linalg.generic': loop without an operand; expected one whose dimension has the size of loop "
             << loop;
  for (OpOperand &init : op.getDpsInitsMutable())
    if (!op.getMatchingIndexingMap(&init).isProjectedPermutation())
      return op.emitError() << "op 'linalg.generic': unsupported indexing map; expected outputs indexed by its loops";
  for (OpOperand &operand : op->getOpOperands())
    if (!op.getMatchingBlockArgument(&operand).use_empty() && !sources.count(operand.get()))
      return op.emitError()
             << "op 'linalg.generic': operand is not initialised; expected initialised ones, got operand "
             << operand.getOperandNumber();
  if (auto found = builders.find(op); found != builders.end()) {
    Halide::Func func = found->second(op);
    if (!func.defined())
      return failure();
    sources[op.getResult(0)] = {func};
    stages[op] = {op, {func}, {}, true};
    return success();
  }
  return op.getNumReductionLoops() ? translateReduction(op) : translateParallel(op);
}

LogicalResult Translator::translateParallel(linalg::GenericOp op) {
  // Each result has a separate Func: outputs with different orders of dimensions have different variables.
  std::vector<Halide::Func> funcs;
  for (unsigned result = 0; result < op.getNumResults(); ++result) {
    OpOperand *init = op.getDpsInitOperand(result);
    AffineMap map = op.getMatchingIndexingMap(init);
    if (map.getNumResults() != op.getNumLoops())
      return op.emitError() << "op 'linalg.generic' without reduction loops: unsupported indexing map; expected every "
                               "loop to index outputs";
    Exprs loops(op.getNumLoops());
    for (unsigned i = 0; i < map.getNumResults(); ++i)
      loops[map.getDimPosition(i)] = dimensionVar(map.getNumResults() - 1 - i);
    Exprs values = body(op, loops, [&](unsigned number) { return readOperand(op, number, loops); });
    if (values.empty())
      return failure();
    Halide::Func func(name("stage" + std::to_string(stages.size())));
    func(dimensionVars(map.getNumResults())) = values[result];
    sources[op.getResult(result)] = {func};
    funcs.push_back(func);
  }
  stages[op] = {op, funcs, {}, false};
  return success();
}

Expr overDomain(const Halide::RDom &domain, const Expr &value) {
  for (int i = 0; i < domain.dimensions(); ++i)
    if (Halide::Internal::expr_uses_var(value, domain[i].name()))
      return value;
  return Halide::Internal::Select::make(domain[0] >= 0, value, value);
}

LogicalResult Translator::translateReduction(linalg::GenericOp op) {
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (OpOperand &init : op.getDpsInitsMutable())
    if (op.getMatchingIndexingMap(&init) != map)
      return op.emitError()
             << "op 'linalg.generic' with reduction loops: several indexing maps; expected outputs of one";
  Halide::Region region;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      region.insert(region.begin(), {0, loopExtent(op, loop)});
  Halide::RDom domain(region, name("r" + std::to_string(stages.size())));
  Exprs loops = loopVariables(op, domain);

  Halide::Func func(name("stage" + std::to_string(stages.size())));
  std::vector<Var> vars = dimensionVars(map.getNumResults());
  Exprs indices(vars.begin(), vars.end()), initial;
  for (Value init : op.getDpsInits()) {
    if (!sources.count(init))
      return op.emitError()
             << "op 'linalg.generic' with reduction loops: output is not initialised; expected initialised ones";
    initial.push_back(read(init, reversed(indices)));
  }
  unsigned inputs = op.getNumDpsInputs();
  bool isTuple = initial.size() > 1;
  if (isTuple)
    func(vars) = Halide::Tuple(initial);
  else
    func(vars) = initial[0];
  Exprs values = body(op, loops, [&](unsigned number) -> Expr {
    if (number < inputs)
      return readOperand(op, number, loops);
    return isTuple ? Expr(func(indices)[number - inputs]) : Expr(func(indices));
  });
  if (values.empty())
    return failure();
  values[0] = overDomain(domain, values[0]);
  if (isTuple)
    func(indices) = Halide::Tuple(values);
  else
    func(indices) = values[0];
  for (auto [i, result] : llvm::enumerate(op.getResults()))
    sources[result] = {func, isTuple ? int(i) : -1};
  stages[op] = {op, {func}, domain, true};
  return success();
}

LogicalResult Translator::translateOutputs(func::ReturnOp op) {
  for (unsigned first = 0, next; first < op.getNumOperands(); first = next) {
    auto type = dyn_cast<RankedTensorType>(op.getOperand(first).getType());
    if (!type || elementType(type.getElementType()).is_handle())
      return op.emitError() << "the halide target has no result of type " << op.getOperand(first).getType();
    Output output;
    output.extents = reversed(extents(type));
    SmallVector<AffineExpr> extentsOfType = mlir::kiln::getExtents(type); // named, so that it outlives the loop
    for (AffineExpr extent : llvm::reverse(extentsOfType))
      output.bounds.push_back(largestValue(extent, kernel));
    std::vector<Var> vars = dimensionVars(type.getRank());
    Exprs values, indices(vars.begin(), vars.end());
    for (next = first; next < op.getNumOperands(); ++next) {
      auto other = dyn_cast<RankedTensorType>(op.getOperand(next).getType());
      if (!other || other.getShape() != type.getShape() || other.getEncoding() != type.getEncoding())
        break;
      if (!sources.count(op.getOperand(next)))
        return op.emitError() << "kernel function: result is not computed; expected results of linalg ops, got result "
                              << next;
      Expr value = read(op.getOperand(next), reversed(indices));
      values.push_back(value.type().is_bool() ? Halide::cast<uint8_t>(value) : value);
      output.results.push_back(next);
    }
    output.func = Halide::Func(name("out" + std::to_string(first)));
    if (values.size() > 1)
      output.func(vars) = Halide::Tuple(values);
    else
      output.func(vars) = values[0];
    setDense(output.func.output_buffers(), output.extents);
    for (unsigned i = 0; i < output.extents.size(); ++i)
      output.func.bound(vars[i], 0, output.extents[i]);
    outputs.push_back(std::move(output));
  }
  if (outputs.empty())
    return op.emitError() << "kernel function: no results; expected at least one";
  return success();
}

} // namespace kiln::halide
