// SPDX-License-Identifier: Apache-2.0
//
// 1. `sum[i] = sum[i] + a * b` becomes a fused multiply-add if the target has one; with relaxed SIMD the engine
//    decides. No other product is fused: which products meet in one expression depends on the other ops of the kernel,
//    and on where its Funcs are computed.
// 2. The lanes of a vector are reduced by halves, an order that all kernels share, in log2(n) steps.
// 3. Values are computed in strict mode, as are their subexpressions.
#include "targets/halide/workarounds/StrictFloats.h"

#include "targets/halide/translate/VectorFunctions.h"

namespace kiln::halide {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

/// Finds out whether an expression or a part of it is a float.
class FloatFinder : public IRGraphVisitor {
public:
  bool found = false;

private:
  void include(const Expr &e) override {
    found |= e.type().is_float();
    if (!found)
      IRGraphVisitor::include(e);
  }
  using IRGraphVisitor::include;
};

Expr strict(const Expr &e) {
  FloatFinder floats;
  e.accept(&floats);
  if (!floats.found && !e.type().is_float())
    return e;
  return strictly(e);
}

/// Returns the value of a store that adds a product to what it loads, with the product fused; undefined if it adds
/// none.
Expr fuseProduct(const Expr &value, const Store &store, KeepOrderOfFloats::Products products) {
  if (const Let *let = value.as<Let>()) {
    Expr body = fuseProduct(let->body, store, products);
    return body.defined() ? Let::make(let->name, strict(let->value), body) : Expr();
  }
  const Add *sum = value.as<Add>();
  if (!sum || value.type().element_of() != Halide::Float(32) || products == KeepOrderOfFloats::Products::Rounded)
    return Expr();
  for (auto [before, added] : {std::pair(sum->a, sum->b), std::pair(sum->b, sum->a)}) {
    const Load *load = before.as<Load>();
    const Mul *product = added.as<Mul>();
    if (load && product && load->name == store.name && equal(load->index, store.index))
      return products == KeepOrderOfFloats::Products::Fused
                 ? strict(fusedMultiplyAdd(product->a, product->b, before))
                 : before + strict(product->a) * strict(product->b); // LLVM fuses the two
  }
  return Expr();
}

Expr combine(VectorReduce::Operator op, const Expr &a, const Expr &b) {
  return op == VectorReduce::Add ? a + b : op == VectorReduce::Min ? Halide::min(a, b) : Halide::max(a, b);
}

} // namespace

Stmt KeepOrderOfFloats::visit(const Store *op) {
  Expr value = mutate(op->value);
  const Expr fused = fuseProduct(value, *op, products);
  return Store::make(op->name, fused.defined() ? fused : strict(value), op->index, op->param, op->predicate,
                     op->alignment);
}

Stmt KeepOrderOfFloats::visit(const LetStmt *op) {
  Expr value = mutate(op->value);
  return LetStmt::make(op->name, value.type().is_handle() ? value : strict(value), mutate(op->body));
}

Stmt KeepOrderOfFloats::visit(const IfThenElse *op) {
  return IfThenElse::make(strict(mutate(op->condition)), mutate(op->then_case), mutate(op->else_case));
}

Expr KeepOrderOfFloats::visit(const VectorReduce *op) {
  const bool isOrdered = op->op == VectorReduce::Add || op->op == VectorReduce::Min || op->op == VectorReduce::Max;
  int lanes = op->value.type().lanes();
  if (!isOrdered || !op->type.is_float() || op->type.lanes() != 1 || (lanes & (lanes - 1)) != 0)
    return IRMutator::visit(op);
  std::vector<std::pair<std::string, Expr>> steps;
  Expr lanesLeft = mutate(op->value);
  while (lanes > 1) {
    lanes /= 2;
    steps.emplace_back(unique_name("lanes"), lanesLeft);
    Expr all = Variable::make(lanesLeft.type(), steps.back().first);
    lanesLeft = combine(op->op, Shuffle::make_slice(all, 0, 1, lanes), Shuffle::make_slice(all, lanes, 1, lanes));
  }
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    lanesLeft = Let::make(step->first, step->second, lanesLeft);
  return lanesLeft;
}

} // namespace kiln::halide
