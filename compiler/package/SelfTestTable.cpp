// SPDX-License-Identifier: Apache-2.0
#include "compiler/package/SelfTest.h"

#include "compiler/object/BinaryInterface.h"

#include "llvm/IR/Module.h"

using namespace llvm;

namespace kiln {
namespace {

class TableBuilder {
public:
  explicit TableBuilder(Module &module) : module(module), context(module.getContext()) {}

  void emit(const std::vector<SelfTestTrial> &trials, const std::vector<uint64_t> &digests);

private:
  abi::StructConstant structure(abi::Struct of) { return abi::StructConstant(of, context); }
  /// Returns a private constant; null if there are no elements.
  Constant *data(Constant *values, size_t count) {
    if (count == 0)
      return ConstantPointerNull::get(PointerType::getUnqual(context));
    return new GlobalVariable(module, values->getType(), true, GlobalValue::PrivateLinkage, values, "selftest");
  }
  template <class Number> Constant *numbers(const std::vector<Number> &values) {
    return data(values.empty() ? nullptr : ConstantDataArray::get(context, ArrayRef<Number>(values)), values.size());
  }
  Constant *table(ArrayRef<Constant *> rows) {
    return data(rows.empty() ? nullptr : ConstantArray::get(ArrayType::get(rows[0]->getType(), rows.size()), rows),
                rows.size());
  }
  Constant *trial(const SelfTestTrial &trial);

  Module &module;
  LLVMContext &context;
};

Constant *TableBuilder::trial(const SelfTestTrial &trial) {
  SmallVector<Constant *> outputs;
  for (const SelfTestOutput &output : trial.outputs)
    outputs.push_back(structure(abi::Struct::expected)
                          .set(abi::expected::values, numbers(output.values))
                          .set(abi::expected::tolerances, numbers(output.tolerances))
                          .set(abi::expected::count, output.values.size())
                          .set(abi::expected::stride, output.stride)
                          .get());
  const std::vector<uint64_t> extents(trial.extents.begin(), trial.extents.end());
  return structure(abi::Struct::trial)
      .set(abi::trial::entry, trial.entry)
      .set(abi::trial::seed, trial.seed)
      .set(abi::trial::is_first, trial.isFirst)
      .set(abi::trial::extents, numbers(extents))
      .set(abi::trial::outputs, table(outputs))
      .get();
}

void TableBuilder::emit(const std::vector<SelfTestTrial> &trials, const std::vector<uint64_t> &digests) {
  SmallVector<Constant *> rows;
  for (const SelfTestTrial &each : trials)
    rows.push_back(trial(each));
  Constant *embedded = ConstantPointerNull::get(PointerType::getUnqual(context));
  if (!digests.empty())
    embedded = module.getOrInsertGlobal((runtimePrefix + "embedded_weights").str(), embedded->getType());
  Constant *whole = structure(abi::Struct::selftest)
                        .set(abi::selftest::trials, table(rows))
                        .set(abi::selftest::trial_count, rows.size())
                        .set(abi::selftest::embedded, embedded)
                        .set(abi::selftest::digests, numbers(digests))
                        .get();
  auto *global = new GlobalVariable(module, whole->getType(), true, GlobalValue::ExternalLinkage, whole,
                                    runtimePrefix + "selftest_table");
  global->setVisibility(GlobalValue::HiddenVisibility);
}

} // namespace

Expected<std::string> compileSelfTest(const std::vector<SelfTestTrial> &trials, const std::vector<uint64_t> &digests,
                                      const CpuName &cpu) {
  LLVMContext context;
  Module module("selftest", context);
  TableBuilder(module).emit(trials, digests);
  return compileToObject(module, cpu);
}

} // namespace kiln
