// SPDX-License-Identifier: Apache-2.0
//
// What a kernel's key depends on, and what it must not depend on.
#include "compiler/kernel/KernelKey.h"

#include "compiler/dialect/KilnDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>
#include <regex>

using namespace mlir;

namespace kiln {
namespace {

class KernelKeys : public ::testing::Test {
protected:
  KernelKeys() : context(registry(), MLIRContext::Threading::DISABLED) { context.loadAllAvailableDialects(); }

  static DialectRegistry registry() {
    DialectRegistry registry;
    registry.insert<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect, tensor::TensorDialect,
                    mlir::kiln::KilnDialect>();
    return registry;
  }

  /// Returns the keys of all functions of a module, in order.
  std::vector<KernelKey> keys(const std::string &text) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    std::vector<KernelKey> result;
    if (!module)
      ADD_FAILURE() << "does not parse:\n" << text;
    else
      for (auto function : module->getOps<func::FuncOp>())
        result.push_back(keyOf(function));
    return result;
  }
  KernelKey key(const std::string &text) {
    std::vector<KernelKey> all = keys(text);
    return all.size() == 1 ? all[0] : KernelKey();
  }

  MLIRContext context;
};

/// Replaces `what`, a regular expression that must match.
std::string replaced(const std::string &text, const std::string &what, const std::string &by) {
  const std::regex pattern(what);
  EXPECT_TRUE(std::regex_search(text, pattern)) << what;
  return std::regex_replace(text, pattern, by);
}

/// Returns y = w x + b with dynamic rows.
std::string linear(int64_t inputs, int64_t outputs, const std::string &name = "kernel_3", int64_t bound = 1024) {
  std::string text = R"(
func.func private @NAME(%s0: index, %x: tensor<?xKxf32, affine_map<()[s0] -> (s0, K)>>, %w: tensor<NxKxf32, #kiln.tiled<0, 48>>,
    %b: tensor<Nxf32>) -> tensor<?xNxf32, affine_map<()[s0] -> (s0, N)>>
    attributes {kiln.bounds = array<i64: 1, BOUND>, kiln.inplace = array<i64>, kiln.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%s0) : tensor<?xNxf32, affine_map<()[s0] -> (s0, N)>>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xNxf32, affine_map<()[s0] -> (s0, N)>>) -> tensor<?xNxf32, affine_map<()[s0] -> (s0, N)>>
  %p = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, c)>, affine_map<(a, b, c) -> (b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?xKxf32, affine_map<()[s0] -> (s0, K)>>, tensor<NxKxf32, #kiln.tiled<0, 48>>)
      outs(%f : tensor<?xNxf32, affine_map<()[s0] -> (s0, N)>>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %m = arith.mulf %u, %v : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<?xNxf32, affine_map<()[s0] -> (s0, N)>>
  %y = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (b)>, affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%p, %b : tensor<?xNxf32, affine_map<()[s0] -> (s0, N)>>, tensor<Nxf32>) outs(%e : tensor<?xNxf32, affine_map<()[s0] -> (s0, N)>>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %a = arith.addf %u, %v : f32
    linalg.yield %a : f32
  } -> tensor<?xNxf32, affine_map<()[s0] -> (s0, N)>>
  return %y : tensor<?xNxf32, affine_map<()[s0] -> (s0, N)>>
}
)";
  text = replaced(text, "NAME", name);
  text = replaced(text, "BOUND", std::to_string(bound));
  text = replaced(text, "<Nx", "<" + std::to_string(outputs) + "x");
  text = replaced(text, "xNx", "x" + std::to_string(outputs) + "x");
  text = replaced(text, "xKx", "x" + std::to_string(inputs) + "x");
  text = replaced(text, ", N\\)", ", " + std::to_string(outputs) + ")");
  return replaced(text, ", K\\)", ", " + std::to_string(inputs) + ")");
}

TEST_F(KernelKeys, ListEachExtentOnce) {
  KernelKey key = this->key(linear(768, 3072));
  EXPECT_EQ(toString(key.shape), "768x3072");
  EXPECT_EQ(toString(key.bounds), "1..1024");
  EXPECT_EQ(key.structure.size(), 16u);
  EXPECT_EQ(key.content.size(), 32u);
}

// The hash itself is part of every tuning file: if this test fails, all of them lose their records.
TEST_F(KernelKeys, StayTheSameOverVersions) { EXPECT_EQ(key(linear(768, 3072)).structure, "2c414af6464a08c9"); }

TEST_F(KernelKeys, DoNotDependOnNameAndPlace) {
  KernelKey alone = key(linear(768, 3072));
  std::vector<KernelKey> several =
      keys(linear(64, 32, "first") + linear(768, 3072, "elsewhere") + linear(8, 8, "last"));
  ASSERT_EQ(several.size(), 3u);
  EXPECT_EQ(several[1], alone);
  std::string moved = "\n\n// a comment that moves every location\n" + linear(768, 3072);
  EXPECT_EQ(key(moved), alone);
  std::string reordered =
      replaced(linear(768, 3072), "kiln.inplace = array<i64>, kiln.kernel", "kiln.kernel, kiln.inplace = array<i64>");
  EXPECT_EQ(key(reordered), alone);
  EXPECT_EQ(key(replaced(linear(768, 3072), "func.func private", "func.func")), alone);
  EXPECT_EQ(key(replaced(linear(768, 3072), "kiln.kernel", "kiln.kernel, kiln.scopes = [\"h.{}.mlp.c_fc\"]")), alone);
}

TEST_F(KernelKeys, DoNotDependOnTheContext) {
  KernelKey before = key(linear(768, 3072));
  MLIRContext other(registry());
  other.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(linear(768, 3072), &other);
  EXPECT_EQ(keyOf(*module->getOps<func::FuncOp>().begin()), before);
}

TEST_F(KernelKeys, ExtentsChangeTheShapeOnly) {
  KernelKey wide = key(linear(768, 3072)), square = key(linear(768, 768)), small = key(linear(48, 1));
  EXPECT_EQ(wide.structure, square.structure);
  EXPECT_EQ(wide.structure, small.structure);
  EXPECT_EQ(square.shape, (std::vector<int64_t>{768, 768}));
  EXPECT_EQ(small.shape, (std::vector<int64_t>{48, 1}));
  EXPECT_NE(wide.content, square.content);
}

TEST_F(KernelKeys, BoundsAreApart) {
  KernelKey all = key(linear(768, 3072)), few = key(linear(768, 3072, "kernel_3_rows4", 4));
  EXPECT_EQ(all.structure, few.structure);
  EXPECT_EQ(all.shape, few.shape);
  EXPECT_EQ(toString(few.bounds), "1..4");
  EXPECT_NE(all.content, few.content);
}

// A target's passes change only a kernel's content.
TEST_F(KernelKeys, RecordedOnesStay) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(linear(768, 3072), &context);
  ASSERT_TRUE(module);
  func::FuncOp kernel = *module->getOps<func::FuncOp>().begin();
  const KernelKey before = keyOf(kernel);
  const std::string text = structureText(kernel);
  recordKey(kernel);
  EXPECT_EQ(keyOf(kernel), before);
  EXPECT_EQ(structureText(kernel), text) << "a record is no part of the kernel";
  kernel.walk([](arith::MulFOp op) { op->setAttr(mlir::kiln::strictAttrName, UnitAttr::get(op.getContext())); });
  recordKey(kernel);
  const KernelKey after = keyOf(kernel);
  EXPECT_NE(structureText(kernel), text);
  EXPECT_EQ(after.structure, before.structure);
  EXPECT_EQ(after.shape, before.shape);
  EXPECT_NE(after.content, before.content);
}

// An equal constant shared by two uses, or an equal empty tensor, does not change the structure.
TEST_F(KernelKeys, SharedConstantsAreTheSame) {
  std::string text = linear(64, 32);
  std::string apart = replaced(
      text, "outs\\(%e : (tensor<[^{]*>)\\) \\{\n  \\^bb0\\(%u: f32, %v: f32, %o: f32\\):\n    %a = arith.addf %u, %v",
      "outs(%e2 : $1) {\n  ^bb0(%u: f32, %v: f32, %o: f32):\n    %a = arith.addf %u, %v");
  apart = replaced(apart, "(%e = )(tensor.empty.*)", "$1$2\n  %e2 = $2");
  EXPECT_EQ(key(apart).structure, key(text).structure);
  EXPECT_NE(key(apart).content, key(text).content);
}

TEST_F(KernelKeys, FloatConstantsAreContentOnly) {
  std::string text = linear(64, 32), other = replaced(text, "constant 0.0", "constant 1.5");
  EXPECT_EQ(key(text).structure, key(other).structure);
  EXPECT_EQ(key(text).shape, key(other).shape);
  EXPECT_NE(key(text).content, key(other).content);
}

TEST_F(KernelKeys, ComputationChangesTheStructure) {
  std::string text = linear(64, 32);
  const std::pair<const char *, const char *> changes[] = {
      {"arith.addf %u, %v", "arith.maximumf %u, %v"},
      {"arith.addf %u, %v", "arith.addf %u, %u"},
      {"affine_map<\\(a, b\\) -> \\(b\\)>", "affine_map<(a, b) -> (0)>"},
      {"tiled<0, 48>", "tiled<0, 16>"},
      {"xf32, #kiln.tiled<0, 48>", "xf32"},
      {"inplace = array<i64>", "inplace = array<i64: 3>"},
  };
  for (const auto &[what, by] : changes)
    EXPECT_NE(key(replaced(text, what, by)).structure, key(text).structure) << what;
}

} // namespace
} // namespace kiln
