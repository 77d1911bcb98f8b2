// SPDX-License-Identifier: Apache-2.0
//
// The structure of a kernel is written by a custom printer instead of MLIR's:
// 1. Dimensions that a linalg map states to be equal are one size, which is erased once. A square matrix thus has the
// same structure as a rectangular one, and the shape is a short list.
// 2. Constants are printed where they are used, and so are empty and filled tensors: which of them are one SSA value
// depends on sizes that happen to be equal.
// 3. Of MLIR's syntax only the names of ops and attributes are used.
#include "compiler/kernel/KernelKey.h"

#include "compiler/dialect/KilnDialect.h"
#include "compiler/kernel/Attention.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;

namespace kiln {

namespace {

/// Attributes of a kernel that do not affect what it computes; bounds do, but are a separate part of a key.
constexpr StringRef incidental[] = {mlir::kiln::scopesAttrName, mlir::kiln::structureAttrName,
                                    mlir::kiln::shapeAttrName};

/// Whether the value is printed where it is used, and has no number.
bool isInline(Value value) {
  Operation *op = value.getDefiningOp();
  return isa_and_nonnull<arith::ConstantOp, tensor::EmptyOp, linalg::FillOp>(op);
}

RankedTensorType asTensor(Type type) { return dyn_cast<RankedTensorType>(type); }

class StructurePrinter {
public:
  explicit StructurePrinter(func::FuncOp kernel) : kernel(kernel), out(text) {}

  void run() {
    uniteExtents();
    print("kernel");
    printArguments(kernel.getBody().front());
    for (NamedAttribute attribute : kernel->getDiscardableAttrs())
      if (attribute.getName() != mlir::kiln::boundsAttrName && !llvm::is_contained(incidental, attribute.getName()))
        printAttribute(attribute);
    printBlock(kernel.getBody().front());
  }

  std::string text;
  std::vector<int64_t> shape;

private:
  // Dimensions: a number for each dimension of each tensor and each loop, united where they are equal.

  unsigned addNodes(unsigned count) {
    unsigned first = numNodes;
    numNodes += count;
    return first;
  }

  unsigned nodesOf(const void *of, Type type) {
    auto [entry, isNew] = nodes.try_emplace(of, 0u);
    if (isNew)
      entry->second = addNodes(asTensor(type).getRank());
    return entry->second;
  }
  unsigned nodesOf(Value value) { return nodesOf(value.getAsOpaquePointer(), value.getType()); }
  /// Returns the first dimension of an operand; an inline value has separate dimensions at each use.
  unsigned nodesOf(OpOperand &use) {
    return isInline(use.get()) ? nodesOf(&use, use.get().getType()) : nodesOf(use.get());
  }

  void uniteExtents() {
    std::vector<std::pair<unsigned, unsigned>> equal;
    kernel.walk([&](linalg::GenericOp op) {
      unsigned loops = addNodes(op.getNumLoops());
      auto unite = [&](AffineMap map, unsigned first) {
        for (auto [i, result] : llvm::enumerate(map.getResults()))
          if (auto dim = dyn_cast<AffineDimExpr>(result))
            equal.emplace_back(first + i, loops + dim.getPosition());
      };
      for (OpOperand &operand : op->getOpOperands())
        if (asTensor(operand.get().getType()))
          unite(op.getMatchingIndexingMap(&operand), nodesOf(operand));
      for (OpResult result : op->getResults())
        unite(op.getIndexingMapMatchingResult(result), nodesOf(result));
    });
    kernel.walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands())
        if (asTensor(operand.get().getType()))
          nodesOf(operand);
      for (OpResult result : op->getResults())
        if (asTensor(result.getType()))
          nodesOf(result);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            if (asTensor(argument.getType()))
              nodesOf(argument);
    });
    for (BlockArgument argument : kernel.getArguments())
      if (asTensor(argument.getType()))
        nodesOf(argument);
    classes.grow(numNodes);
    for (auto [a, b] : equal)
      classes.join(a, b);
    isPrinted.assign(numNodes, false);
  }

  // Text.

  template <typename... Parts> void print(const Parts &...parts) { ((out << parts), ...); }

  void erase(int64_t number) {
    print("_");
    shape.push_back(number);
  }

  /// Prints 0, which means that nothing is added; erases any other number.
  void printNumber(int64_t number) {
    if (number == 0)
      print("0");
    else
      erase(number);
  }

  void printExpression(AffineExpr expression) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expression))
      return printNumber(constant.getValue());
    if (auto dim = dyn_cast<AffineDimExpr>(expression))
      return print("d", dim.getPosition());
    if (auto symbol = dyn_cast<AffineSymbolExpr>(expression))
      return print("s", symbol.getPosition());
    auto binary = cast<AffineBinaryOpExpr>(expression);
    print("(");
    printExpression(binary.getLHS());
    switch (binary.getKind()) {
    case AffineExprKind::Add:
      print("+");
      break;
    case AffineExprKind::Mul:
      print("*");
      break;
    case AffineExprKind::Mod:
      print("mod");
      break;
    case AffineExprKind::FloorDiv:
      print("/");
      break;
    default:
      print("ceil/");
    }
    printExpression(binary.getRHS());
    print(")");
  }

  void printTensor(RankedTensorType type, unsigned node) {
    auto extents = dyn_cast_or_null<AffineMapAttr>(type.getEncoding());
    print("<");
    for (int64_t i = 0; i < type.getRank(); ++i, ++node) {
      bool isNew = !isPrinted[classes.findLeader(node)];
      isPrinted[classes.findLeader(node)] = true;
      if (!type.isDynamicDim(i)) {
        print("_");
        if (isNew)
          shape.push_back(type.getDimSize(i));
      } else if (isNew && extents)
        printExpression(extents.getValue().getResult(i));
      else
        print("?");
      print("x");
    }
    print(type.getElementType());
    if (type.getEncoding() && !extents)
      print(" ", type.getEncoding());
    print(">");
  }

  void printConstant(TypedAttr value) {
    if (isa<FloatAttr>(value))
      print("f");
    else if (auto integer = dyn_cast<IntegerAttr>(value); integer && isa<IndexType>(integer.getType()))
      printNumber(integer.getInt());
    else if (integer)
      print(integer.getValue().getSExtValue());
    else
      print("dense");
    print(":", isa<ShapedType>(value.getType()) ? cast<ShapedType>(value.getType()).getElementType() : value.getType());
  }

  void printOperand(OpOperand &use) {
    print(" ");
    Value value = use.get();
    Operation *op = isInline(value) ? value.getDefiningOp() : nullptr;
    if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op))
      printConstant(constant.getValue());
    else if (op)
      print(isa<linalg::FillOp>(op) ? "filled" : "empty");
    else
      print("%", numbers.at(value));
    if (op && asTensor(value.getType()))
      printTensor(asTensor(value.getType()), nodesOf(use));
  }

  void printAttribute(NamedAttribute attribute) {
    print(" ", attribute.getName().strref(), "=");
    printAttribute(attribute.getValue());
  }
  void printAttribute(Attribute attribute) {
    llvm::TypeSwitch<Attribute>(attribute)
        .Case([&](AffineMapAttr map) {
          print("(");
          for (AffineExpr result : map.getValue().getResults()) {
            printExpression(result);
            print(",");
          }
          print(")");
        })
        .Case([&](ArrayAttr array) {
          print("[");
          for (Attribute element : array) {
            printAttribute(element);
            print(",");
          }
          print("]");
        })
        .Default([&](Attribute other) { print(other); });
  }

  void define(Value value) {
    numbers.try_emplace(value, numbers.size());
    if (RankedTensorType type = asTensor(value.getType()))
      printTensor(type, nodesOf(value));
    else
      print(" ", value.getType());
  }

  void printArguments(Block &block) {
    print("(");
    for (BlockArgument argument : block.getArguments())
      define(argument);
    print(")");
  }

  void printBlock(Block &block) {
    print("{\n");
    for (Operation &op : block) {
      if (op.getNumResults() == 1 && isInline(op.getResult(0)))
        continue;
      print(op.getName().getStringRef());
      for (NamedAttribute attribute : op.getAttrDictionary())
        printAttribute(attribute);
      for (OpOperand &operand : op.getOpOperands())
        printOperand(operand);
      print(" ->");
      for (OpResult result : op.getResults())
        define(result);
      for (Region &region : op.getRegions())
        for (Block &inner : region) {
          printArguments(inner);
          printBlock(inner);
        }
      print("\n");
    }
    print("}");
  }

  func::FuncOp kernel;
  llvm::raw_string_ostream out;
  DenseMap<Value, unsigned> numbers;
  DenseMap<const void *, unsigned> nodes; // by value, or by use
  llvm::IntEqClasses classes;
  std::vector<bool> isPrinted; // by the leader of a class
  unsigned numNodes = 0;
};

} // namespace

std::string hashText(llvm::StringRef text, unsigned digits) {
  std::array<uint8_t, 32> hash = llvm::SHA256::hash(llvm::arrayRefFromStringRef(text));
  return llvm::toHex(hash, /*LowerCase=*/true).substr(0, digits);
}

std::string structureText(func::FuncOp kernel) {
  const DecomposedKernel decomposed(kernel);
  StructurePrinter printer(decomposed.get());
  printer.run();
  return printer.text;
}

KernelKey keyOf(func::FuncOp function) {
  const DecomposedKernel decomposed(function);
  func::FuncOp kernel = decomposed.get();
  KernelKey key;
  auto structure = kernel->getAttrOfType<StringAttr>(mlir::kiln::structureAttrName);
  auto shape = kernel->getAttrOfType<DenseI64ArrayAttr>(mlir::kiln::shapeAttrName);
  if (structure && shape) {
    key.structure = structure.str();
    key.shape = shape.asArrayRef().vec();
  } else {
    StructurePrinter printer(kernel);
    printer.run();
    key.structure = hashText(printer.text, 16);
    key.shape = std::move(printer.shape);
  }
  if (auto bounds = kernel->getAttrOfType<DenseI64ArrayAttr>(mlir::kiln::boundsAttrName))
    for (int64_t i = 0; i + 1 < bounds.size(); i += 2)
      key.bounds.push_back({bounds[i], bounds[i + 1]});

  OwningOpRef<func::FuncOp> copy(kernel.clone());
  copy->setName("kernel");
  copy->setPrivate();
  for (StringRef name : incidental)
    copy.get()->removeAttr(name);
  std::string whole;
  llvm::raw_string_ostream stream(whole);
  copy->print(stream, OpPrintingFlags().useLocalScope().enableDebugInfo(false));
  key.content = hashText(whole, 32);
  return key;
}

void recordKey(func::FuncOp kernel) {
  const KernelKey key = keyOf(kernel);
  Builder builder(kernel.getContext());
  kernel->setAttr(mlir::kiln::structureAttrName, builder.getStringAttr(key.structure));
  kernel->setAttr(mlir::kiln::shapeAttrName, builder.getDenseI64ArrayAttr(key.shape));
}

std::string toString(const std::vector<int64_t> &shape) {
  if (shape.empty())
    return "-";
  return llvm::join(llvm::map_range(shape, [](int64_t extent) { return std::to_string(extent); }), "x");
}

std::string toString(const std::vector<Bounds> &bounds) {
  if (bounds.empty())
    return "-";
  return llvm::join(llvm::map_range(bounds, [](Bounds b) { return llvm::formatv("{0}..{1}", b.min, b.max).str(); }),
                    ",");
}

} // namespace kiln
