// SPDX-License-Identifier: Apache-2.0
//
// Reads MLIR, runs passes and writes MLIR, for tests and for inspecting a single stage.
#include "compiler/dialect/KilnDialect.h"
#include "compiler/pipeline/Pipeline.h"
#include "targets/passes/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

/// Registers `kiln-pipeline`: all passes in their order, for a target that wants one tile.
static void registerPipeline() {
  struct Options : mlir::PassPipelineOptions<Options> {
    Option<int64_t> tile{*this, "tile", llvm::cl::desc("tile of every weight"), llvm::cl::init(48)};
  };
  static mlir::PassPipelineRegistration<Options> registration(
      "kiln-pipeline", "all passes in their order", [](mlir::OpPassManager &passes, const Options &options) {
        const int64_t tile = options.tile;
        kiln::TargetHooks hooks;
        hooks.weightTile = [tile](int64_t, int64_t) { return tile; };
        hooks.addKernelPasses = mlir::kiln::addExpandMath;
        mlir::kiln::buildPipeline(passes, {std::move(hooks)});
      });
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::affine::AffineDialect, mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::LLVM::LLVMDialect, mlir::linalg::LinalgDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                  mlir::tensor::TensorDialect, mlir::kiln::KilnDialect>();
  mlir::registerTransformsPasses();
  mlir::kiln::registerPasses();
  mlir::kiln::registerKilnTargetPasses();
  registerPipeline();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Kiln's passes\n", registry));
}
