// SPDX-License-Identifier: Apache-2.0
//
// Incorrect passes in the pipeline: the first pass that changes a result is named, with the entry, the output and the
// element.
#include <kiln/dsl.h>

#include "compiler/dialect/KilnDialect.h"
#include "compiler/pipeline/ImportModel.h"
#include "compiler/verify/PassVerifier.h"
#include "support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

namespace kd = mlir::kiln;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

inline constexpr Dim B{"batch", 1, 3}, T{"rows", 1, 9}, C{"context", T, 12};

template <std::int64_t Width> struct Half {
  Linear<Width, Width> fc{"fc"};
  constexpr auto forward(const tensor auto &x) const { return fc(x) * 0.5; }
};

/// A model with a difference, a transposed product, layers, a loop, a function of the program, states.
struct Everything : Model {
  Stack<3, Half<6>> layers{"layers"};

  constexpr auto subtract(Tensor<f32, B, T, 6> x, Tensor<f32, B, T, 6> y) const { return tanh(x - y) * 2; }
  constexpr auto move(Tensor<f32, B, T, 6> x) const { return transpose<0, 2, 1>(x) + 1; }
  constexpr auto stacked(Tensor<f32, T, 6> x) const { return layers(x); }
  constexpr auto loop(Tensor<f32, T, 6> x) const {
    return scan(zeros<f32, 6>(x), x,
                [](auto h, auto here) {
                  auto next = h * 0.5 + here;
                  return std::pair{next, next};
                })
        .second;
  }
  constexpr auto remember(Tensor<f32, T, 6> x) const {
    State<f32, 12, 6> rows("rows");
    return sum<0>(rows.append<C>(x));
  }
  constexpr auto given(Tensor<f32, T, 6> x, Tensor<f32, T, 6> y) const {
    auto [z, count] = custom<"given", Tensor<f32, T, 6>, Tensor<i32, T>>({.workspace = 4 * T}, x + 1, y);
    return where(less(reshape<T, 1>(count), 1), z, y) + x;
  }
  constexpr auto replace(Tensor<f32, 6> x) const {
    State<f32, 6> total("total");
    auto next = total.read(x) + x;
    total.store(next);
    return next;
  }

  static constexpr auto entries() {
    return std::tuple{entry("subtract", &Everything::subtract, {"x", "y"}, {"z"}),
                      entry("move", &Everything::move, {"x"}, {"y"}),
                      entry("stacked", &Everything::stacked, {"x"}, {"y"}),
                      entry("loop", &Everything::loop, {"x"}, {"y"}),
                      entry("given", &Everything::given, {"x", "y"}, {"z"}),
                      entry("remember", &Everything::remember, {"x"}, {"total"}),
                      entry("replace", &Everything::replace, {"x"}, {"total"})};
  }
};

using Change = std::function<void(mlir::ModuleOp)>;

/// The position of the incorrect pass: after which stage of the pipeline.
enum class Stage { Imported, Formed, Lowered };

struct Verified {
  std::string difference;
  verify::VerifyCounts counts;
};

Verified verifyWith(Stage stage, const std::function<void(mlir::PassManager &)> &addWrong,
                    const StorageChoices &weights = {}) {
  Context context;
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(trace<Everything>(), &context, "everything", weights);
  EXPECT_TRUE(module);
  verify::PassVerifier verifier(*module);
  mlir::PassManager passes(&context);
  verifier.attach(passes);
  if (stage == Stage::Lowered) {
    kd::buildPipeline(passes, {});
  } else if (stage == Stage::Formed) {
    passes.addPass(kd::createFormKernels());
  }
  addWrong(passes);
  if (stage != Stage::Lowered)
    kd::buildPipeline(passes, {});
  // A pass fails if it is found to be incorrect.
  EXPECT_EQ(succeeded(passes.run(*module)), verifier.difference().empty());
  return {verifier.difference(), verifier.counts()};
}

std::string differenceOf(Stage stage, const Change &change, const StorageChoices &weights = {}) {
  return verifyWith(
             stage,
             [&](mlir::PassManager &passes) { passes.addPass(std::make_unique<TestPass<mlir::ModuleOp>>(change)); },
             weights)
      .difference;
}

/// Returns a change of every op of this kind.
template <class Op> Change each(std::function<void(Op)> change) {
  return [change](mlir::ModuleOp module) {
    llvm::SmallVector<Op> ops;
    module.walk([&](Op op) { ops.push_back(op); });
    EXPECT_FALSE(ops.empty());
    for (Op op : ops)
      change(op);
  };
}

void swapOperands(mlir::Operation *op) {
  mlir::Value first = op->getOperand(0);
  op->setOperand(0, op->getOperand(1));
  op->setOperand(1, first);
}

TEST(WrongPass, NoneIsNamedWithoutOne) {
  Verified verified = verifyWith(Stage::Imported, [](mlir::PassManager &) {});
  EXPECT_EQ(verified.difference, "");
  EXPECT_GE(verified.counts.evaluations, 6u);
  EXPECT_GE(verified.counts.kernels, 6u);
  EXPECT_EQ(verified.counts.undetermined, 0u);
}

TEST(WrongPass, SwapsTheOperandsOfADifference) {
  EXPECT_THAT(differenceOf(Stage::Imported, each<kd::SubOp>([](kd::SubOp op) { swapOperands(op); })),
              MatchesRegex("test-change changed \"z\" of subtract: element 0 was -?[0-9.]+, is -?[0-9.]+ "
                           "\\(batch=1, rows=1, context=1\\)"));
}

TEST(WrongPass, SwapsTheOperandsOfADifferenceInKernels) {
  EXPECT_THAT(differenceOf(Stage::Formed, each<kd::SubOp>([](kd::SubOp op) { swapOperands(op); })),
              StartsWith("test-change changed \"z\" of subtract: element 0 was "));
  EXPECT_THAT(differenceOf(Stage::Lowered, each<mlir::arith::SubFOp>([](mlir::arith::SubFOp op) { swapOperands(op); })),
              StartsWith("test-change changed \"z\" of subtract: element 0 was "));
}

TEST(WrongPass, ChangesOneKernel) {
  auto addWrong = [](mlir::PassManager &passes) {
    passes.addNestedPass<mlir::func::FuncOp>(
        std::make_unique<TestPass<mlir::func::FuncOp>>([](mlir::func::FuncOp function) {
          function.walk([](mlir::arith::MulFOp op) { op->setOperand(1, op->getOperand(0)); });
        }));
  };
  EXPECT_THAT(verifyWith(Stage::Lowered, addWrong).difference,
              MatchesRegex("test-change changed result 0 of [a-z_0-9]+ in [a-z]+: element [0-9]+ was .*, is .*"));
}

// A function of the program has a stand-in, which depends on the order of its operands and on its name.
TEST(WrongPass, ChangesACustomFunction) {
  for (Stage stage : {Stage::Imported, Stage::Formed, Stage::Lowered}) {
    EXPECT_THAT(differenceOf(stage, each<kd::CustomOp>([](kd::CustomOp op) { swapOperands(op); })),
                StartsWith("test-change changed \"z\" of given: element "));
    EXPECT_THAT(differenceOf(stage, each<kd::CustomOp>([](kd::CustomOp op) { op.setFunction("another"); })),
                StartsWith("test-change changed \"z\" of given: element "));
  }
}

TEST(WrongPass, TakesAMoveForAView) {
  auto change = each<kd::TransposeOp>([](kd::TransposeOp op) {
    mlir::OpBuilder builder(op);
    op.replaceAllUsesWith(kd::ReshapeOp::create(builder, op.getLoc(), op.getType(), op.getX()).getResult());
    op.erase();
  });
  // The smallest dimensions have one row, where the result is the same.
  EXPECT_THAT(differenceOf(Stage::Imported, change), MatchesRegex("test-change changed \"y\" of move: .*rows=[2-9].*"));
}

TEST(WrongPass, CallsAnotherKernel) {
  auto change = [](mlir::ModuleOp module) {
    int count = 0;
    module.lookupSymbol<mlir::func::FuncOp>("stacked").walk([&](kd::CallOp call) {
      auto other = module.lookupSymbol<mlir::func::FuncOp>(call.getCallee()).clone();
      other.setName("other_" + std::to_string(count++));
      other.walk([](mlir::arith::AddFOp op) { op->setOperand(1, op->getOperand(0)); });
      module.push_back(other);
      call.setCallee(other.getName());
    });
  };
  EXPECT_THAT(differenceOf(Stage::Lowered, change), StartsWith("test-change changed \"y\" of stacked: element 0 was "));
}

TEST(WrongPass, ForgetsHowAWeightIsStored) {
  auto change = each<kd::ParameterOp>([](kd::ParameterOp op) { op.removeStorageAttr(); });
  EXPECT_THAT(differenceOf(Stage::Imported, change, {int8, {}}),
              StartsWith("test-change changed \"y\" of stacked: element 0 was "));
}

TEST(WrongPass, LeavesLayersAway) {
  EXPECT_THAT(
      differenceOf(Stage::Lowered, each<kd::RepeatOp>([](kd::RepeatOp op) { op.replaceAllUsesWith(op.getInits()); })),
      StartsWith("test-change changed \"y\" of stacked: element 0 was "));
}

TEST(WrongPass, ReversesALoop) {
  EXPECT_THAT(differenceOf(Stage::Formed, each<kd::ScanOp>([](kd::ScanOp op) { op.setReverse(true); })),
              MatchesRegex("test-change changed \"y\" of loop: .*rows=[2-9].*"));
}

TEST(WrongPass, ForgetsAState) {
  EXPECT_THAT(differenceOf(Stage::Lowered, each<kd::StoreOp>([](kd::StoreOp op) { op.erase(); })),
              MatchesRegex("test-change changed (\"total\" of replace: .*, call 2\\)|the state \"total\": .*)"));
}

TEST(WrongPass, ReadsAnotherLayersWeight) {
  auto change = each<kd::ParameterOp>([](kd::ParameterOp op) {
    mlir::Builder builder(op.getContext());
    if (op.getCopies() > 1)
      op.setSourcesAttr(builder.getStrArrayAttr({"layers.{}.fc.bias"}));
  });
  EXPECT_THAT(differenceOf(Stage::Imported, change),
              MatchesRegex("test-change left what cannot be evaluated: stacked: view: number of elements differs; "
                           "expected as many, got .*"));
}

TEST(WrongPass, StatesOtherExtentsThanValuesHave) {
  auto change = [](mlir::ModuleOp module) {
    module.walk([](mlir::Operation *op) {
      for (mlir::Value extent : op->getOperands())
        if (auto call = mlir::dyn_cast<kd::CallOp>(op); call && extent.getType().isIndex()) {
          auto entry = op->getParentOfType<mlir::func::FuncOp>();
          op->replaceUsesOfWith(extent, entry.getArgument(0));
        }
    });
  };
  EXPECT_THAT(differenceOf(Stage::Formed, change),
              MatchesRegex("test-change left what cannot be evaluated: .*value: wrong type; expected "
                           "f32\\[.*\\], got f32\\[.*"));
}

} // namespace
} // namespace kiln::testing
