// SPDX-License-Identifier: Apache-2.0
//
// Halide lowers a pipeline to a function of the host, with the device code as a constant and a call
//   halide_cuda_run(state, "function", blocks x, y, z, threads x, y, z, shared bytes, sizes, arguments, are buffers)
// for each loop over blocks. Its arguments are the tensors and host values that the loop uses.
//
// 1. Before loops become calls, values that the host computes from the index arguments, and the strides that it
//    asserts, move into the loops, so that only tensors and index arguments are passed to a function.
// 2. Numbers of blocks become affine expressions.
#include "targets/cuda/halide/DeviceCode.h"

#include "targets/cuda/Kernel.h"
#include <set>
#include <sstream>

namespace kiln::cuda {

using namespace Halide::Internal;
using Halide::Expr;
using mlir::AffineExpr;

namespace {

//===- Host values -------------------------------------------------------===//

/// Determines whether a value is arithmetic on the given variables.
class FollowsFrom : public IRVisitor {
public:
  explicit FollowsFrom(const std::set<std::string> &names) : names(names) {}
  bool answer = true;

private:
  using IRVisitor::visit;
  void visit(const Variable *op) override { answer &= names.count(op->name) != 0; }
  void visit(const Load *) override { answer = false; }
  void visit(const Let *) override { answer = false; }
  void visit(const Call *op) override {
    answer &= op->is_pure();
    IRVisitor::visit(op);
  }

  const std::set<std::string> &names;
};

class SinkLets : public IRMutator {
public:
  explicit SinkLets(const halide::Exprs &symbols) {
    for (const Expr &symbol : symbols)
      names.insert(symbol.as<Variable>()->name);
  }

private:
  using IRMutator::visit;

  Expr visit(const Variable *op) override {
    auto found = values.find(op->name);
    return found == values.end() ? Expr(op) : found->second;
  }

  Stmt visit(const LetStmt *op) override {
    Expr value = mutate(op->value);
    FollowsFrom follows(names);
    value.accept(&follows);
    if (isOnDevice || !follows.answer)
      return LetStmt::make(op->name, value, mutate(op->body));
    values[op->name] = value;
    return mutate(op->body);
  }

  /// The host asserts the extents and strides of its buffers.
  Stmt visit(const AssertStmt *op) override {
    auto *equation = op->condition.as<EQ>();
    if (auto *field = equation ? equation->a.as<Variable>() : nullptr;
        field && !isOnDevice && !names.count(field->name)) {
      Expr value = mutate(equation->b);
      FollowsFrom follows(names);
      value.accept(&follows);
      if (follows.answer)
        values[field->name] = value;
    }
    return op;
  }

  Stmt visit(const For *op) override {
    ScopedValue<bool> scope(isOnDevice, isOnDevice || op->for_type == ForType::GPUBlock);
    return IRMutator::visit(op);
  }

  std::set<std::string> names;
  std::map<std::string, Expr> values;
  bool isOnDevice = false;
};

//===- Launches ----------------------------------------------------------===//

/// Converts an integer of the host to an affine expression over the index arguments; null if a plan cannot represent
/// it.
class AffineReader {
public:
  explicit AffineReader(const halide::Translator &translator) : kernel(translator.kernel) {
    for (auto [number, symbol] : llvm::enumerate(translator.symbols))
      numbers[symbol.as<Variable>()->name] = unsigned(number);
  }

  std::optional<unsigned> symbol(const std::string &name) const {
    auto found = numbers.find(name);
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
  }

  AffineExpr read(const Expr &e) const {
    if (std::optional<int64_t> constant = halide::constantInt(e))
      return mlir::getAffineConstantExpr(*constant, kernel->getContext());
    if (auto *variable = e.as<Variable>()) {
      auto number = symbol(variable->name);
      return number ? mlir::getAffineSymbolExpr(*number, kernel->getContext()) : AffineExpr();
    }
    if (auto *op = e.as<Add>())
      return read(op->a, op->b, [](AffineExpr a, AffineExpr b) { return a + b; });
    if (auto *op = e.as<Sub>())
      return read(op->a, op->b, [](AffineExpr a, AffineExpr b) { return a - b; });
    if (auto *op = e.as<Mul>())
      return read(op->a, op->b, [](AffineExpr a, AffineExpr b) { return a * b; });
    if (auto *op = e.as<Div>())
      return read(op->a, op->b, [&](AffineExpr a, AffineExpr b) { return isNatural(a, b) ? a.floorDiv(b) : nullptr; });
    if (auto *op = e.as<Mod>())
      return read(op->a, op->b, [&](AffineExpr a, AffineExpr b) { return isNatural(a, b) ? a % b : nullptr; });
    if (auto *op = e.as<Max>())
      return read(op->a, op->b, [&](AffineExpr a, AffineExpr b) {
        return atLeast(a, b) ? a : atLeast(b, a) ? b : nullptr;
      });
    if (auto *op = e.as<Min>())
      return read(op->a, op->b, [&](AffineExpr a, AffineExpr b) {
        return atLeast(a, b) ? b : atLeast(b, a) ? a : nullptr;
      });
    return {};
  }

private:
  AffineExpr read(const Expr &a, const Expr &b, llvm::function_ref<AffineExpr(AffineExpr, AffineExpr)> join) const {
    AffineExpr left = read(a), right = read(b);
    return left && right ? join(left, right) : AffineExpr();
  }
  /// Whether the host launcher, which divides unsigned numbers, evaluates a / b correctly.
  bool isNatural(AffineExpr a, AffineExpr b) const { return leastValue(a, kernel) >= 0 && leastValue(b, kernel) > 0; }
  bool atLeast(AffineExpr a, AffineExpr b) const { return leastValue(a, kernel) >= largestValue(b, kernel); }

  mlir::func::FuncOp kernel;
  std::map<std::string, unsigned> numbers;
};

/// Returns the tensors of a kernel by the names of their buffers.
std::map<std::string, Parameter> buffersOf(halide::Translator &translator) {
  std::map<std::string, Parameter> buffers;
  const auto symbols = unsigned(translator.symbols.size()), all = translator.kernel.getNumArguments();
  for (unsigned i = symbols; i < all; ++i)
    buffers[translator.name("in" + std::to_string(i)) + ".buffer"] = {Parameter::Tensor, int64_t(i - symbols)};
  for (const halide::Output &output : translator.outputs)
    for (auto [i, result] : llvm::enumerate(output.results))
      buffers[output.func.name() + (output.results.size() > 1 ? "." + std::to_string(i) : "") + ".buffer"] = {
          Parameter::Tensor, int64_t(all - symbols + result)};
  return buffers;
}

class LaunchReader : public IRVisitor {
public:
  explicit LaunchReader(halide::Translator &translator) : numbers(translator), buffers(buffersOf(translator)) {}

  std::vector<DeviceFunction> functions;
  std::vector<Launch> launches;
  std::string fault; // what a plan cannot represent; empty: nothing

private:
  using IRVisitor::visit;

  void visit(const Call *op) override {
    IRVisitor::visit(op);
    if (!llvm::StringRef(op->name).starts_with("halide_") || !llvm::StringRef(op->name).ends_with("_run"))
      return;
    enum { name = 1, blocks = 2, threads = 5, shared = 8, arguments = 10 };
    for (int i : {blocks + 1, blocks + 2, threads + 1, threads + 2})
      require(is_const_one(op->args[i]), "one dimension of blocks and of threads");
    require(is_const_zero(op->args[shared]), "no shared memory");
    std::optional<int64_t> size = halide::constantInt(op->args[threads]);
    require(size.has_value(), "blocks of a constant size");
    Launch launch{unsigned(functions.size()), numbers.read(op->args[blocks]), {}};
    require(bool(launch.blocks), "a number of blocks over the index arguments");
    auto *values = op->args[arguments].as<Call>();
    for (size_t i = 0; i + 1 < values->args.size(); ++i) // the last one ends the list
      launch.parameters.push_back(parameter(values->args[i]));
    functions.push_back({op->args[name].as<StringImm>()->value, uint32_t(size ? *size : 0), 0});
    launches.push_back(std::move(launch));
  }

  /// Returns the parameter for a buffer, or for the address of a value.
  Parameter parameter(const Expr &e) {
    auto *address = e.as<Call>();
    auto *variable = address && address->args.size() == 1 ? address->args[0].as<Variable>() : e.as<Variable>();
    if (variable) {
      if (auto found = buffers.find(variable->name); found != buffers.end())
        return found->second;
      if (auto symbol = numbers.symbol(variable->name))
        return {Parameter::Symbol, *symbol};
    }
    std::ostringstream got;
    got << "functions of tensors and index arguments, got " << e;
    require(false, got.str());
    return {};
  }

  void require(bool holds, const std::string &what) { fault = holds || !fault.empty() ? fault : what; }

  AffineReader numbers;
  std::map<std::string, Parameter> buffers;
};

//===- Text --------------------------------------------------------------===//

/// Renames the functions, since Halide's names depend on what else the process has compiled.
void renameFunctions(DeviceCode &code) {
  std::vector<std::pair<std::string, std::string>> names;
  for (DeviceFunction &function : code.functions) {
    names.emplace_back(function.name, "step_" + std::to_string(names.size()));
    function.name = names.back().second;
  }
  // One name may be the beginning of another one.
  llvm::sort(names, [](auto &a, auto &b) { return a.first.size() > b.first.size(); });
  for (auto &[from, to] : names)
    for (size_t at = 0; (at = code.text.find(from, at)) != std::string::npos; at += to.size())
      code.text.replace(at, from.size(), to);
}

} // namespace

mlir::FailureOr<DeviceCode> compileForDevice(halide::Translator &translator, llvm::StringRef device) {
  std::vector<Halide::Func> outputs;
  for (const halide::Output &output : translator.outputs)
    outputs.push_back(output.func);
  Halide::Pipeline pipeline(outputs);
  pipeline.add_custom_lowering_pass(new SinkLets(translator.symbols));
  const Halide::Target target("x86-64-linux-" + device.str() + "-user_context-no_runtime-no_asserts-no_bounds_query");
  Halide::Module module =
      pipeline.compile_to_module(translator.arguments, translator.name("host"), target, Halide::LinkageType::External);

  LaunchReader reader(translator);
  std::ostringstream statement;
  for (const LoweredFunc &function : module.functions()) {
    function.body.accept(&reader);
    statement << function.body;
  }
  if (!reader.fault.empty())
    return translator.kernel.emitError() << "kernel scheduled by halide: unsupported call; expected " << reader.fault;
  DeviceCode code{{}, statement.str(), std::move(reader.functions), std::move(reader.launches)};
  for (const Halide::Buffer<> &buffer : module.buffers())
    if (llvm::StringRef(buffer.name()).ends_with("_gpu_source_kernels"))
      code.text.assign(static_cast<const char *>(buffer.data()),
                       strnlen(static_cast<const char *>(buffer.data()), buffer.size_in_bytes()));
  renameFunctions(code);
  return code;
}

} // namespace kiln::cuda
