// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/LoopNest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <sstream>

namespace kiln::halide {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

using Names = std::set<std::string>;

/// The buffers that an expression loads from, directly or through variables.
class FindLoads : public IRGraphVisitor {
public:
  explicit FindLoads(const Scope<Names> &variables) : variables(variables) {}
  Names names;

private:
  using IRGraphVisitor::visit;

  void visit(const Load *op) override {
    names.insert(op->name);
    IRGraphVisitor::visit(op);
  }
  void visit(const Variable *op) override {
    if (variables.contains(op->name))
      names.merge(variables.get(op->name));
  }

  const Scope<Names> &variables;
};

/// "f32x8"
std::string describe(Halide::Type type) {
  const char *code = type.is_bool() ? "bool" : type.is_float() ? "f" : type.is_uint() ? "u" : "i";
  const std::string bits = type.is_bool() ? "" : std::to_string(type.bits());
  return code + bits + (type.lanes() > 1 ? "x" + std::to_string(type.lanes()) : "");
}

class LoopPrinter : public IRVisitor {
public:
  explicit LoopPrinter(llvm::StringRef symbol) : prefix(symbol.str() + "_") {}

  std::string text() const {
    std::string text;
    for (const Line &line : lines)
      text += std::string(2 * line.depth, ' ') + line.text +
              (line.count > 1 ? fmt::format("   x {}", line.count) : "") + "\n";
    return text;
  }

private:
  using IRVisitor::visit;

  struct Line {
    int depth;
    std::string text;
    int count = 1;
  };

  void add(std::string text) {
    if (!lines.empty() && lines.back().depth == depth && lines.back().text == text)
      ++lines.back().count;
    else
      lines.push_back({depth, std::move(text)});
  }
  void inside(const Stmt &body) {
    ++depth;
    body.accept(this);
    --depth;
  }

  std::string shorten(std::string text) const {
    for (const std::string &noise : {prefix, std::string("(uint1)")})
      for (size_t at = 0; (at = text.find(noise, at)) != std::string::npos;)
        text.erase(at, noise.size());
    return text;
  }
  /// Prints an expression, or "..." for one that is too long to help.
  std::string print(const Expr &e) const {
    constexpr size_t longest = 40;
    std::ostringstream out;
    out << e;
    const std::string text = shorten(out.str());
    return text.size() <= longest ? text : "...";
  }

  /// "out0.s0.d1.block" is the loop "d1.block" of the Func that is produced.
  static std::string loopName(llvm::StringRef name) {
    llvm::StringRef stage = name.split(".s").second;
    return (stage.contains('.') ? stage.split('.').second : name).str();
  }

  void visit(const For *op) override {
    add(fmt::format("{}for {} in [{}, {})", op->for_type == ForType::Parallel ? "parallel " : "",
                    loopName(shorten(op->name)), print(op->min), print(simplify(op->min + op->extent))));
    inside(op->body);
  }

  void visit(const ProducerConsumer *op) override {
    if (!op->is_producer)
      return op->body.accept(this);
    add("produce " + shorten(op->name));
    inside(op->body);
  }

  void visit(const Allocate *op) override {
    const int32_t elements = op->constant_allocation_size();
    Expr size = 1;
    for (const Expr &extent : op->extents)
      size *= extent;
    add(fmt::format("allocate {} {}[{}]{}", shorten(op->name), describe(op->type),
                    elements ? std::to_string(elements) : print(simplify(size)),
                    op->memory_type == Halide::MemoryType::Stack ? " on the stack" : ""));
    op->body.accept(this);
  }

  void visit(const LetStmt *op) override {
    ScopedBinding<Names> bind(variables, op->name, loadsOf(op->value));
    op->body.accept(this);
  }

  void visit(const IfThenElse *op) override {
    add("if " + print(op->condition));
    inside(op->then_case);
    if (!op->else_case.defined())
      return;
    add("else");
    inside(op->else_case);
  }

  void visit(const Store *op) override {
    Names from;
    for (const std::string &name : loadsOf(op->value))
      from.insert(shorten(name));
    add(fmt::format("{} {}{}", shorten(op->name), describe(op->value.type()),
                    from.empty() ? "" : fmt::format(" = {}", fmt::join(from, ", "))));
  }

  void visit(const Evaluate *op) override {
    if (const auto *call = op->value.as<Call>())
      add(llvm::StringRef(call->name).contains("prefetch") ? "prefetch" : "call " + call->name);
  }
  void visit(const AssertStmt *) override {} // kernels are compiled without assertions

  Names loadsOf(const Expr &e) const {
    FindLoads find(variables);
    e.accept(&find);
    return std::move(find.names);
  }

  const std::string prefix;
  std::vector<Line> lines;
  int depth = 0;
  Scope<Names> variables;
};

} // namespace

std::string printLoopNest(const Stmt &statement, llvm::StringRef symbol) {
  LoopPrinter printer(symbol);
  statement.accept(&printer);
  return printer.text();
}

} // namespace kiln::halide
