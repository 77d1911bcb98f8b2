// SPDX-License-Identifier: Apache-2.0
//
// The passes that derive gradients, updates and batched entries, evaluated: right ones, and incorrect ones in their
// place.
#include <kiln/dsl.h>

#include "compiler/dialect/KilnDialect.h"
#include "compiler/dialect/Training.h"
#include "compiler/frontend/Import.h"
#include "compiler/pipeline/ParallelPasses.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/verify/PassVerifier.h"
#include "support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

namespace kd = mlir::kiln;
using ::testing::StartsWith;

inline constexpr Dim Tokens{"tokens", 1, 5};

struct TanhBlock : Layer<TanhBlock> {
  using Layer<TanhBlock>::Layer;
  Linear<6, 6> fc{"fc"};
  constexpr auto forward(const tensor auto &x) const { return x + kiln::tanh(fc(x)); }
};

/// A model whose entries compute gradients, train, accumulate gradients, and are batched.
struct Derived : Model {
  using X = Tensor<f32, Tokens, 6>;
  Stack<2, TanhBlock> h{"h"};

  constexpr auto loss(X x) const { return mse(h(x), x); }
  constexpr auto loss_and_outputs(X x) const {
    auto y = h(x);
    return outputs(mse(y, x), y);
  }
  constexpr auto mixed(X x) const {
    return kiln::tanh(softmax<0>(x * parameter<f32, 6>(x, "scale"))); // softmax reads all rows of a sequence
  }
  constexpr auto remembered(X x) const {
    State<f32, 6> total("total");
    auto next = total.read(x) + sum<0>(x);
    total.store(next);
    return x + next;
  }

  static constexpr auto entries() {
    return std::tuple{gradients("gradients", &Derived::loss, {"x"}, {"loss"}),
                      gradients("thrice", &Derived::loss_and_outputs, {"x"}, {"loss", "y"}).accumulated(3),
                      train("train", &Derived::loss, {"x"}, {"loss"}, AdamW{}).clipped(0.5),
                      entry("mixed", &Derived::mixed, {"x"}, {"y"}).batched(3),
                      entry("remembered", &Derived::remembered, {"x"}, {"y"}).batched(3)};
  }
};

/// A pass that takes the place of one of the pipeline's, whose name it has: it runs that pass, and then a change.
class ReplacedPass : public mlir::PassWrapper<ReplacedPass, mlir::OperationPass<mlir::ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReplacedPass)
  using Create = std::function<std::unique_ptr<mlir::Pass>()>;
  using Change = std::function<void(mlir::ModuleOp)>;
  ReplacedPass(Create create, Change change)
      : create(std::move(create)), change(std::move(change)), name(this->create()->getArgument().str()) {}

  llvm::StringRef getArgument() const override { return name; }
  void runOnOperation() override {
    mlir::PassManager own(&getContext());
    own.addPass(create());
    if (failed(own.run(getOperation())))
      return signalPassFailure();
    change(getOperation());
  }

private:
  Create create;
  Change change;
  std::string name;
};

struct VerifiedPhases {
  std::string difference, stoppedAt;
  verify::VerifyCounts counts;
};

VerifiedPhases verifyPhases(const std::function<void(mlir::PassManager &)> &build) {
  Context context;
  mlir::OwningOpRef<mlir::ModuleOp> module = importGraph(trace<Derived>(), &context, "derived");
  EXPECT_TRUE(module);
  verify::PassVerifier verifier(*module);
  mlir::PassManager passes(&context);
  verifier.attach(passes);
  build(passes);
  EXPECT_EQ(succeeded(passes.run(*module)), verifier.difference().empty());
  return {verifier.difference(), verifier.stoppedAt(), verifier.counts()};
}

/// Returns the difference that is found if the pass makes this change as well.
std::string differenceOf(const ReplacedPass::Create &create, const ReplacedPass::Change &change) {
  return verifyPhases([&](mlir::PassManager &passes) {
           kd::buildRecognition(passes);
           for (const ReplacedPass::Create &each : {ReplacedPass::Create([] { return kd::createDifferentiate(); }),
                                                    ReplacedPass::Create([] { return kd::createAccumulate(); }),
                                                    ReplacedPass::Create([] { return kd::createAddOptimizer(); }),
                                                    ReplacedPass::Create([] { return kd::createBatchEntries(); })})
             if (each()->getArgument() == create()->getArgument())
               passes.addPass(std::make_unique<ReplacedPass>(create, change));
             else
               passes.addPass(each());
         })
      .difference;
}

/// Doubles the result of the entry at that position from the end.
ReplacedPass::Change doubling(const std::string &entry, unsigned fromEnd) {
  return [=](mlir::ModuleOp module) {
    mlir::Operation *end = module.lookupSymbol<mlir::func::FuncOp>(entry).getBody().front().getTerminator();
    const unsigned number = end->getNumOperands() - 1 - fromEnd;
    mlir::OpBuilder builder(end);
    mlir::Value value = end->getOperand(number);
    end->setOperand(number, kd::AddOp::create(builder, end->getLoc(), value, value));
  };
}

TEST(DerivedEntries, KeepTheResults) {
  const VerifiedPhases verified = verifyPhases([](mlir::PassManager &passes) { kd::buildPipeline(passes, {}); });
  EXPECT_EQ(verified.difference, "");
  EXPECT_EQ(verified.stoppedAt, "");
  EXPECT_GE(verified.counts.gradients, 6u); // a weight and a bias of each entry with gradients
  EXPECT_GE(verified.counts.kernels, 1u);
}

TEST(DerivedEntries, AreVerifiedUntilProcessesShareThem) {
  const VerifiedPhases verified = verifyPhases([](mlir::PassManager &passes) {
    kd::PipelineOptions options;
    options.ranks.replicas = 2;
    kd::buildDerivePhase(passes, options);
  });
  EXPECT_EQ(verified.difference, "");
  EXPECT_EQ(verified.stoppedAt, kd::hasParallelPasses() ? "kiln-average-gradients" : "");
  EXPECT_GE(verified.counts.gradients, 6u);
}

TEST(DerivedEntries, HaveTheDerivativesOfTheLoss) {
  EXPECT_THAT(differenceOf([] { return kd::createDifferentiate(); }, doubling("gradients", 0)),
              StartsWith("kiln-differentiate changed the gradient of \"h.{}.fc."));
}

TEST(DerivedEntries, KeepTheLoss) {
  EXPECT_THAT(differenceOf([] { return kd::createDifferentiate(); }, doubling("gradients", 2)),
              StartsWith("kiln-differentiate changed \"loss\" of gradients: element 0 was "));
}

TEST(DerivedEntries, AverageTheGradientsOfMicroBatches) {
  EXPECT_THAT(differenceOf([] { return kd::createAccumulate(); }, doubling("thrice", 0)),
              StartsWith("kiln-accumulate changed \"grad_h_fc_"));
}

TEST(DerivedEntries, KeepTheGradientsThatCallersGet) {
  EXPECT_THAT(differenceOf([] { return kd::createAddOptimizer(); }, doubling("gradients", 0)),
              StartsWith("kiln-add-optimizer changed \"grad_h_fc_"));
}

TEST(DerivedEntries, BatchesHaveTheResultsOfEachSequence) {
  EXPECT_THAT(differenceOf([] { return kd::createBatchEntries(); }, doubling("mixed_batch", 0)),
              StartsWith("kiln-batch-entries changed \"y\" of mixed_batch: element 0 was "));
}

TEST(DerivedEntries, UpdatedWeightsAreCompared) {
  const VerifiedPhases verified = verifyPhases([](mlir::PassManager &passes) {
    kd::buildDerivePhase(passes, {});
    passes.addPass(std::make_unique<TestPass<mlir::ModuleOp>>([](mlir::ModuleOp module) {
      module.lookupSymbol<mlir::func::FuncOp>("train").walk([](kd::AssignOp op) {
        mlir::OpBuilder builder(op);
        op.getXMutable().assign(kd::AddOp::create(builder, op.getLoc(), op.getX(), op.getX()).getResult());
      });
    }));
  });
  EXPECT_THAT(verified.difference, StartsWith("test-change changed "));
}

} // namespace
} // namespace kiln::testing
