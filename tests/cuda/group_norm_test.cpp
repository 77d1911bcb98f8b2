// SPDX-License-Identifier: Apache-2.0
//
// The kernels and launches of group norms as the target compiles them.
#include "compiler/tuner/LoweredModel.h"
#include "kiln/model.h"
#include "targets/cuda/Compile.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

template <int Groups, int Channels, int Side, ElementType E = f32> struct Norm : Model {
  GroupNorm<Groups, Channels, E> norm{"norm"};
  constexpr auto forward(Tensor<E, Side, Side + 1, Channels> x) const { return norm(x); }
};

struct Counts {
  size_t kernels = 0, launches = 0;
  bool operator==(const Counts &) const = default;
};
std::ostream &operator<<(std::ostream &out, const Counts &counts) {
  return out << counts.kernels << " kernels, " << counts.launches << " launches";
}

template <typename M> Counts count() {
  Counts counts;
  auto model = lowerModel(trace<M>(), "norm", "cuda", {});
  if (!model) {
    ADD_FAILURE() << llvm::toString(model.takeError());
    return counts;
  }
  for (mlir::func::FuncOp kernel : (*model)->kernels()) {
    auto plan = cuda::planKernel(kernel);
    EXPECT_TRUE(mlir::succeeded(plan));
    ++counts.kernels;
    counts.launches += mlir::succeeded(plan) ? plan->launches.size() : 0;
  }
  return counts;
}

template <int Side, ElementType E = f32> void expectCounts(Counts counts) {
  EXPECT_EQ((count<Norm<1, 84, Side, E>>()), counts);
  EXPECT_EQ((count<Norm<12, 84, Side, E>>()), counts);
  EXPECT_EQ((count<Norm<21, 84, Side, E>>()), counts);
  EXPECT_EQ((count<Norm<28, 84, Side, E>>()), counts);
  EXPECT_EQ((count<Norm<42, 84, Side, E>>()), counts);
  EXPECT_EQ((count<Norm<84, 84, Side, E>>()), counts);
}

TEST(CudaGroupNorm, SmallImagesAreThreeLaunches) {
  expectCounts<5>({3, 3});
  expectCounts<18>({3, 3});
}

TEST(CudaGroupNorm, LargeImagesAreThreeKernels) { expectCounts<100>({3, 5}); }

TEST(CudaGroupNorm, HalfFloatsAreConvertedWhereTheyAreRead) {
  expectCounts<18, f16>({3, 3});
  expectCounts<18, bf16>({3, 3});
  expectCounts<100, f16>({3, 5});
}

} // namespace
} // namespace kiln
