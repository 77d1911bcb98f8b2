// SPDX-License-Identifier: Apache-2.0
//
// The tile builder by itself: features that kernels do not use yet, and calls with empty dimensions.
#include "Launch.h"
#include "Module.h"
#include "mlir/IR/BuiltinOps.h"
#include "targets/cuda/ptx/DeviceModule.h"
#include "targets/cuda/tile/Builder.h"
#include <cstring>
#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

using mlir::arith::AddFOp;

const cuda::Chip sm80{"sm_80", "+ptx70"}, sm90{"sm_90", "+ptx78", true};

TEST(CudaBuilder, SumsAWarpByShuffles) {
  cuda::DeviceModule device;
  cuda::tile::Builder b(device.get());
  b.beginKernel("sum", {.threads = 32, .waitsAtOnce = false});
  mlir::Value x = b.addParameter(b.pointer(), cuda::tile::Access::Read), y = b.addParameter(b.pointer());
  mlir::Value weight = b.addParameter(b.pointer(), cuda::tile::Access::Weight);
  b.prefetch(b.addressOf(b.getF32Type(), weight, b.threadId()));
  mlir::Value sum = b.load(b.getF32Type(), weight, b.threadId());
  b.waitForDependencies();
  sum = AddFOp::create(b, sum, b.load(b.getF32Type(), x, b.threadId()));
  for (int bits = 16; bits > 0; bits /= 2)
    sum = AddFOp::create(b, sum, b.shuffleXor(sum, bits));
  b.store(sum, y, b.threadId());
  b.endKernel();
  for (const cuda::Chip &chip : {sm80, sm90}) {
    auto text = device.compile(chip);
    ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
    const size_t wait = text->find("griddepcontrol.wait"), prefetch = text->find("prefetch.global.L2");
    EXPECT_EQ(wait != std::string::npos, chip.hasDependentLaunch);
    EXPECT_EQ(prefetch < wait, chip.hasDependentLaunch);
    const size_t constant = text->find("ld.global.nc");
    EXPECT_LT(constant, wait) << "of the weight";
    EXPECT_EQ(text->find("ld.global.nc", constant + 1) == std::string::npos, chip.hasDependentLaunch)
        << "the other may have been written while the kernel waited";
    std::string error;
    auto module = ptx::Module::parse(*text, error);
    ASSERT_TRUE(module) << error;
    ptx::Memory memory;
    std::vector<float> values(32);
    for (int i = 0; i < 32; ++i)
      values[i] = float(i);
    const std::uint64_t addresses[] = {memory.allocate(128), memory.allocate(128), memory.allocate(128)};
    memory.copyIn(addresses[0], std::as_bytes(std::span(values)));
    memory.copyIn(addresses[2], std::as_bytes(std::span(values)));
    ptx::LoadedModule loaded(*module, memory);
    ptx::LaunchConfig config;
    config.block.x = 32;
    config.isDependentLaunch = chip.hasDependentLaunch;
    EXPECT_EQ(ptx::launch(loaded, "sum", config, std::as_bytes(std::span(addresses)), memory).error, "");
    memory.copyOut(addresses[1], std::as_writable_bytes(std::span(values)));
    EXPECT_EQ(values, std::vector<float>(32, 992));
  }
}

TEST(CudaBuilder, RefusesACallOfNothing) {
  cuda::DeviceModule device;
  cuda::tile::Builder b(device.get());
  auto type = mlir::LLVM::LLVMFunctionType::get(b.getI32Type(), {});
  auto missing = mlir::LLVM::LLVMFuncOp::create(b, "__nv_missing", type);
  b.beginKernel("caller", {.threads = 32});
  mlir::Value y = b.addParameter(b.pointer());
  b.store(mlir::LLVM::CallOp::create(b, missing, mlir::ValueRange()).getResult(), y, b.threadId());
  b.endKernel();
  auto text = device.compile(sm80);
  ASSERT_FALSE(bool(text));
  EXPECT_EQ(llvm::toString(text.takeError()), "it calls the function \"__nv_missing\", which is not there");
}

} // namespace
} // namespace kiln::testing
