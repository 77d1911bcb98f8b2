// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/check/ScratchBound.h"

#include <algorithm>
#include <optional>

namespace kiln::halide {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kHeader = 64;
/// Halide may append up to a vector to an allocation.
constexpr int64_t kPadding = 64;

class Walk : public IRVisitor {
public:
  int64_t live = 0, peak = 0, taskPeak = 0;
  std::string unbounded;

private:
  using IRVisitor::visit;

  Scope<Interval> scope;
  std::vector<std::pair<std::string, Expr>> lets;
  std::optional<int64_t> before; // in a task of a parallel loop: live bytes where the loop began

  /// Returns constant bounds, or infinite ones.
  Interval bounds(const Expr &e) {
    if (!e.type().is_int() && !e.type().is_uint())
      return Interval::everything();
    Interval found = bounds_of_expr_in_scope(e, scope, empty_func_value_bounds(), /*const_bound=*/true);
    return {simplify(found.min), simplify(found.max)};
  }

  void visit(const LetStmt *op) override {
    ScopedBinding<Interval> bind(scope, op->name, bounds(op->value));
    lets.emplace_back(op->name, op->value);
    op->body.accept(this);
    lets.pop_back();
  }

  /// Returns the largest value of an extent; nothing if there is no bound.
  std::optional<int64_t> largest(const Expr &extent) {
    Expr whole = extent;
    for (auto let = lets.rbegin(); let != lets.rend(); ++let)
      whole = substitute(let->first, let->second, whole);
    whole = simplify(substitute_in_all_lets(whole));
    std::optional<int64_t> best;
    for (std::optional<int64_t> bound : {enumerated(whole), upper(whole), constant(bounds(extent).max)})
      if (bound && (!best || *bound < *best))
        best = bound;
    return best;
  }

  /// Returns the largest value over the range of the only parameter, if that is the only variable and its range is
  /// short.
  static std::optional<int64_t> enumerated(const Expr &e) {
    Variables variables;
    e.accept(&variables);
    if (variables.found.size() != 1 || !variables.found.begin()->second.defined())
      return std::nullopt;
    auto [name, parameter] = *variables.found.begin();
    auto low = constant(parameter.min_value()), high = constant(parameter.max_value());
    if (!low || !high || *high - *low > 4096)
      return std::nullopt;
    int64_t best = 0;
    for (int64_t value = *low; value <= *high; ++value) {
      auto result = constant(simplify(substitute(name, Expr(int(value)), e)));
      if (!result)
        return std::nullopt;
      best = std::max(best, *result);
    }
    return best;
  }

  struct Variables : IRVisitor {
    using IRVisitor::visit;
    void visit(const Variable *op) override { found.emplace(op->name, op->param); }
    std::map<std::string, PipelineParameter> found;
  };

  static std::optional<int64_t> constant(const Expr &e) { return e.defined() ? constantInt(e) : std::nullopt; }

  /// An expression in which a min or max, with which the expression does not decrease, is replaced by either operand.
  struct Choice {
    Expr first, second;
    bool isMin;
  };

  static std::optional<Choice> firstChoice(const Expr &e) {
    if (const Min *op = e.as<Min>())
      return Choice{op->a, op->b, true};
    if (const Max *op = e.as<Max>())
      return Choice{op->a, op->b, false};
    auto inside = [](const Expr &operand, auto rebuild) -> std::optional<Choice> {
      std::optional<Choice> choice = firstChoice(operand);
      if (choice)
        choice = Choice{rebuild(choice->first), rebuild(choice->second), choice->isMin};
      return choice;
    };
    auto isPositive = [](const Expr &x) { return constant(x).value_or(0) > 0; };
    if (const Add *op = e.as<Add>()) {
      auto choice = inside(op->a, [&](const Expr &a) { return a + op->b; });
      return choice ? choice : inside(op->b, [&](const Expr &b) { return op->a + b; });
    }
    if (const Sub *op = e.as<Sub>())
      return inside(op->a, [&](const Expr &a) { return a - op->b; });
    if (const Mul *op = e.as<Mul>(); op && isPositive(op->b))
      return inside(op->a, [&](const Expr &a) { return a * op->b; });
    if (const Div *op = e.as<Div>(); op && isPositive(op->b))
      return inside(op->a, [&](const Expr &a) { return a / op->b; });
    return std::nullopt;
  }

  /// Returns an upper bound. An extent is a difference of minima and maxima that share loop variables, which cancel
  /// only if the difference is moved into their operands.
  std::optional<int64_t> upper(const Expr &e, int choices = 8) {
    std::optional<Choice> choice = choices ? firstChoice(e) : std::nullopt;
    if (!choice)
      return constant(find_constant_bound(simplify(e), Direction::Upper, scope));
    auto a = upper(choice->first, choices - 1), b = upper(choice->second, choices - 1);
    if (a && b)
      return choice->isMin ? std::min(*a, *b) : std::max(*a, *b);
    return !choice->isMin ? std::nullopt : a ? a : b;
  }

  void visit(const For *op) override {
    Interval min = bounds(op->min), last = bounds(op->min + op->extent - 1);
    ScopedBinding<Interval> bind(scope, op->name, Interval(min.min, last.max));
    const bool isOutermost = op->for_type == ForType::Parallel && !before;
    if (isOutermost)
      before = live;
    op->body.accept(this);
    if (isOutermost)
      before.reset();
  }

  void visit(const Allocate *op) override {
    int64_t bytes = isOnHeap(op) ? heapBytes(op) : 0;
    live += bytes;
    peak = std::max(peak, live);
    if (before)
      taskPeak = std::max(taskPeak, live - *before);
    op->body.accept(this);
    live -= bytes;
  }

  static bool isOnHeap(const Allocate *op) {
    if (op->memory_type == Halide::MemoryType::Stack || op->memory_type == Halide::MemoryType::Register)
      return op->constant_allocation_size() == 0;
    int64_t elements = op->constant_allocation_size();
    return op->memory_type == Halide::MemoryType::Heap || elements == 0 || elements * op->type.bytes() > 16 * 1024;
  }

  int64_t heapBytes(const Allocate *op) {
    int64_t bytes = op->type.bytes();
    for (const Expr &extent : op->extents) {
      std::optional<int64_t> bound = largest(extent);
      if (!bound) {
        unbounded = op->name;
        return 0;
      }
      bytes *= std::max<int64_t>(*bound, 1);
    }
    bytes += int64_t(paddingOf(*op)) * op->type.bytes();
    return (bytes + kPadding + kAlignment - 1) / kAlignment * kAlignment + kHeader;
  }
};

} // namespace

Stmt ScratchBound::mutate(const Stmt &stmt) {
  for (auto [symbol, bound] : llvm::zip_equal(symbols, bounds)) {
    PipelineParameter parameter = symbol.as<Variable>()->param;
    parameter.set_min_value(int32_t(bound.min));
    parameter.set_max_value(int32_t(bound.max));
  }
  Walk walk;
  stmt.accept(&walk);
  bytes = walk.peak;
  taskBytes = walk.taskPeak;
  unbounded = walk.unbounded;
  return stmt;
}

} // namespace kiln::halide
