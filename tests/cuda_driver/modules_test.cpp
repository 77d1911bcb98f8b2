// SPDX-License-Identifier: Apache-2.0
//
// Modules, their functions, and which images load on which device.
#include <cstring>

#include "client.h"

namespace kiln::fake {
namespace {

class Modules : public CudaContext {
protected:
  static CUresult load(const std::string &text) {
    CUmodule made = nullptr;
    return CU(cuModuleLoadData)(&made, text.c_str());
  }
  static std::string head(const char *version, const char *target) {
    return std::string(".version ") + version + "\n.target " + target + "\n.address_size 64\n";
  }
};

TEST_F(Modules, WhatAFunctionSaysOfItself) {
  const CUfunction function = kernel("bounded", boundedKernel);
  const auto get = [&](int attribute) {
    int value = -1;
    EXPECT_EQ(CU(cuFuncGetAttribute)(&value, attribute, function), CUDA_SUCCESS);
    return value;
  };
  EXPECT_EQ(get(functionMaxThreads), 64);
  EXPECT_EQ(get(functionStaticShared), 64);
  EXPECT_EQ(get(functionMaxDynamicShared), 49152 - 64);
  EXPECT_EQ(get(functionPtxVersion), 80);
  EXPECT_EQ(get(functionBinaryVersion), 90);
  OK(CU(cuFuncSetAttribute)(function, functionMaxDynamicShared, 232448 - 64));
  EXPECT_EQ(CU(cuFuncSetAttribute)(function, functionMaxDynamicShared, 232448 - 63), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(function, nullptr, 65), CUDA_ERROR_INVALID_VALUE);
  OK(launch(function, nullptr, 64));
  CUfunction again = nullptr;
  OK(CU(cuModuleGetFunction)(&again, module, "bounded"));
  EXPECT_EQ(again, function);
  EXPECT_EQ(CU(cuModuleGetFunction)(&again, module, "other"), CUDA_ERROR_NOT_FOUND);
  int value = 0;
  EXPECT_EQ(CU(cuFuncGetAttribute)(&value, 99, function), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuFuncSetAttribute)(function, functionRegisters, 1), CUDA_ERROR_INVALID_VALUE);
  OK(CU(cuModuleUnload)(module));
  EXPECT_EQ(launch(function, nullptr, 64), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuModuleUnload)(module), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Modules, TextsThatAreNoPtx) {
  CUmodule made = nullptr;
  char errors[200] = "", informations[100] = "x";
  CUjit_option options[] = {jitErrorLogBytes, jitErrorLog, jitInfoLog, jitInfoLogBytes};
  void *values[] = {reinterpret_cast<void *>(sizeof errors), errors, informations,
                    reinterpret_cast<void *>(sizeof informations)};
  const std::string text = head("7.0", "sm_80") + ".visible .entry k() {\nfrobnicate.u32 %r1;\nret;\n}\n";
  EXPECT_EQ(CU(cuModuleLoadDataEx)(&made, text.c_str(), 4, options, values), CUDA_ERROR_INVALID_PTX);
  EXPECT_NE(std::string(errors).find("line 5"), std::string::npos) << errors;
  EXPECT_NE(std::string(errors).find("frobnicate"), std::string::npos) << errors;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values[0]), std::strlen(errors));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values[3]), 0U);
  values[0] = reinterpret_cast<void *>(8);
  EXPECT_EQ(CU(cuModuleLoadDataEx)(&made, text.c_str(), 2, options, values), CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(std::string(errors), "ptxas f");
  options[0] = 1000;
  EXPECT_EQ(CU(cuModuleLoadDataEx)(&made, text.c_str(), 1, options, values), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(load("hello"), CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(load("\177ELF..."), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(CU(cuModuleLoadData)(&made, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Modules, TargetsAndVersions) {
  const auto text = [](const char *version, const char *target) {
    return head(version, target) + ".visible .entry k() {\nret;\n}\n";
  };
  OK(load(text("7.0", "sm_80")));
  OK(load(text("8.0", "sm_90a")));
  OK(load(text("8.4", "sm_90")));
  EXPECT_EQ(load(text("8.5", "sm_80")), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_EQ(load(text("8.4", "sm_100")), CUDA_ERROR_NO_BINARY_FOR_GPU);
  restart("8.0,8.6", 11000);
  OK(load(text("7.0", "sm_80")));
  EXPECT_EQ(load(text("7.1", "sm_80")), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_EQ(load(text("7.0", "sm_86")), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(load(text("7.0", "sm_90a")), CUDA_ERROR_NO_BINARY_FOR_GPU);
  restart("12.0", 13000);
  OK(load(text("9.0", "sm_90")));
  EXPECT_EQ(load(text("8.0", "sm_90a")), CUDA_ERROR_NO_BINARY_FOR_GPU); // for 9.0 only
  restart("9.0", 12080);
  OK(load(text("8.7", "sm_80")));
  EXPECT_EQ(load(text("8.8", "sm_80")), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
}

TEST_F(Modules, UnloadingWaits) {
  const CUdeviceptr pointer = upload({1});
  OK(twice(stream(), pointer));
  OK(CU(cuModuleUnload)(module));
  EXPECT_EQ(waiting(), 0U);
  EXPECT_EQ(number(pointer), 2U);
}

TEST_F(Modules, LinkedCodeIsForOneDevice) {
  char errors[200] = "";
  CUjit_option options[] = {jitErrorLog, jitErrorLogBytes};
  void *values[] = {errors, reinterpret_cast<void *>(sizeof errors)};
  CUlinkState link = nullptr;
  void *cubin = nullptr;
  std::size_t bytes = 0;
  OK(CU(cuLinkCreate_v2)(2, options, values, &link));
  EXPECT_EQ(CU(cuLinkComplete)(link, &cubin, &bytes), CUDA_ERROR_INVALID_VALUE);
  std::string text(simpleKernels), wrong("nonsense");
  EXPECT_EQ(CU(cuLinkAddData_v2)(link, inputPtx, wrong.data(), wrong.size(), "n", 0, nullptr, nullptr),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_NE(std::string(errors), "");
  EXPECT_EQ(CU(cuLinkAddData_v2)(link, 4, text.data(), text.size(), "n", 0, nullptr, nullptr),
            CUDA_ERROR_NOT_SUPPORTED);
  OK(CU(cuLinkAddData_v2)(link, inputPtx, text.data(), text.size() + 1, "n", 0, nullptr, nullptr));
  OK(CU(cuLinkComplete)(link, &cubin, &bytes));
  const std::string kept(static_cast<char *>(cubin), bytes);
  OK(CU(cuLinkDestroy)(link));
  EXPECT_EQ(CU(cuLinkDestroy)(link), CUDA_ERROR_INVALID_HANDLE);
  OK(CU(cuModuleLoadData)(&module, kept.data()));
  const CUdeviceptr pointer = upload({4});
  OK(twice(nullptr, pointer));
  EXPECT_EQ(number(pointer), 8U);
  restart("8.0");
  EXPECT_EQ(CU(cuModuleLoadData)(&module, kept.data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

} // namespace
} // namespace kiln::fake
