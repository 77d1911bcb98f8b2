// SPDX-License-Identifier: Apache-2.0
// The image of a model's kernels: assembled once, loaded without assembling by a later model, refused if it does not
// fit, and never left incomplete after a driver error.
#include "cuda_fixture.h"

#include <thread>

namespace {

using namespace kiln_test;

class CudaImage : public CudaStub {
protected:
  const kiln_cuda_image_t hopper = CudaImages[0];
  void TearDown() override {
    CudaImages[0] = hopper;
    CudaStub::TearDown();
  }
  /// Returns the image that a caller would store for a model on this machine.
  std::string keep() {
    CudaModel made(data);
    const void *image = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(kiln_cuda_image(made.model, &image, &bytes, &made.error), KILN_OK) << made.error.message;
    return {static_cast<const char *>(image), bytes};
  }
  static kiln_status_t load(CudaModel &made, const std::string &image) {
    const std::vector<char> exact(image.begin(), image.end()); // no byte after the image may be read
    return kiln_load_cuda_image(made.model, image.empty() ? "" : exact.data(), image.size(), &made.error);
  }
};

TEST_F(CudaImage, KnowsWhichKernelsWait) {
  CudaFunctions[0].is_dependent_launch = 1;
  bool isDependentLaunch = false;
  stub->kernels["gather"].run = [&](const StubLaunch &launch) { isDependentLaunch = launch.isDependentLaunch; };
  for (const std::string &tooNew : {"", "hopper"}) {
    stub->newerPtx = tooNew;
    const std::string image = keep();
    CudaModel made(data);
    std::vector<float> rows;
    ASSERT_EQ(load(made, image), KILN_OK) << made.error.message;
    ASSERT_EQ(made.run({0, 1}, rows), KILN_OK) << made.error.message;
    EXPECT_EQ(isDependentLaunch, tooNew.empty());
  }
  CudaFunctions[0].is_dependent_launch = 0;
}

TEST_F(CudaImage, IsAssembledOnce) {
  CudaModel made(data);
  std::vector<float> rows;
  const void *image = nullptr, *again = nullptr;
  size_t bytes = 0, bytesAgain = 0;
  EXPECT_EQ(kiln_cuda_assembly_seconds(made.model), 0);
  made.error = {KILN_FILE_ERROR, "from before"};
  ASSERT_EQ(kiln_cuda_image(made.model, &image, &bytes, &made.error), KILN_OK) << made.error.message;
  EXPECT_STREQ(made.error.message, "");
  ASSERT_NE(image, nullptr);
  EXPECT_GT(bytes, 2 * sizeof "code of hopper");
  EXPECT_GT(kiln_cuda_assembly_seconds(made.model), 0);
  EXPECT_EQ(stub->count("cuLinkComplete"), 2);
  EXPECT_EQ(stub->links, 0);
  EXPECT_EQ(stub->loaded, (std::vector<std::string>(2, "code of hopper"))) << "calls use what was assembled";
  stub->calls.clear();
  ASSERT_EQ(kiln_cuda_image(made.model, &again, &bytesAgain, &made.error), KILN_OK);
  EXPECT_EQ(again, image);
  EXPECT_EQ(bytesAgain, bytes);
  EXPECT_TRUE(stub->calls.empty());
  ASSERT_EQ(made.run({1}, rows), KILN_OK) << made.error.message;
  EXPECT_EQ(rows, cudaRows({1}, 0));
  EXPECT_EQ(stub->modules, 2);
}

// Kernels that earlier calls needed stay loaded, and are assembled again for the image.
TEST_F(CudaImage, AfterCalls) {
  const std::string kept = keep();
  CudaModel made(data);
  std::vector<float> rows;
  ASSERT_EQ(made.run({1}, rows), KILN_OK) << made.error.message;
  const double seconds = kiln_cuda_assembly_seconds(made.model);
  EXPECT_GT(seconds, 0);
  stub->loaded.clear();
  const void *image = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(kiln_cuda_image(made.model, &image, &bytes, &made.error), KILN_OK) << made.error.message;
  EXPECT_EQ(std::string(static_cast<const char *>(image), bytes), kept);
  EXPECT_TRUE(stub->loaded.empty());
  EXPECT_GT(kiln_cuda_assembly_seconds(made.model), seconds);
  ASSERT_EQ(made.run({2}, rows), KILN_OK) << made.error.message;
  EXPECT_EQ(rows, cudaRows({2}, 1));
}

TEST_F(CudaImage, TheNextStartAssemblesNothing) {
  const std::string kept = keep();
  CudaModel made(data);
  stub->calls.clear();
  stub->loaded.clear();
  ASSERT_EQ(load(made, kept), KILN_OK) << made.error.message;
  EXPECT_EQ(stub->loaded, (std::vector<std::string>(2, "code of hopper")));
  EXPECT_EQ(stub->count("cuLinkCreate_v2"), 0);
  EXPECT_EQ(kiln_cuda_assembly_seconds(made.model), 0);
  const void *image = &data;
  size_t bytes = 1;
  ASSERT_EQ(kiln_cuda_image(made.model, &image, &bytes, &made.error), KILN_OK) << made.error.message;
  EXPECT_EQ(image, nullptr) << "there is nothing new to keep";
  EXPECT_EQ(bytes, 0u);
  // All kernels are loaded already.
  stub->calls.clear();
  std::vector<float> rows;
  ASSERT_EQ(made.run({4, 0}, rows), KILN_OK) << made.error.message;
  EXPECT_EQ(rows, cudaRows({4, 0}, 0));
  EXPECT_EQ(stub->count("cuModuleLoadDataEx") + stub->count("cuMemHostAlloc") + stub->count("cuMemAlloc_v2"), 0);
}

TEST_F(CudaImage, RefusesWhatDoesNotFit) {
  const std::string kept = keep();
  CudaModel made(data);
  const char *words = "load_cuda_image: wrong image; expected a complete one of this archive's kernels, made on such a "
                      "GPU by this driver";
  const auto refuses = [&](const std::string &image) {
    stub->calls.clear();
    EXPECT_EQ(load(made, image), KILN_INVALID_ARGUMENT);
    EXPECT_STREQ(made.error.message, words);
    return stub->count("cuModuleLoadDataEx") == 0;
  };
  for (size_t i = 0; i < kept.size(); ++i) {
    std::string changed = kept;
    changed[i] = static_cast<char>(changed[i] ^ (1 << i % 8));
    ASSERT_TRUE(refuses(changed)) << i;
    ASSERT_TRUE(refuses(kept.substr(0, i))) << i;
  }
  EXPECT_TRUE(refuses(kept + kept));
  CudaImages[0].text = "another hopper";
  EXPECT_TRUE(refuses(kept));
  CudaImages[0] = hopper;
  stub->version = 12050;
  EXPECT_TRUE(refuses(kept));
  stub->version = 12040;
  stub->minor = 1;
  {
    CudaModel other(data);
    EXPECT_EQ(load(other, kept), KILN_INVALID_ARGUMENT);
  }
  stub->minor = 0;
  std::vector<float> rows;
  ASSERT_EQ(made.run({3}, rows), KILN_OK) << made.error.message;
  EXPECT_EQ(rows, cudaRows({3}, 0));
  EXPECT_EQ(load(made, kept), KILN_OK) << "it fits after all";
}

/// Writes the digest of the kernels, the stub's machine and the bytes after the header into an image.
void sign(std::string &image) {
  const int machine[] = {90, 12040};
  uint64_t hash = UINT64_C(0xCBF29CE484222325);
  const auto add = [&hash](const void *from, size_t count) {
    for (size_t i = 0; i < count; ++i)
      hash = (hash ^ static_cast<const unsigned char *>(from)[i]) * UINT64_C(0x100000001B3);
  };
  add(machine, sizeof machine);
  for (int module = 0; module < 2; ++module)
    for (const kiln_cuda_image_t &ptx : CudaImages)
      add(ptx.text, std::strlen(ptx.text) + 1);
  add(&image[16], image.size() - 16);
  std::memcpy(&image[8], &hash, sizeof hash);
}

// A malicious image has the correct digest, and sizes that point anywhere.
TEST_F(CudaImage, ReadsNothingAfterAnImage) {
  const std::string kept = keep();
  std::string same = kept;
  sign(same);
  ASSERT_EQ(same, kept);
  for (uint64_t bytes : {UINT64_MAX, UINT64_MAX - 15, uint64_t{1} << 40, uint64_t{kept.size()},
                         uint64_t{kept.size() - 31}, uint64_t{17}}) {
    std::string image = kept;
    std::memcpy(&image[16], &bytes, sizeof bytes);
    sign(image);
    CudaModel made(data);
    EXPECT_EQ(load(made, image), KILN_INVALID_ARGUMENT) << bytes;
    std::vector<float> rows;
    ASSERT_EQ(made.run({3}, rows), KILN_OK) << made.error.message;
    EXPECT_EQ(rows, cudaRows({3}, 0));
  }
}

TEST_F(CudaImage, OfTheOlderPtxWhereTheDriverIsOld) {
  stub->newerPtx = "hopper";
  const std::string kept = keep();
  EXPECT_EQ(stub->loaded, (std::vector<std::string>(2, "code of ampere")));
  EXPECT_EQ(stub->links, 0);
  CudaModel made(data);
  EXPECT_EQ(load(made, kept), KILN_OK) << made.error.message;
}

// Each driver function in turn fails; the next request must work normally.
TEST_F(CudaImage, WhateverFailsLeavesTheModelAsItWas) {
  const std::string kept = keep();
  for (const bool isLoaded : {false, true}) {
    int failures = 0;
    for (bool isDone = false; !isDone; ++failures) {
      CudaModel made(data);
      const void *image = nullptr;
      size_t bytes = 0;
      const auto act = [&] {
        return isLoaded ? load(made, kept) : kiln_cuda_image(made.model, &image, &bytes, &made.error);
      };
      failAt("*", failures, 999);
      const kiln_status_t status = act();
      isDone = stub->failing != "";
      stub->failing.clear();
      if (!isDone && status) {
        EXPECT_EQ(status, isLoaded && failures == 0 ? KILN_INVALID_ARGUMENT : KILN_DEVICE_ERROR) << made.error.message;
        EXPECT_EQ(image, nullptr);
      }
      EXPECT_EQ(stub->links, 0);
      EXPECT_EQ(*contexts, std::vector{callers});
      EXPECT_EQ(act(), KILN_OK) << made.error.message;
      if (!isLoaded && !isDone)
        EXPECT_NE(image, nullptr);
      std::vector<float> rows;
      ASSERT_EQ(made.run({1}, rows), KILN_OK) << made.error.message;
      EXPECT_EQ(rows, cudaRows({1}, 0));
    }
    EXPECT_GT(failures, 5);
  }
}

TEST_F(CudaImage, ErrorsHaveWords) {
  CountingAllocator counter;
  const kiln_allocator_t functions = counter.get();
  CudaModel made(data, {.allocator = &functions});
  const void *image = nullptr;
  size_t bytes = 0;
  failAt("cuLinkAddData_v2", 0, 218);
  EXPECT_EQ(kiln_cuda_image(made.model, &image, &bytes, &made.error), KILN_DEVICE_ERROR);
  EXPECT_STREQ(made.error.message,
               "cuLinkAddData_v2: call failed; expected success, got CUDA_ERROR_INVALID_PTX (218): no description");
  counter.Limit = counter.Made;
  EXPECT_EQ(kiln_cuda_image(made.model, &image, &bytes, &made.error), KILN_OUT_OF_MEMORY);
  EXPECT_TRUE(std::string(made.error.message).starts_with("the image of a model: no memory; expected "));
  EXPECT_EQ(stub->links, 0);
  counter.Limit = 1000;
  EXPECT_EQ(kiln_cuda_image(made.model, &image, &bytes, &made.error), KILN_OK) << made.error.message;
  EXPECT_EQ(kiln_cuda_image(nullptr, &image, &bytes, &made.error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(made.error.message, "cuda_image: null given; expected a model");
  EXPECT_EQ(kiln_cuda_image(made.model, nullptr, &bytes, &made.error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(made.error.message, "cuda_image: null given; expected places for the image and its size");
  EXPECT_EQ(kiln_load_cuda_image(made.model, nullptr, 5, &made.error), KILN_NULL_ARGUMENT);
  EXPECT_STREQ(made.error.message, "load_cuda_image: null given; expected an image");
  EXPECT_EQ(kiln_load_cuda_image(nullptr, image, bytes, nullptr), KILN_NULL_ARGUMENT);
  EXPECT_EQ(kiln_cuda_assembly_seconds(nullptr), 0);
}

TEST_F(CudaImage, OnACpuThereIsNone) {
  CudaModel cpu(data, {.device = KILN_CPU}, false);
  const void *image = &data;
  size_t bytes = 1;
  EXPECT_EQ(kiln_cuda_image(cpu.model, &image, &bytes, &cpu.error), KILN_OK);
  EXPECT_EQ(image, nullptr);
  EXPECT_EQ(bytes, 0u);
  EXPECT_EQ(kiln_load_cuda_image(cpu.model, "any", 3, &cpu.error), KILN_OK);
  EXPECT_EQ(kiln_cuda_assembly_seconds(cpu.model), 0);
}

// The image is made while calls load kernels: every thread gets the same image.
TEST_F(CudaImage, FromSeveralThreads) {
  CudaModel made(data);
  const void *images[4] = {};
  std::vector<std::thread> threads;
  for (const void *&image : images)
    threads.emplace_back([&] {
      size_t bytes = 0;
      kiln_error_t error;
      EXPECT_EQ(kiln_cuda_image(made.model, &image, &bytes, &error), KILN_OK) << error.message;
      EXPECT_GT(kiln_cuda_assembly_seconds(made.model), 0);
    });
  std::vector<float> rows;
  EXPECT_EQ(made.run({2}, rows), KILN_OK) << made.error.message;
  EXPECT_EQ(rows, cudaRows({2}, 0));
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(std::vector<const void *>(images, images + 4), std::vector<const void *>(4, images[0]));
  EXPECT_EQ(stub->count("cuLinkComplete"), 2);
}

} // namespace
