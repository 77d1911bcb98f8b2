// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/workarounds/Prefetch.h"

#include <algorithm>

namespace kiln::halide {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

/// Rewrites an address to the same part of the row whose number comes `advance` numbers later.
struct FurtherRow : IRMutator {
  explicit FurtherRow(const StreamPrefetch &prefetch) : prefetch(prefetch) {}

  const StreamPrefetch &prefetch;

private:
  using IRMutator::visit;
  Expr visit(const Load *op) override {
    if (op->name != prefetch.numbers || !op->type.is_scalar())
      return IRMutator::visit(op);
    Expr index = Halide::min(op->index + int(prefetch.advance), prefetch.count - 1);
    return Load::make(op->type, op->name, index, op->image, op->param, op->predicate, ModulusRemainder());
  }
};

/// Collects the first elements of the dense vectors of a buffer that a loop's body reads or stores, if they depend on
/// the loop's variable.
struct DenseAccesses : IRVisitor {
  DenseAccesses(const StreamPrefetch &prefetch, const std::string &variable) : prefetch(prefetch), variable(variable) {}

  const StreamPrefetch &prefetch;
  const std::string &variable;
  std::vector<Expr> bases;
  Halide::Type type;
  bool hasLoop = false;

private:
  using IRVisitor::visit;
  void visit(const Let *op) override { visitLet(op); }
  void visit(const LetStmt *op) override { visitLet(op); }
  void visit(const For *op) override {
    hasLoop = true;
    IRVisitor::visit(op);
  }
  void visit(const Load *op) override {
    IRVisitor::visit(op);
    add(op->name, op->index, op->type);
  }
  void visit(const Store *op) override {
    IRVisitor::visit(op);
    add(op->name, op->index, op->value.type());
  }

  template <typename Op> void visitLet(const Op *op) {
    op->value.accept(this);
    lets.emplace_back(op->name, op->value);
    op->body.accept(this);
    lets.pop_back();
  }

  void add(const std::string &name, const Expr &index, Halide::Type vector) {
    const Ramp *ramp = index.as<Ramp>();
    if (name != prefetch.buffer || !ramp || !is_const_one(ramp->stride))
      return;
    // Substitute the lets, so that the index is valid outside of the body.
    Expr first = ramp->base;
    for (auto let = lets.rbegin(); let != lets.rend(); ++let)
      first = substitute(let->first, let->second, first);
    if (!expr_uses_var(first, variable))
      return;
    if (!prefetch.numbers.empty() && FurtherRow(prefetch).mutate(first).same_as(first))
      return;
    type = vector.element_of();
    if (std::none_of(bases.begin(), bases.end(), [&](const Expr &base) { return equal(base, first); }))
      bases.push_back(first);
  }

  std::vector<std::pair<std::string, Expr>> lets;
};

/// Returns what an innermost serial loop reads and stores of the buffer; nothing for other loops.
DenseAccesses accessesOf(const For *op, const StreamPrefetch &prefetch) {
  DenseAccesses accesses(prefetch, op->name);
  if (op->for_type == Halide::Internal::ForType::Serial)
    op->body.accept(&accesses);
  if (accesses.hasLoop)
    accesses.bases.clear();
  return accesses;
}

/// Finds the name of the last loop that accesses the buffer; empty if there is none.
struct LastLoop : IRVisitor {
  explicit LastLoop(const StreamPrefetch &prefetch) : prefetch(prefetch) {}

  const StreamPrefetch &prefetch;
  std::string name;

private:
  using IRVisitor::visit;
  void visit(const For *op) override {
    IRVisitor::visit(op);
    if (!accessesOf(op, prefetch).bases.empty())
      name = op->name;
  }
};

/// Prefetches the cache line of an element, into all caches or all but the first. The intrinsic is called by its own
/// name, since Halide's prefetch is PREFETCHNTA, which bypasses the L2 cache (M-0201, M-0205).
enum class Into { AllCaches = 3, SecondCache = 2 };
Stmt requestLine(const std::string &buffer, const Expr &index, Halide::Type type, Into into) {
  Expr start = Halide::reinterpret(Halide::UInt(64), Expr(Variable::make(Halide::Handle(), buffer)));
  Expr address = Halide::reinterpret(Halide::Handle(), start + Halide::cast<uint64_t>(index) * type.bytes());
  constexpr int isRead = 0, isData = 1;
  return Evaluate::make(
      Call::make(Halide::Int(32), prefetchIntrinsic, {address, isRead, int(into), isData}, Call::Extern));
}

/// Counts the stores of an innermost loop's body, and finds out whether its scalar loads are at fixed distances.
struct BodyShape : IRVisitor {
  int stores = 0;
  bool hasOneAddress = true;

private:
  using IRVisitor::visit;
  void visit(const Store *op) override {
    ++stores;
    IRVisitor::visit(op);
  }
  void visit(const Load *op) override {
    IRVisitor::visit(op);
    if (!op->type.is_scalar())
      return;
    if (!scalar.defined())
      scalar = op->index;
    hasOneAddress &= constantInt(simplify(op->index - scalar)).has_value();
  }

  Expr scalar;
};

/// Distributes prefetches evenly between the stores of an innermost loop's body: back to back they take all line fill
/// buffers of the L1 cache (M-0223). If rows have separate pointers, LLVM would keep accumulators on the stack, so the
/// prefetches come first.
struct SpreadRequests : IRMutator {
  SpreadRequests(std::vector<Stmt> given, const Stmt &body) : requests(std::move(given)) {
    BodyShape shape;
    body.accept(&shape);
    stores = shape.hasOneAddress ? shape.stores : 0;
  }

private:
  using IRMutator::visit;
  Stmt visit(const Store *op) override {
    std::vector<Stmt> body;
    for (; next < requests.size() && (2 * next + 1) * stores < 2 * requests.size() * (passed + 1); ++next)
      body.push_back(requests[next]);
    ++passed;
    body.push_back(op);
    return Block::make(body);
  }

  std::vector<Stmt> requests;
  size_t stores = 0, passed = 0, next = 0;
};

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

} // namespace

Stmt PrefetchStream::mutate(const Stmt &stmt) {
  if (!isInside && prefetch.onlyLast) {
    LastLoop loop(prefetch);
    stmt.accept(&loop);
    last = loop.name;
  }
  isInside = true;
  return IRMutator::mutate(stmt);
}

Stmt PrefetchStream::visit(const For *op) {
  Expr outer = rowTile, outerCount = rowTiles;
  if (!prefetch.rowLoop.empty() && endsWith(op->name, "." + prefetch.rowLoop)) {
    rowTile = Variable::make(Halide::Int(32), op->name) - op->min;
    rowTiles = op->extent;
  }
  DenseAccesses accesses = accessesOf(op, prefetch);
  Stmt result;
  if (accesses.bases.empty() || (prefetch.onlyLast && op->name != last)) {
    result = IRMutator::visit(op);
  } else {
    constexpr int lineBytes = 64;
    int perLine = lineBytes / accesses.type.bytes();
    // One prefetch per cache line: vectors shorter than a line share it.
    std::vector<Expr> lines;
    for (const Expr &base : accesses.bases) {
      bool isKnown = std::any_of(lines.begin(), lines.end(), [&](const Expr &line) {
        Expr apart = simplify(base - line);
        std::optional<int64_t> distance = constantInt(apart);
        return distance && *distance > -perLine && *distance < perLine;
      });
      if (!isKnown)
        lines.push_back(base);
    }
    bool isShared = prefetch.lines > 0;
    int requests = isShared ? prefetch.lines : int(lines.size());
    // The distance, in elements, between the prefetches by which the row tiles cover as much as the loop reads: at most
    // a cache line.
    Expr requestsOfTile = op->extent * requests, count = rowTiles.defined() ? rowTiles : Expr(1);
    Expr apart = Halide::min((int(lines.size()) * perLine + requests * count - 1) / (requests * count), perLine);
    Expr step = Variable::make(Halide::Int(32), op->name) - op->min;
    std::vector<Stmt> asked;
    for (int i = 0; i < requests; ++i) {
      Expr at;
      if (!prefetch.numbers.empty()) {
        at = FurtherRow(prefetch).mutate(lines[i]);
      } else if (isShared) {
        Expr first = rowTile.defined() ? rowTile * requestsOfTile : Expr(0);
        // In 64 bits, so that an iteration adds to an address without a sign extension.
        at = Halide::cast<int64_t>(substitute(op->name, op->min, lines[0]) + int(prefetch.advance) + first * apart) +
             Halide::cast<int64_t>(step * requests + i) * Halide::cast<int64_t>(apart);
      } else {
        at = lines[i] + int(prefetch.advance);
      }
      asked.push_back(
          requestLine(prefetch.buffer, simplify(at), accesses.type, isShared ? Into::SecondCache : Into::AllCaches));
    }
    Stmt body = SpreadRequests(std::move(asked), op->body).mutate(op->body);
    result = withBody(*op, body);
  }
  rowTile = outer;
  rowTiles = outerCount;
  return result;
}

} // namespace kiln::halide
