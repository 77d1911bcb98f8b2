// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/Prefetch.h"

#include <algorithm>

namespace kiln::halide {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

/// The first elements of the dense vectors that a loop's body reads of a buffer, those that depend on its variable.
struct DenseLoads : IRVisitor {
  DenseLoads(const std::string &buffer, const std::string &variable) : buffer(buffer), variable(variable) {}

  const std::string &buffer, &variable;
  std::vector<Expr> bases;
  Halide::Type type;
  bool hasLoop = false;

private:
  using IRVisitor::visit;
  void visit(const For *op) override {
    hasLoop = true;
    IRVisitor::visit(op);
  }
  void visit(const Load *op) override {
    IRVisitor::visit(op);
    const Ramp *ramp = op->index.as<Ramp>();
    if (op->name != buffer || !ramp || !is_const_one(ramp->stride) || !expr_uses_var(ramp->base, variable))
      return;
    type = op->type.element_of();
    if (std::none_of(bases.begin(), bases.end(), [&](const Expr &base) { return equal(base, ramp->base); }))
      bases.push_back(ramp->base);
  }
};

/// Asks for the line of an element, into all caches: the intrinsic's own name, since Halide's prefetch is PREFETCHNTA,
/// which leaves out the second cache.
Stmt requestLine(const std::string &buffer, const Expr &index, Halide::Type type) {
  Expr start = Halide::reinterpret(Halide::UInt(64), Expr(Variable::make(Halide::Handle(), buffer)));
  Expr address = Halide::reinterpret(Halide::Handle(), start + Halide::cast<uint64_t>(index) * type.bytes());
  constexpr int isRead = 0, intoAllCaches = 3, isData = 1;
  return Evaluate::make(
      Call::make(Halide::Int(32), "llvm.prefetch.p0i8", {address, isRead, intoAllCaches, isData}, Call::Extern));
}

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

} // namespace

Stmt PrefetchWeights::visit(const For *op) {
  Expr outer = rowTile;
  if (!prefetch.rowLoop.empty() && endsWith(op->name, "." + prefetch.rowLoop))
    rowTile = Variable::make(Halide::Int(32), op->name) - op->min;
  DenseLoads loads(prefetch.buffer, op->name);
  if (op->for_type == Halide::Internal::ForType::Serial)
    op->body.accept(&loads);
  Stmt result;
  if (loads.bases.empty() || loads.hasLoop) {
    result = IRMutator::visit(op);
  } else {
    constexpr int lineBytes = 64;
    int perLine = lineBytes / loads.type.bytes();
    // One request a line: vectors shorter than a line share it.
    std::vector<Expr> lines;
    for (const Expr &base : loads.bases) {
      bool isKnown = std::any_of(lines.begin(), lines.end(), [&](const Expr &line) {
        Expr apart = simplify(base - line);
        const int64_t *distance = as_const_int(apart);
        return distance && *distance > -perLine && *distance < perLine;
      });
      if (!isKnown)
        lines.push_back(base);
    }
    int count = int(lines.size()), requests = prefetch.lines > 0 ? std::min(prefetch.lines, count) : count;
    std::vector<Stmt> body;
    for (int i = 0; i < requests; ++i) {
      Expr at = lines[i] + int(prefetch.advance);
      if (prefetch.lines > 0 && rowTile.defined()) {
        // Once all are asked for, the line that is about to be read anyway.
        Expr number = rowTile * requests + i;
        at = lines[0] + Halide::select(number < count, int(prefetch.advance) + number * perLine, 0);
      }
      body.push_back(requestLine(prefetch.buffer, simplify(at), loads.type));
    }
    body.push_back(op->body);
    result = For::make(op->name, op->min, op->extent, op->for_type, op->device_api, Block::make(body));
  }
  rowTile = outer;
  return result;
}

} // namespace kiln::halide
