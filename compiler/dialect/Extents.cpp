// SPDX-License-Identifier: Apache-2.0
//
// Represents extents as polynomials: a map from sorted products of symbols to coefficients. The map's order is the
// canonical one.
#include "compiler/dialect/Extents.h"

#include <map>
#include <vector>

#include "compiler/dialect/AffineEval.h"
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

/// Polynomials; nullopt for an expression that is none, or whose coefficients do not fit 64 bits.
struct PolynomialArithmetic {
  using Value = std::optional<Polynomial>;

  Value constant(int64_t number) const {
    Polynomial result;
    if (number != 0)
      result[{}] = number;
    return result;
  }
  Value dim(unsigned) const { return std::nullopt; }
  Value symbol(unsigned position) const { return Polynomial{{{position}, 1}}; }
  Value add(const Value &a, const Value &b) const {
    if (!a || !b)
      return std::nullopt;
    Polynomial sum = *a;
    bool fits = true;
    for (const auto &[product, factor] : *b)
      fits &= accumulate(sum, product, factor);
    return fits ? Value(sum) : std::nullopt;
  }
  Value multiply(const Value &a, const Value &b) const {
    if (!a || !b)
      return std::nullopt;
    Polynomial result;
    bool fits = true;
    for (const auto &[left, leftFactor] : *a)
      for (const auto &[right, rightFactor] : *b) {
        Product product(left);
        product.insert(product.end(), right.begin(), right.end());
        std::sort(product.begin(), product.end());
        int64_t factor;
        fits &= !llvm::MulOverflow(leftFactor, rightFactor, factor);
        fits &= accumulate(result, product, factor);
      }
    return fits ? Value(result) : std::nullopt;
  }
  Value floorDivide(const Value &, const Value &) const { return std::nullopt; }
  Value ceilDivide(const Value &, const Value &) const { return std::nullopt; }
  Value modulo(const Value &, const Value &) const { return std::nullopt; }

private:
  /// Returns false if the coefficient overflows.
  static bool accumulate(Polynomial &polynomial, const Product &product, int64_t factor) {
    int64_t &sum = polynomial[product];
    const bool fits = !llvm::AddOverflow(sum, factor, sum);
    if (sum == 0)
      polynomial.erase(product);
    return fits;
  }
};

std::optional<Polynomial> toPolynomial(AffineExpr expr) { return evaluateAffine(expr, PolynomialArithmetic()); }

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

/// Bounds; nullopt if a symbol has none or the result does not fit 64 bits.
struct IntervalArithmetic {
  using Value = std::optional<Interval>;
  ArrayRef<Interval> symbols;

  Value constant(int64_t number) const { return Interval{number, number}; }
  Value dim(unsigned) const { return std::nullopt; }
  Value symbol(unsigned position) const { return position < symbols.size() ? Value(symbols[position]) : std::nullopt; }
  Value add(Value a, Value b) const {
    Interval sum;
    if (!a || !b || llvm::AddOverflow(a->min, b->min, sum.min) || llvm::AddOverflow(a->max, b->max, sum.max))
      return std::nullopt;
    return sum;
  }
  Value multiply(Value a, Value b) const {
    int64_t products[4];
    if (!a || !b || llvm::MulOverflow(a->min, b->min, products[0]) || llvm::MulOverflow(a->min, b->max, products[1]) ||
        llvm::MulOverflow(a->max, b->min, products[2]) || llvm::MulOverflow(a->max, b->max, products[3]))
      return std::nullopt;
    return Interval{*std::min_element(products, products + 4), *std::max_element(products, products + 4)};
  }
  Value floorDivide(Value a, Value b) const {
    if (!a || !isDivisor(b))
      return std::nullopt;
    return Interval{llvm::divideFloorSigned(a->min, b->min), llvm::divideFloorSigned(a->max, b->min)};
  }
  Value ceilDivide(Value a, Value b) const {
    if (!a || !isDivisor(b))
      return std::nullopt;
    return Interval{llvm::divideCeilSigned(a->min, b->min), llvm::divideCeilSigned(a->max, b->min)};
  }
  Value modulo(Value a, Value b) const { return a && isDivisor(b) ? Value(Interval{0, b->min - 1}) : std::nullopt; }

private:
  static bool isDivisor(Value value) { return value && value->min == value->max && value->min > 0; }
};

} // namespace

bool hasExtents(RankedTensorType type) {
  if (type.hasStaticShape())
    return true;
  AffineMapAttr map = getExtentsMap(type);
  return map && map.getAffineMap().getNumDims() == 0 &&
         map.getAffineMap().getNumResults() == static_cast<unsigned>(type.getRank());
}

SmallVector<AffineExpr> getExtents(RankedTensorType type) {
  assert(hasExtents(type) && "a dynamic extent without an extents map");
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
  return evaluateAffine(extent, IntervalArithmetic{symbols});
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
  AffineExpr sum = getAffineConstantExpr(dim.offset, context);
  for (int i = 0; i < dim.terms(); ++i) {
    AffineExpr product = getAffineConstantExpr(i == 0 ? dim.factor : dim.second, context);
    for (const ::kiln::Symbol &symbol : ArrayRef(dim.symbols).slice(2 * i, 2)) {
      if (!symbol.present())
        continue;
      const SymbolAttr *found = llvm::find_if(symbols, [&](SymbolAttr attr) { return attr.getName() == symbol.name; });
      if (found == symbols.end())
        return {};
      product = product * getAffineSymbolExpr(found - symbols.begin(), context);
    }
    sum = sum + product;
  }
  return canonicalExtent(sum);
}

/// Returns a named dimension; nullopt if the symbol's names are too long or its bounds too large.
static std::optional<::kiln::Dim> toDim(SymbolAttr symbol) {
  if (symbol.getName().size() >= ::kiln::Symbol::capacity || symbol.getLeast().size() >= ::kiln::Symbol::capacity ||
      symbol.getMax() > ::kiln::Dim::largest || symbol.getMin() < -::kiln::Dim::largest)
    return std::nullopt;
  ::kiln::Dim dim;
  dim.factor = 1;
  llvm::copy(symbol.getName(), dim.symbols[0].name);
  llvm::copy(symbol.getLeast(), dim.symbols[0].least);
  dim.symbols[0].min = symbol.getMin();
  dim.symbols[0].max = symbol.getMax();
  return dim;
}

std::optional<::kiln::Dim> toDim(AffineExpr extent, ArrayRef<SymbolAttr> symbols) {
  std::optional<Polynomial> polynomial = toPolynomial(extent);
  if (!polynomial)
    return std::nullopt;
  ::kiln::Dim sum(0), offset(0);
  for (const auto &[product, factor] : *polynomial) {
    ::kiln::Dim term(factor);
    for (unsigned position : product) {
      std::optional<::kiln::Dim> symbol = position < symbols.size() ? toDim(symbols[position]) : std::nullopt;
      if (!symbol)
        return std::nullopt;
      term = term * *symbol;
    }
    if (product.empty())
      offset = term;
    else
      sum = sum + term;
  }
  sum = sum + offset;
  return sum.flaw == ::kiln::Flaw::none ? std::optional(sum) : std::nullopt;
}

std::string describeExtent(AffineExpr extent, ArrayRef<SymbolAttr> symbols) {
  if (std::optional<::kiln::Dim> dim = toDim(extent, symbols))
    return ::kiln::Text().put(*dim).data();
  std::string text;
  llvm::raw_string_ostream(text) << extent;
  return text;
}

} // namespace mlir::kiln
