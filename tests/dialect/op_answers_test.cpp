// SPDX-License-Identifier: Apache-2.0
//
// Op interface methods, compared with the DSL's results for the same operations.
#include "compiler/dialect/Extents.h"
#include "compiler/pipeline/ImportModel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "models/gpt2/gpt2.h"
#include <gtest/gtest.h>

namespace kiln {
namespace {

constexpr Dim someBatch{"batch", 1, 4}, someTokens{"tokens", 1, 64};

int64_t valueOf(mlir::AffineExpr expr, llvm::ArrayRef<mlir::AffineExpr> symbols) {
  return mlir::cast<mlir::AffineConstantExpr>(expr.replaceDimsAndSymbols({}, symbols)).getValue();
}

/// Returns the flops of all ops of a block, with loop bodies multiplied by their trip counts.
int64_t flopsOf(mlir::Block &block, llvm::ArrayRef<mlir::AffineExpr> symbols) {
  int64_t sum = 0;
  for (mlir::Operation &op : block) {
    if (auto loop = mlir::dyn_cast<mlir::kiln::LoopInterface>(op))
      sum += valueOf(loop.getTripCount(), symbols) * flopsOf(op.getRegion(0).front(), symbols);
    else if (auto inKernel = mlir::dyn_cast<mlir::kiln::KernelOpInterface>(op))
      sum += valueOf(inKernel.getFlops(), symbols);
  }
  return sum;
}

template <class M> void expectFlopsOfTheLanguage(std::initializer_list<Extent> extents) {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(trace<M>(), &context, "model");
  ASSERT_TRUE(module);
  llvm::SmallVector<mlir::AffineExpr> symbols;
  for (mlir::kiln::SymbolAttr symbol : mlir::kiln::getSymbols(*module))
    for (const Extent &extent : extents)
      if (symbol.getName() == extent.name)
        symbols.push_back(mlir::getAffineConstantExpr(extent.value, &context));
  int number = 0;
  for (auto entry : module->getOps<mlir::func::FuncOp>()) {
    const int64_t expected = flops<M>(extents, number++);
    EXPECT_GT(expected, 0) << entry.getName().str();
    EXPECT_EQ(flopsOf(entry.getBody().front(), symbols), expected) << entry.getName().str();
  }
}

struct Products : Model {
  Linear<8, 6, true, WeightOrder::in_out> fc{"fc"};
  Stack<3, EncoderBlock<8, 2, 16>> layers{"layers"};

  constexpr auto rows(Tensor<f32, someBatch, someTokens, 8> x) const {
    return ::kiln::outputs(fc(layers(x)), matmul(x, transpose<0, 2, 1>(x)));
  }
  constexpr auto heads(Tensor<f32, someTokens, 16> q, Tensor<f32, 20, 8> k, Tensor<f32, 20, 12> v) const {
    return ::kiln::outputs(attention<4, 2>(q, k, v), attention_scores<4, 2>(q, k), softmax(q));
  }
  constexpr auto images(Tensor<f32, someBatch, 9, 9, 4> x) const {
    auto window = parameter<f32, 6, 2, 3, 3>(x, "window");
    return max_pool2d<2>(conv2d<Conv2dOptions{.stride = 2, .padding = 1, .groups = 2}>(x, window));
  }
  constexpr auto steps(Tensor<f32, someTokens, 8, 8> x) const {
    auto [last, all] = scan(zeros<f32, 8, 8>(x), x, [](auto h, auto here) {
      auto next = matmul(h, here);
      return std::pair{next, next};
    });
    return ::kiln::outputs(last, all);
  }

  static constexpr auto entries() {
    return std::tuple{entry("rows", &Products::rows), entry("heads", &Products::heads),
                      entry("images", &Products::images), entry("steps", &Products::steps)};
  }
};

TEST(OpAnswers, FlopsAreThoseOfTheLanguage) {
  expectFlopsOfTheLanguage<Products>({{"batch", 3}, {"tokens", 5}});
  expectFlopsOfTheLanguage<specs::Gpt2<2, 32, 4>>({{"tokens", 7}});
}

} // namespace
} // namespace kiln
