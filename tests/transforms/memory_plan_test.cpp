// SPDX-License-Identifier: Apache-2.0
//
// The memory plans of whole models: at most 1.1 times the lower bound, every tensor is placed, and no call overwrites a
// value that is read later.
#include "char_gpt.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/frontend/Import.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/transforms/PlanMemory.h"
#include "compiler/transforms/VerifyMemoryPlan.h"
#include "models/bert/bert.h"
#include "models/gpt2/gpt2.h"
#include "transformer/transformer.h"

#include "mlir/IR/BuiltinOps.h"
#include <gtest/gtest.h>

using namespace mlir;
namespace kd = mlir::kiln;
using kd::MemoryPlacement;
using kd::MemoryPlan;

namespace {

struct Planned {
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;

  func::FuncOp entry() { return module->lookupSymbol<func::FuncOp>("forward"); }
};

template <typename Model> Planned plan() {
  Planned result;
  DialectRegistry registry;
  kd::registerPipelineDialects(registry);
  result.context = std::make_unique<MLIRContext>(registry);
  result.context->loadAllAvailableDialects();
  result.module = ::kiln::importGraph(::kiln::trace<Model>(), result.context.get(), "model");
  if (!result.module)
    return result;
  PassManager passes(result.context.get());
  kd::buildPipeline(passes, {.target = {.weightTile = [](int64_t, int64_t) { return 48; }}});
  if (failed(passes.run(*result.module)))
    result.module = {};
  return result;
}

/// Two arena buffers that are live at the same time share no byte.
void expectNoOverlap(const MemoryPlan &plan) {
  ArrayRef<MemoryPlan::Buffer> buffers = plan.getBuffers();
  for (size_t i = 0; i < buffers.size(); ++i)
    for (size_t j = i + 1; j < buffers.size(); ++j) {
      const MemoryPlan::Buffer &a = buffers[i], &b = buffers[j];
      bool inTime = a.first <= b.last && b.first <= a.last;
      bool inSpace = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      EXPECT_FALSE(inTime && inSpace) << i << " and " << j;
    }
}

/// A result may share memory only with an argument that the kernel may overwrite.
void expectInPlaceAllowed(func::FuncOp entry, const MemoryPlan &plan) {
  entry.walk([&](kd::CallOp call) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
    auto inPlace = kernel->getAttrOfType<DenseI64ArrayAttr>(kd::inplaceAttrName).asArrayRef();
    for (Value result : call.getResults())
      for (auto [i, argument] : llvm::enumerate(call.getArguments()))
        EXPECT_TRUE(plan.of(argument) != plan.of(result) || llvm::is_contained(inPlace, static_cast<int64_t>(i)))
            << call.getCallee().str() << " argument " << i;
  });
}

template <typename Model> void checkPlan() {
  Planned planned = plan<Model>();
  ASSERT_TRUE(planned.module);
  FailureOr<MemoryPlan> memory = MemoryPlan::compute(planned.entry());
  ASSERT_TRUE(succeeded(memory));
  EXPECT_GT(memory->lowerBound(), 0);
  EXPECT_LE(memory->arenaBytes(), 1.1 * memory->lowerBound());
  expectNoOverlap(*memory);
  expectInPlaceAllowed(planned.entry(), *memory);
  for (const MemoryPlan::Buffer &buffer : memory->getBuffers())
    EXPECT_EQ(buffer.offset % 64, 0);

  // A loop's yielded values are where the next iteration expects them.
  planned.entry().walk([&](kd::RepeatOp repeat) {
    for (auto [i, carried] : llvm::enumerate(repeat.getCarried())) {
      EXPECT_EQ(memory->of(carried), memory->of(repeat.getYield()->getOperands()[i]));
      EXPECT_EQ(memory->of(carried), memory->of(repeat.getInits()[i]));
      EXPECT_EQ(memory->of(carried), memory->of(repeat.getResult(i)));
    }
  });
  // Returned values are in the caller's memory.
  func::FuncOp entry = planned.entry();
  int64_t inputs = llvm::count_if(entry.getArgumentTypes(), llvm::IsaPred<RankedTensorType>);
  for (OpOperand &operand : entry.getBody().front().getTerminator()->getOpOperands()) {
    EXPECT_EQ(memory->of(operand.get()).kind, MemoryPlacement::Kind::Argument);
    EXPECT_EQ(memory->of(operand.get()).offset, inputs + operand.getOperandNumber());
  }
  std::string text = kd::printMemoryPlan(entry, *memory);
  EXPECT_NE(text.find("lower bound " + std::to_string(memory->lowerBound())), std::string::npos) << text;
}

/// Returns the verifier's message for the plan, or an empty string.
std::string verdict(func::FuncOp entry, const MemoryPlan &plan) {
  std::string words;
  ScopedDiagnosticHandler handler(entry.getContext(), [&](Diagnostic &diagnostic) { words += diagnostic.str(); });
  return succeeded(kd::verifyMemoryPlan(entry, plan)) ? "" : words;
}

// A plan that is correct for kernels that may work in place is not correct for kernels that may not.
TEST(MemoryPlan, VerifierKnowsWhatKernelsMayOverwrite) {
  Planned planned = plan<specs::CharGpt<4, 128, 4, 90>>();
  ASSERT_TRUE(planned.module);
  FailureOr<MemoryPlan> memory = MemoryPlan::compute(planned.entry());
  ASSERT_TRUE(succeeded(memory));
  EXPECT_EQ(verdict(planned.entry(), *memory), "");
  for (auto kernel : planned.module->getOps<func::FuncOp>())
    if (kernel->hasAttr(kd::inplaceAttrName))
      kernel->setAttr(kd::inplaceAttrName, DenseI64ArrayAttr::get(kernel.getContext(), {}));
  EXPECT_NE(verdict(planned.entry(), *memory).find("expected separate memory, since the kernel reads it elsewhere"),
            std::string::npos);
}

// Moves each call of a loop's body to its end: some value has been overwritten by then, or is not yet computed.
TEST(MemoryPlan, VerifierKnowsWhatHasBeenOverwritten) {
  Planned planned = plan<specs::CharGpt<4, 128, 4, 90>>();
  ASSERT_TRUE(planned.module);
  FailureOr<MemoryPlan> memory = MemoryPlan::compute(planned.entry());
  ASSERT_TRUE(succeeded(memory));
  int moved = 0;
  planned.entry().walk([&](kd::RepeatOp repeat) {
    Block &body = repeat.getBody().front();
    SmallVector<kd::CallOp> calls(body.getOps<kd::CallOp>());
    for (kd::CallOp call : ArrayRef(calls).drop_back()) {
      Operation *next = call->getNextNode();
      call->moveBefore(body.getTerminator());
      EXPECT_NE(verdict(planned.entry(), *memory).find("until it is read here"), std::string::npos);
      call->moveBefore(next);
      ++moved;
    }
  });
  EXPECT_GT(moved, 3);
}

TEST(MemoryPlan, Gpt2) { checkPlan<specs::Gpt2Small>(); }
TEST(MemoryPlan, Bert) { checkPlan<specs::BertBase>(); }
TEST(MemoryPlan, Transformer) { checkPlan<specs::TransformerBase>(); }
TEST(MemoryPlan, CharGpt) { checkPlan<specs::CharGpt<4, 128, 4, 90>>(); }

} // namespace
