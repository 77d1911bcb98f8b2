// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/Scratch.h"

#include <algorithm>

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
  int64_t live = 0, peak = 0;
  std::string unbounded;

private:
  using IRVisitor::visit;

  Scope<Interval> scope;

  /// Constants, or infinite.
  Interval bounds(const Expr &e) {
    if (!e.type().is_int() && !e.type().is_uint())
      return Interval::everything();
    Interval found = bounds_of_expr_in_scope(e, scope, empty_func_value_bounds(), /*const_bound=*/true);
    return {simplify(found.min), simplify(found.max)};
  }

  void visit(const LetStmt *op) override {
    ScopedBinding<Interval> bind(scope, op->name, bounds(op->value));
    op->body.accept(this);
  }

  void visit(const For *op) override {
    Interval min = bounds(op->min), last = bounds(op->min + op->extent - 1);
    ScopedBinding<Interval> bind(scope, op->name, Interval(min.min, last.max));
    op->body.accept(this);
  }

  void visit(const Allocate *op) override {
    int64_t bytes = isOnHeap(op) ? heapBytes(op) : 0;
    live += bytes;
    peak = std::max(peak, live);
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
      const int64_t *largest = as_const_int(bounds(extent).max);
      if (!largest) {
        unbounded = op->name;
        return 0;
      }
      bytes *= std::max<int64_t>(*largest, 1);
    }
    return (bytes + kPadding + kAlignment - 1) / kAlignment * kAlignment + kHeader;
  }
};

} // namespace

Stmt ScratchBound::mutate(const Stmt &stmt) {
  Walk walk;
  stmt.accept(&walk);
  bytes = walk.peak;
  unbounded = walk.unbounded;
  return stmt;
}

} // namespace kiln::halide
