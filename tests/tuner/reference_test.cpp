// SPDX-License-Identifier: Apache-2.0
// The tuner's reference: compiled kernels are correct according to the interpreter, a kernel that leaves something out
// is wrong, and kernels for which the interpreter would take too long are reported as unchecked.
#include "../levels.h"
#include "LinearKernel.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/tuner/Reference.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

using testing::KernelText;
using testing::Value;
using Extents = std::vector<int64_t>;

class Reference : public ::testing::Test {
protected:
  Reference() {
    context.loadDialect<mlir::affine::AffineDialect, mlir::arith::ArithDialect, mlir::func::FuncDialect,
                        mlir::linalg::LinalgDialect, mlir::math::MathDialect, mlir::tensor::TensorDialect,
                        mlir::kiln::KilnDialect>();
  }

  KernelUse parse(const std::string &text) {
    modules.push_back(mlir::parseSourceString<mlir::ModuleOp>(text, &context));
    EXPECT_TRUE(modules.back());
    mlir::func::FuncOp kernel = *modules.back()->getOps<mlir::func::FuncOp>().begin();
    return {kernel, std::vector<bool>(kernel.getNumArguments(), false), {}};
  }
  KernelCode compile(const KernelUse &use) {
    auto object = target.compilerOf(use.kernel).compile(use.kernel, "kernel");
    EXPECT_TRUE(succeeded(object));
    return {object->object, "kernel", object->scratchBytes};
  }
  /// Returns the error of `code` as the default of `use`.
  ReferenceResult check(const KernelUse &use, const KernelCode &code, const std::vector<Extents> &workloads,
                        const ReferenceLimits &limits = {}) {
    const std::unique_ptr<Session> session = openHostSession(/*threads=*/2);
    auto result = compareWithInterpreter(*session, use, code, workloads, target.compilerOf(use.kernel).abi(), limits);
    if (result)
      return *result;
    return {"", llvm::toString(result.takeError())};
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
  const Target &target = *findTarget(KILN_V2);
};

/// Returns x + 1 or its logarithm, for s0 rows of 33.
std::string rows(const std::string &body) {
  KernelText text({{1, 1000}});
  std::string type = text.type({"s0", "33"});
  Value x = text.argument(type);
  return text.finish({text.one("pp", {x}, type, {"a, b", "a, b"}, body)});
}
const std::string increment = "%one = arith.constant 1.0 : f32\n%s = arith.addf %x0, %one : f32\nlinalg.yield %s : f32";

TEST_F(Reference, AgreesWithWhatIsRight) {
  for (const std::string &layout : {"", "#kiln.tiled<0, 16>"}) {
    KernelUse use = parse(testing::linearKernel(37, 29, layout));
    ReferenceResult result = check(use, compile(use), {{256}, {9}, {1}});
    EXPECT_EQ(result.wrong + result.unchecked, "") << layout;
  }
}

// Random bytes with the invariants of the interleaved layout: zeros after the end of K, and sums.
TEST_F(Reference, KnowsInterleavedInt8) {
  for (const std::string word : {"2", "4"}) {
    KernelUse use =
        parse(testing::int8Kernel(37, 29, "#kiln.tiled<0, 16, interleave = " + word + ", storage = <i8>>", 256));
    ReferenceResult result = check(use, compile(use), {{256}, {9}, {1}});
    EXPECT_EQ(result.wrong + result.unchecked, "") << word;
  }
}

// The same loops over another tensor, a smaller constant, columns in another order.
TEST_F(Reference, DiffersFromWhatIsWrong) {
  KernelUse use = parse(rows(increment));
  KernelCode other = compile(parse(rows("%s = arith.addf %x0, %x0 : f32\nlinalg.yield %s : f32")));
  ReferenceResult result = check(use, other, {{7}});
  EXPECT_EQ(result.wrong.rfind("gives ", 0), 0u) << result.wrong;
  EXPECT_NE(result.wrong.find(": element 0 of result 0, 231 of 231 differ at extents 7"), std::string::npos)
      << result.wrong;
  std::string nearly = increment;
  nearly.replace(nearly.find("1.0"), 3, "1.001");
  EXPECT_NE(check(use, compile(parse(rows(nearly))), {{7}}).wrong, "");
  KernelUse tiled = parse(testing::linearKernel(37, 29, "#kiln.tiled<0, 16>"));
  KernelCode dense = compile(parse(testing::linearKernel(37, 29, "")));
  EXPECT_NE(check(tiled, dense, {{9}}).wrong, "");
}

// A sum near zero, to the power of -9: a rounding of the sum has a much larger effect on the result, and rows are not
// summed in order.
TEST_F(Reference, AllowsWhatRoundingsDo) {
  KernelText text({{1, 1000}});
  std::string type = text.type({"s0"});
  Value x = text.argument(text.type({"s0", "33"}));
  Value sum =
      text.reduce("pr", {x}, type, {"a, b", "a"}, "0.0 : f32", "%s = arith.addf %x0, %y0 : f32\nlinalg.yield %s : f32");
  KernelUse use = parse(text.finish({text.one("p", {sum}, type, {"a", "a"}, R"(%one = arith.constant 1.0 : f32
      %a = arith.divf %one, %x0 : f32
      %b = arith.mulf %a, %a : f32
      %c = arith.mulf %b, %b : f32
      %d = arith.mulf %c, %c : f32
      %e = arith.mulf %d, %a : f32
      linalg.yield %e : f32)")}));
  ReferenceResult result = check(use, compile(use), {{1000}});
  EXPECT_EQ(result.wrong + result.unchecked, "");
}

TEST_F(Reference, SaysWhatIsNotChecked) {
  KernelUse use = parse(rows(increment)); // three operations per element
  EXPECT_EQ(referenceExtents(use.kernel, {1000}, {}), Extents{1000});
  EXPECT_EQ(referenceExtents(use.kernel, {1000}, {3.0 * 33 * 100, 1e9}), Extents{63});
  EXPECT_EQ(referenceExtents(use.kernel, {1000}, {1, 3.0 * 33}), Extents{1});
  EXPECT_EQ(referenceExtents(use.kernel, {1000}, {1, 98}), std::nullopt);
  ReferenceResult result = check(use, compile(use), {{1000}}, {1, 98});
  EXPECT_EQ(result.wrong, "");
  EXPECT_EQ(result.unchecked, "the interpreter would take more than 98 operations");

  use = parse(rows("%z = arith.constant 0.0 : f32\n%s = arith.divf %z, %z : f32\nlinalg.yield %s : f32"));
  result = check(use, compile(use), {{3}});
  EXPECT_EQ(result.wrong, "");
  EXPECT_EQ(result.unchecked, "the interpreter gives no finite number at extents 3");
}

} // namespace
} // namespace kiln
