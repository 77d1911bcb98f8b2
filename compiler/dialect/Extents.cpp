// SPDX-License-Identifier: Apache-2.0
//
// Represents extents as polynomials: a map from sorted products to coefficients, whose order is the canonical one. The
// factors of products are symbols and polynomials that are divided by a number and rounded down.
#include "compiler/dialect/Extents.h"

#include <map>
#include <memory>
#include <numeric>
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

struct Atom;
using Product = std::vector<Atom>; // sorted
using Polynomial = std::map<Product, int64_t>;

/// A symbol, or a polynomial divided by a number and rounded down. Coefficients of such a polynomial are positive and
/// less than the divisor, its constant is not negative, and they have no common divisor.
struct Atom {
  unsigned position = 0;                       // of the symbol
  std::shared_ptr<const Polynomial> numerator; // null: a symbol
  int64_t divisor = 1;

  /// Symbols come first; an order that is independent of addresses.
  bool operator<(const Atom &other) const;
  bool operator==(const Atom &other) const { return !(*this < other) && !(other < *this); }
};

bool Atom::operator<(const Atom &other) const {
  if (!numerator || !other.numerator)
    return !numerator && (other.numerator || position < other.position);
  return divisor != other.divisor ? divisor < other.divisor : *numerator < *other.numerator;
}

/// Returns the number that a polynomial always is.
std::optional<int64_t> toNumber(const Polynomial &polynomial) {
  if (polynomial.empty())
    return 0;
  return polynomial.size() == 1 && polynomial.begin()->first.empty() ? std::optional(polynomial.begin()->second)
                                                                     : std::nullopt;
}

/// Polynomials of symbols and of divided polynomials; nullopt for an expression that is none, or whose coefficients do
/// not fit 64 bits.
struct PolynomialArithmetic {
  using Value = std::optional<Polynomial>;

  Value constant(int64_t number) const {
    Polynomial result;
    if (number != 0)
      result[{}] = number;
    return result;
  }
  Value dim(unsigned) const { return std::nullopt; }
  Value symbol(unsigned position) const { return Polynomial{{{Atom{position, nullptr, 1}}, 1}}; }
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
  /// Takes multiples of the divisor out of each coefficient, so that the rest is never negative where the atoms are
  /// not.
  Value floorDivide(const Value &a, const Value &b) const {
    const std::optional<int64_t> divisor = b ? toNumber(*b) : std::nullopt;
    if (!a || !divisor || *divisor < 1)
      return std::nullopt;
    Polynomial quotient, rest;
    for (const auto &[product, factor] : *a) {
      if (const int64_t whole = llvm::divideFloorSigned(factor, *divisor); whole != 0)
        quotient[product] = whole;
      if (const int64_t left = llvm::mod(factor, *divisor); left != 0)
        rest[product] = left;
    }
    if (toNumber(rest)) // less than the divisor
      return quotient;
    return add(quotient, divideRest(std::move(rest), *divisor));
  }
  Value ceilDivide(const Value &a, const Value &b) const {
    const std::optional<int64_t> divisor = b ? toNumber(*b) : std::nullopt;
    return divisor && *divisor >= 1 ? floorDivide(add(a, constant(*divisor - 1)), b) : std::nullopt;
  }
  Value modulo(const Value &, const Value &) const { return std::nullopt; }

private:
  /// Divides a polynomial whose coefficients are positive and less than the divisor. Common divisors are dropped, and
  /// (x floordiv e + c) floordiv d is (x + c e) floordiv (d e).
  Value divideRest(Polynomial rest, int64_t divisor) const {
    int64_t common = divisor;
    for (const auto &[product, factor] : rest)
      if (!product.empty())
        common = std::gcd(common, factor);
    int64_t number = 0;
    if (auto found = rest.find({}); found != rest.end()) {
      number = found->second / common;
      rest.erase(found);
    }
    for (auto &[product, factor] : rest)
      factor /= common;
    divisor /= common;
    const auto &[product, factor] = *rest.begin();
    if (rest.size() == 1 && factor == 1 && product.size() == 1 && product[0].numerator) {
      const Atom inner = product[0];
      int64_t shift, whole;
      if (llvm::MulOverflow(number, inner.divisor, shift) || llvm::MulOverflow(divisor, inner.divisor, whole))
        return std::nullopt;
      return floorDivide(add(*inner.numerator, constant(shift)), constant(whole));
    }
    if (number != 0)
      rest[{}] = number;
    return Polynomial{{{Atom{0, std::make_shared<const Polynomial>(std::move(rest)), divisor}}, 1}};
  }
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
    for (const Atom &atom : term->first) {
      AffineExpr factor = atom.numerator ? toExpr(*atom.numerator, context).floorDiv(atom.divisor)
                                         : getAffineSymbolExpr(atom.position, context);
      product = product ? product * factor : factor;
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
    for (const Atom &atom : product) {
      if (atom.numerator || atom.position >= symbols.size())
        return std::nullopt;
      std::optional<::kiln::Dim> symbol = toDim(symbols[atom.position]);
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
