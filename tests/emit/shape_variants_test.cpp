// SPDX-License-Identifier: Apache-2.0
//
// Shape-specialised variants of kernels: their names and bounds, and how the entry-point glue of a call selects one.
#include "../target_of.h"
#include "compiler/library/ShapeVariants.h"

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

namespace kiln {
namespace {

using mlir::func::FuncOp;

/// Requests the given variants for kernels with index arguments.
class SkinnyGemmCompiler : public KernelCompiler {
public:
  explicit SkinnyGemmCompiler(std::vector<ShapeVariant> variants) : variants(std::move(variants)) {}
  const KernelAbi &abi() const override { llvm_unreachable("compiles nothing"); }
  Schedulable describe(FuncOp) const override { return {}; }
  std::vector<ShapeVariant> shapeVariants(FuncOp kernel) const override {
    return kernel.getNumArguments() > 0 && kernel.getArgumentTypes()[0].isIndex() ? variants
                                                                                  : std::vector<ShapeVariant>();
  }
  mlir::FailureOr<KernelObject> compile(FuncOp, llvm::StringRef, const ScheduleConfig *) const override {
    return mlir::failure();
  }
  mlir::FailureOr<std::string> print(FuncOp, llvm::StringRef, KernelText, const ScheduleConfig *) const override {
    return mlir::failure();
  }

private:
  std::vector<ShapeVariant> variants;
};

Target skinnyGemmTarget(std::vector<ShapeVariant> variants) {
  return testing::targetOf({}, {}, std::make_unique<SkinnyGemmCompiler>(std::move(variants)));
}

constexpr const char *text = R"(
func.func private @kernel_0(%s0: index, %s1: index) attributes {kiln.kernel, kiln.bounds = array<i64: 1, 100, 2, 50>} { return }
func.func private @kernel_1() attributes {kiln.kernel, kiln.bounds = array<i64>} { return }
func.func @kernel_0_rows4() attributes {kiln.entry} { return }
)";

TEST(ShapeVariants, CloneKernelsWithNarrowerBounds) {
  mlir::MLIRContext context;
  context.loadDialect<mlir::func::FuncDialect, mlir::kiln::KilnDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  ShapeVariants variants = addShapeVariants(*module, skinnyGemmTarget({{0, 1}, {0, 4}, {1, 8}}));

  std::vector<std::string> names;
  for (auto function : module->getOps<FuncOp>())
    names.push_back(function.getName().str());
  // An entry has the name of the second variant.
  EXPECT_EQ(names, (std::vector<std::string>{"kernel_0", "kernel_0_rows1", "kernel_0_rows4_", "kernel_0_rows8",
                                             "kernel_1", "kernel_0_rows4"}));
  auto boundsOf = [&](llvm::StringRef name) {
    return module->lookupSymbol<FuncOp>(name)->getAttrOfType<mlir::DenseI64ArrayAttr>("kiln.bounds").asArrayRef().vec();
  };
  using Bounds = std::vector<int64_t>;
  EXPECT_EQ(boundsOf("kernel_0"), (Bounds{1, 100, 2, 50}));
  EXPECT_EQ(boundsOf("kernel_0_rows1"), (Bounds{1, 1, 2, 50}));
  EXPECT_EQ(boundsOf("kernel_0_rows4_"), (Bounds{2, 4, 2, 50})); // without the sizes of the first variant
  EXPECT_EQ(boundsOf("kernel_0_rows8"), (Bounds{1, 100, 2, 8}));

  ASSERT_EQ(variants.size(), 1u);
  const auto &forms = variants["kernel_0"];
  ASSERT_EQ(forms.size(), 3u);
  EXPECT_EQ(forms[1].function, "kernel_0_rows4_");
  EXPECT_EQ(forms[1].bound, 4);
  EXPECT_EQ(forms[2].symbol, 1u);

  auto choose = [&](int64_t s0, int64_t s1) { return chooseVariant(variants, "kernel_0", {s0, s1}).str(); };
  EXPECT_EQ(choose(1, 50), "kernel_0_rows1");
  EXPECT_EQ(choose(2, 8), "kernel_0_rows4_"); // the first variant that supports the sizes
  EXPECT_EQ(choose(5, 8), "kernel_0_rows8");
  EXPECT_EQ(choose(5, 9), "kernel_0");
  EXPECT_EQ(chooseVariant(variants, "kernel_1", {}), "kernel_1");
}

} // namespace
} // namespace kiln
