// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/check/StatementChecker.h"

#include "targets/halide/check/LaneEvaluator.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include <fmt/format.h>
#include <list>
#include <sstream>

namespace kiln::halide {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

class StatementChecker {
public:
  explicit StatementChecker(const StatementRun &run) : run(run), lanes(memory, run.seed, run.stepLimit) {}

  void check(const Stmt &stmt) {
    giveBuffers();
    for (const auto &[name, value] : run.scalars)
      bind(lanes.name(name), Lanes::scalar(value));
    execute(stmt);
    for (const Memory &given : buffers)
      if (given.role == MemoryRole::Result)
        memory.requireWritten(given);
  }

private:
  using Name = LaneEvaluator::Name;

  const StatementRun &run;
  MemoryModel memory;
  LaneEvaluator lanes;
  std::list<Memory> buffers; // arguments and results

  static void bind(Name &name, Lanes value) {
    name.value = std::move(value);
    name.isBound = true;
  }

  void give(const std::string &name, MemoryView view) {
    for (const std::string &each : {name, name + ".buffer"})
      lanes.name(each).view = view;
  }

  void giveBuffers() {
    std::map<std::string, Memory *> named;
    for (const GivenBuffer &given : run.buffers) {
      Memory &added = buffers.emplace_back();
      added.role = given.isResult ? MemoryRole::Result : MemoryRole::Argument;
      added.title = given.title;
      added.type = given.type;
      added.shape = given.shape;
      added.seed = run.seed + 0x51ed27 * buffers.size();
      added.size = 1;
      for (int64_t extent : given.shape)
        added.size *= extent;
      if (given.isResult) {
        lanes.takeSteps(added.size / 8);
        memory.allocate(added);
      }
      named[given.name] = &added;
      give(given.name, {&added, false});
    }
    if (run.overwritten.empty())
      return;
    Memory &from = *named.at(run.overwritten), &into = *named.at(run.overwriting);
    into.overwrites = from.title;
    into.seed = from.seed;
    give(run.overwritten, {&into, true});
  }

  //===- Statements --------------------------------------------------------===//

  template <typename Op> static const Op &as(const Stmt &s) { return *static_cast<const Op *>(s.get()); }

  void execute(const Stmt &stmt) {
    if (!stmt.defined())
      return;
    switch (stmt.node_type()) {
    case IRNodeType::LetStmt:
      return let(as<LetStmt>(stmt));
    case IRNodeType::AssertStmt: // no code is generated for them
      return;
    case IRNodeType::ProducerConsumer:
      return execute(as<ProducerConsumer>(stmt).body);
    case IRNodeType::For:
      return loop(as<For>(stmt));
    case IRNodeType::Store:
      return store(as<Store>(stmt));
    case IRNodeType::Allocate:
      return allocate(as<Allocate>(stmt));
    case IRNodeType::Free:
      lanes.name(&as<Free>(stmt), as<Free>(stmt).name).view.memory->isFreed = true;
      return;
    case IRNodeType::Block:
      execute(as<Block>(stmt).first);
      return execute(as<Block>(stmt).rest);
    case IRNodeType::IfThenElse: {
      const auto &op = as<IfThenElse>(stmt);
      return execute(scalar(op.condition, "a condition") ? op.then_case : op.else_case);
    }
    case IRNodeType::Evaluate:
      lanes.evaluate(as<Evaluate>(stmt).value);
      return;
    case IRNodeType::Atomic: // atomicity depends on the target: the body must be safe without it
      return execute(as<Atomic>(stmt).body);
    default:
      unknown(stmt);
    }
  }

  [[noreturn]] static void unknown(const Stmt &stmt) {
    std::ostringstream text;
    text << stmt;
    throw Halide::InternalError("the memory checker does not know the statement " + text.str());
  }

  int64_t scalar(const Expr &e, const char *use) {
    if (!e.type().is_scalar())
      throw Halide::InternalError("the memory checker does not know conditions and bounds that are vectors");
    return lanes.scalar(e, use);
  }

  void let(const LetStmt &op) {
    Name &name = lanes.name(&op, op.name), outer = name;
    bind(name, lanes.evaluate(op.value));
    name.view = outer.view;
    execute(op.body);
    name = std::move(outer);
  }

  void loop(const For &op) {
    const int64_t min = scalar(op.min, "a loop's start"), extent = scalar(op.extent, "a loop's extent");
    const bool isParallel = op.for_type == Halide::Internal::ForType::Parallel;
    if (!isParallel && op.for_type != Halide::Internal::ForType::Serial)
      unknown(&op);
    Name &name = lanes.name(&op, op.name), outer = name;
    if (isParallel)
      memory.tasks.enterLoop(shortened(op.name));
    for (int64_t i = min; i < min + extent; ++i) {
      if (isParallel)
        memory.tasks.startIteration(i);
      bind(name, Lanes::scalar(i));
      execute(op.body);
    }
    if (isParallel)
      memory.tasks.leaveLoop();
    name = std::move(outer);
  }

  void store(const Store &op) {
    const MemoryView &into = lanes.view(&op, op.name);
    const Memory &target = *into.memory;
    if (target.type.bits() != op.value.type().bits() || target.type.is_float() != op.value.type().is_float())
      unknown(&op);
    std::optional<Lanes> predicate = lanes.predicate(op.predicate, "the condition of a store to " + target.title);
    const Lanes *taking = predicate ? &*predicate : nullptr;
    Lanes value = lanes.evaluate(op.value);
    memory.store(into, lanes.index(op.index, op.alignment, "the index of a store to " + target.title, taking), value,
                 taking);
  }

  void allocate(const Allocate &op) {
    if (op.new_expr.defined())
      unknown(&op);
    Memory added;
    added.title = '"' + shortened(op.name) + '"';
    added.type = op.type;
    added.size = 1;
    for (const Expr &extent : op.extents) {
      added.size *= std::max<int64_t>(0, scalar(extent, "the extent of an allocation"));
      lanes.takeSteps(added.size / 16);
    }
    added.padding = paddingOf(op);
    if (!scalar(op.condition, "the condition of an allocation"))
      added.size = added.padding = 0;
    added.shape = {added.size};
    memory.allocate(added);
    Name &name = lanes.name(&op, op.name);
    MemoryView outer = name.view;
    name.view = {&added, false};
    execute(op.body);
    name.view = outer;
  }

  /// Returns the name without the prefix and without the numbers that Halide adds.
  std::string shortened(llvm::StringRef name) const {
    name.consume_front(run.prefix);
    std::string text;
    for (size_t i = 0; i < name.size(); ++i)
      if (name[i] == '$' && i + 1 < name.size() && llvm::isDigit(name[i + 1]))
        while (i + 1 < name.size() && llvm::isDigit(name[i + 1]))
          ++i;
      else
        text += name[i];
    return text;
  }
};

} // namespace

std::string checkStatement(const Stmt &stmt, const StatementRun &run) {
  try {
    StatementChecker(run).check(stmt);
    return "";
  } catch (const MemoryFault &fault) {
    return fault.words;
  }
}

} // namespace kiln::halide
