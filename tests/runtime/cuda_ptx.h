// SPDX-License-Identifier: Apache-2.0
// Tests of the runtime on a driver that executes PTX: the one of tools/fake-cuda, or the one that the environment
// variable KILN_TEST_CUDA_DRIVER names, such as libcuda.so.1 on a machine with a GPU.
#ifndef KILN_TESTS_RUNTIME_CUDA_PTX_H
#define KILN_TESTS_RUNTIME_CUDA_PTX_H

#include "cuda/cuda_driver.h"
#include "cuda_support.h"

#include <dlfcn.h>
#include <stdlib.h>

namespace kiln_test {

inline const char Ptx[] = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry gather(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3, .param .u64 p4, .param .u32 p5)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %rd<12>;
  .reg .f32 %f<4>;
  mov.u32 %r1, %tid.x;
  setp.ge.u32 %p, %r1, 4;
  @%p bra DONE;
  mov.u32 %r2, %ctaid.x;
  ld.param.u64 %rd1, [p0];
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd1, %rd1, %rd2;
  ld.global.u32 %r3, [%rd1];
  max.s32 %r3, %r3, 0;
  min.s32 %r3, %r3, 4;
  shl.b32 %r4, %r3, 2;
  add.s32 %r4, %r4, %r1;
  ld.param.u64 %rd3, [p1];
  mul.wide.u32 %rd4, %r4, 4;
  add.s64 %rd3, %rd3, %rd4;
  ld.global.f32 %f1, [%rd3];
  ld.param.u64 %rd5, [p2];
  mul.wide.u32 %rd6, %r1, 4;
  add.s64 %rd5, %rd5, %rd6;
  ld.global.f32 %f2, [%rd5];
  add.f32 %f1, %f1, %f2;
  ld.param.u64 %rd7, [p3];
  ld.global.f32 %f3, [%rd7];
  add.f32 %f1, %f1, %f3;
  shl.b32 %r5, %r2, 3;
  add.s32 %r5, %r5, %r1;
  ld.param.u64 %rd8, [p4];
  mul.wide.u32 %rd9, %r5, 4;
  add.s64 %rd8, %rd8, %rd9;
  st.global.f32 [%rd8], %f1;
DONE:
  ret;
}
.visible .entry count(.param .u64 p0, .param .u64 p1)
{
  .reg .b64 %rd<3>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [p0];
  ld.param.u64 %rd2, [p1];
  ld.global.f32 %f1, [%rd1];
  add.f32 %f1, %f1, 0f3F800000;
  st.global.f32 [%rd2], %f1;
  ld.global.f32 %f2, [%rd2];
  st.global.f32 [%rd1], %f2;
  ret;
}
)";

inline const std::vector<int32_t> Ids = {4, 0, 3, 1, 1};

/// Tensors on the device, and their contents afterwards.
struct Tensors {
  void *ids, *rows;

  explicit Tensors(CudaModel &model)
      : ids(model.allocate(sizeof(int32_t) * CudaMaxTokens)),
        rows(model.allocate(sizeof(float) * CudaMaxTokens * CudaWidth)) {
    EXPECT_EQ(kiln_copy_to_memory(model.model, ids, Ids.data(), sizeof(int32_t) * Ids.size(), nullptr), KILN_OK);
  }
  std::vector<float> result(CudaModel &model) {
    std::vector<float> values(Ids.size() * CudaWidth);
    EXPECT_EQ(kiln_copy_from_memory(model.model, values.data(), rows, values.size() * sizeof(float), nullptr), KILN_OK);
    return values;
  }
};

class CudaPtx : public testing::Test {
protected:
  /// Restarts the fake driver with these GPUs; returns false with another driver, whose devices cannot be changed.
  bool setDevices(const char *list) {
    void *reset = dlsym(driver, "kiln_fake_cuda_reset"), *devices = dlsym(driver, "kiln_fake_cuda_set_devices");
    if (!reset || !devices)
      return false;
    reinterpret_cast<void (*)(void *)>(reset)(nullptr);
    return reinterpret_cast<int (*)(const char *)>(devices)(list) == 0;
  }
  /// Returns how often a function of the fake driver was called, or -1 with another driver.
  int64_t count(const char *function) {
    void *counts = dlsym(driver, "kiln_fake_cuda_count");
    return counts ? static_cast<int64_t>(reinterpret_cast<size_t (*)(const char *)>(counts)(function)) : -1;
  }

  CudaDescriptor data;
  kiln_cuda_image_t before[2] = {CudaImages[0], CudaImages[1]};
  void *driver = nullptr;

  void SetUp() override {
    const char *wanted = getenv("KILN_TEST_CUDA_DRIVER");
    const char *path = wanted ? wanted : KILN_FAKE_CUDA;
    setenv("KILN_CUDA_DRIVER", path, 1);
    driver = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    ASSERT_NE(driver, nullptr) << dlerror();
    CudaImages[0].text = CudaImages[1].text = Ptx;
    CudaFunctions[0] = {"gather", 32, 0, 0, 0};
  }
  void TearDown() override {
    if (void *alive = dlsym(driver, "kiln_fake_cuda_alive")) {
      struct {
        unsigned counts[10];
        uint64_t bytes;
        unsigned orphans;
      } left;
      reinterpret_cast<void (*)(void *)>(alive)(&left);
      EXPECT_EQ(std::vector<unsigned>(left.counts, left.counts + 10), std::vector<unsigned>(10)) << "not given back";
      EXPECT_EQ(left.orphans, 0u) << "went with its context";
    }
    CudaImages[0] = before[0];
    CudaImages[1] = before[1];
    dlclose(driver);
    unsetenv("KILN_CUDA_DRIVER");
  }
  template <class... Parameters> int driverCall(const char *name, Parameters... parameters) {
    auto function = reinterpret_cast<int (*)(Parameters...)>(dlsym(driver, name));
    EXPECT_NE(function, nullptr) << name;
    return function ? function(parameters...) : -1;
  }
};

} // namespace kiln_test

#endif // KILN_TESTS_RUNTIME_CUDA_PTX_H
