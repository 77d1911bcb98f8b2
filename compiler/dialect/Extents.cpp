// SPDX-License-Identifier: Apache-2.0
//
// Represents extents as polynomials: a map from sorted products of symbols to coefficients. The map's order is the
// canonical one.
#include "compiler/dialect/Extents.h"

#include <cstring>
#include <map>
#include <vector>

#include "compiler/dialect/KilnDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include "kiln/text.h"

namespace mlir::kiln {
namespace {

using Product = std::vector<unsigned>; // symbol positions, sorted
using Polynomial = std::map<Product, int64_t>;

/// Returns nullopt for an expression that is no polynomial or whose coefficients do not fit 64 bits.
std::optional<Polynomial> toPolynomial(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    Polynomial result;
    if (constant.getValue() != 0)
      result[{}] = constant.getValue();
    return result;
  }
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return Polynomial{{{symbol.getPosition()}, 1}};
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary || (expr.getKind() != AffineExprKind::Add && expr.getKind() != AffineExprKind::Mul))
    return std::nullopt;
  auto lhs = toPolynomial(binary.getLHS()), rhs = toPolynomial(binary.getRHS());
  if (!lhs || !rhs)
    return std::nullopt;

  Polynomial result;
  bool overflow = false;
  auto accumulate = [&](const Product &product, int64_t factor) {
    int64_t &sum = result[product];
    overflow |= llvm::AddOverflow(sum, factor, sum);
    if (sum == 0)
      result.erase(product);
  };
  if (expr.getKind() == AffineExprKind::Add) {
    result = *lhs;
    for (const auto &[product, factor] : *rhs)
      accumulate(product, factor);
  } else {
    for (const auto &[left, leftFactor] : *lhs)
      for (const auto &[right, rightFactor] : *rhs) {
        Product product(left);
        product.insert(product.end(), right.begin(), right.end());
        std::sort(product.begin(), product.end());
        int64_t factor;
        overflow |= llvm::MulOverflow(leftFactor, rightFactor, factor);
        accumulate(product, factor);
      }
  }
  if (overflow)
    return std::nullopt;
  return result;
}

/// Builds the canonical expression: symbols first, the constant last.
AffineExpr toExpr(const Polynomial &polynomial, MLIRContext *context) {
  AffineExpr sum;
  for (auto term = polynomial.rbegin(); term != polynomial.rend(); ++term) {
    AffineExpr product;
    for (unsigned position : term->first) {
      AffineExpr symbol = getAffineSymbolExpr(position, context);
      product = product ? product * symbol : symbol;
    }
    product = product ? product * term->second : getAffineConstantExpr(term->second, context);
    sum = sum ? sum + product : product;
  }
  return sum ? sum : getAffineConstantExpr(0, context);
}

AffineMapAttr getExtentsMap(RankedTensorType type) { return dyn_cast_or_null<AffineMapAttr>(type.getEncoding()); }

std::optional<Interval> multiply(Interval a, Interval b) {
  int64_t products[4];
  if (llvm::MulOverflow(a.min, b.min, products[0]) || llvm::MulOverflow(a.min, b.max, products[1]) ||
      llvm::MulOverflow(a.max, b.min, products[2]) || llvm::MulOverflow(a.max, b.max, products[3]))
    return std::nullopt;
  return Interval{*std::min_element(products, products + 4), *std::max_element(products, products + 4)};
}

} // namespace

bool hasExtents(RankedTensorType type) {
  if (type.hasStaticShape())
    return true;
  AffineMapAttr map = getExtentsMap(type);
  return map && map.getAffineMap().getNumDims() == 0 &&
         map.getAffineMap().getNumResults() == static_cast<unsigned>(type.getRank());
}

SmallVector<AffineExpr> getExtents(RankedTensorType type) {
  assert(hasExtents(type) && "a run-time extent without an extents map");
  SmallVector<AffineExpr> extents;
  for (int64_t i = 0; i < type.getRank(); ++i)
    extents.push_back(type.isDynamicDim(i) ? canonicalExtent(getExtentsMap(type).getAffineMap().getResult(i))
                                           : getAffineConstantExpr(type.getDimSize(i), type.getContext()));
  return extents;
}

unsigned getNumSymbols(TypeRange types) {
  unsigned result = 0;
  for (Type type : types)
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      if (AffineMapAttr map = getExtentsMap(tensor))
        result = std::max(result, map.getAffineMap().getNumSymbols());
  return result;
}

RankedTensorType getTensorType(ArrayRef<AffineExpr> extents, Type element, unsigned numSymbols) {
  MLIRContext *context = element.getContext();
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> results;
  bool fixed = true;
  for (AffineExpr extent : extents) {
    results.push_back(canonicalExtent(extent));
    auto constant = dyn_cast<AffineConstantExpr>(results.back());
    shape.push_back(constant ? constant.getValue() : ShapedType::kDynamic);
    fixed &= bool(constant);
  }
  Attribute encoding;
  if (!fixed)
    encoding = AffineMapAttr::get(AffineMap::get(0, numSymbols, results, context));
  return RankedTensorType::get(shape, element, encoding);
}

AffineExpr canonicalExtent(AffineExpr extent) {
  std::optional<Polynomial> polynomial = toPolynomial(extent);
  return polynomial ? toExpr(*polynomial, extent.getContext()) : extent;
}

AffineExpr getProduct(ArrayRef<AffineExpr> extents, MLIRContext *context) {
  AffineExpr product = getAffineConstantExpr(1, context);
  for (AffineExpr extent : extents)
    product = canonicalExtent(product * extent);
  return product;
}

std::optional<Interval> getBounds(AffineExpr extent, ArrayRef<Interval> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(extent))
    return Interval{constant.getValue(), constant.getValue()};
  if (auto symbol = dyn_cast<AffineSymbolExpr>(extent)) {
    if (symbol.getPosition() >= symbols.size())
      return std::nullopt;
    return symbols[symbol.getPosition()];
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(extent);
  if (!binary)
    return std::nullopt;
  auto lhs = getBounds(binary.getLHS(), symbols), rhs = getBounds(binary.getRHS(), symbols);
  if (!lhs || !rhs)
    return std::nullopt;
  Interval result;
  switch (extent.getKind()) {
  case AffineExprKind::Add:
    if (llvm::AddOverflow(lhs->min, rhs->min, result.min) || llvm::AddOverflow(lhs->max, rhs->max, result.max))
      return std::nullopt;
    return result;
  case AffineExprKind::Mul:
    return multiply(*lhs, *rhs);
  default:
    break;
  }
  if (rhs->min != rhs->max || rhs->min <= 0)
    return std::nullopt;
  int64_t divisor = rhs->min;
  switch (extent.getKind()) {
  case AffineExprKind::FloorDiv:
    return Interval{llvm::divideFloorSigned(lhs->min, divisor), llvm::divideFloorSigned(lhs->max, divisor)};
  case AffineExprKind::CeilDiv:
    return Interval{llvm::divideCeilSigned(lhs->min, divisor), llvm::divideCeilSigned(lhs->max, divisor)};
  case AffineExprKind::Mod:
    return Interval{0, divisor - 1};
  default:
    return std::nullopt;
  }
}

/// Returns the kernel function that the op is or that contains it, or null.
static Operation *getKernel(Operation *op) {
  Operation *function = isa<FunctionOpInterface>(op) ? op : op->getParentOfType<FunctionOpInterface>().getOperation();
  return function && function->hasAttr(kernelAttrName) ? function : nullptr;
}

SmallVector<SymbolAttr> getSymbols(Operation *op) {
  SmallVector<SymbolAttr> result;
  if (getKernel(op))
    return result;
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  if (module)
    if (auto symbols = module->getAttrOfType<ArrayAttr>(symbolsAttrName))
      for (Attribute symbol : symbols)
        if (auto attr = dyn_cast<SymbolAttr>(symbol))
          result.push_back(attr);
  return result;
}

SmallVector<Interval> getSymbolBounds(Operation *op) {
  SmallVector<Interval> result;
  if (Operation *kernel = getKernel(op)) {
    if (auto bounds = kernel->getAttrOfType<DenseI64ArrayAttr>(boundsAttrName))
      for (int64_t i = 0; i + 1 < bounds.size(); i += 2)
        result.push_back({bounds[i], bounds[i + 1]});
    return result;
  }
  for (SymbolAttr symbol : getSymbols(op))
    result.push_back({symbol.getMin(), symbol.getMax()});
  return result;
}

AffineExpr fromDim(const ::kiln::Dim &dim, ArrayRef<SymbolAttr> symbols, MLIRContext *context) {
  AffineExpr product = getAffineConstantExpr(dim.factor, context);
  for (const ::kiln::Symbol &symbol : dim.symbols) {
    if (dim.fixed() || !symbol.present())
      continue;
    const SymbolAttr *found = llvm::find_if(symbols, [&](SymbolAttr attr) { return attr.getName() == symbol.name; });
    if (found == symbols.end())
      return {};
    product = product * getAffineSymbolExpr(found - symbols.begin(), context);
  }
  return canonicalExtent(product + dim.offset);
}

std::optional<::kiln::Dim> toDim(AffineExpr extent, ArrayRef<SymbolAttr> symbols) {
  std::optional<Polynomial> polynomial = toPolynomial(extent);
  if (!polynomial)
    return std::nullopt;
  ::kiln::Dim dim(0);
  for (const auto &[product, factor] : *polynomial) {
    if (product.empty()) {
      dim.offset = factor;
      continue;
    }
    if (dim.factor != 0 || product.size() > 2)
      return std::nullopt;
    dim.factor = factor;
    for (size_t i = 0; i < product.size(); ++i) {
      if (product[i] >= symbols.size() || symbols[product[i]].getName().size() >= ::kiln::Symbol::capacity ||
          symbols[product[i]].getLeast().size() >= ::kiln::Symbol::capacity)
        return std::nullopt;
      SymbolAttr symbol = symbols[product[i]];
      llvm::copy(symbol.getName(), dim.symbols[i].name);
      llvm::copy(symbol.getLeast(), dim.symbols[i].least);
      dim.symbols[i].min = symbol.getMin();
      dim.symbols[i].max = symbol.getMax();
    }
    if (product.size() == 2 && std::strcmp(dim.symbols[0].name, dim.symbols[1].name) > 0)
      std::swap(dim.symbols[0], dim.symbols[1]);
  }
  const SmallVector<Interval> bounds =
      llvm::map_to_vector(symbols, [](SymbolAttr symbol) { return Interval{symbol.getMin(), symbol.getMax()}; });
  std::optional<Interval> range = getBounds(toExpr(*polynomial, extent.getContext()), bounds);
  if (!range || range->min < -::kiln::Dim::largest || range->max > ::kiln::Dim::largest)
    return std::nullopt; // not representable as a Dim
  return dim;
}

std::string describeExtent(AffineExpr extent, ArrayRef<SymbolAttr> symbols) {
  if (std::optional<::kiln::Dim> dim = toDim(extent, symbols))
    return ::kiln::Text().put(*dim).data();
  std::string text;
  llvm::raw_string_ostream(text) << extent;
  return text;
}

} // namespace mlir::kiln
