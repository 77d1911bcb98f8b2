// SPDX-License-Identifier: Apache-2.0
//
// A kernel's object file, linked into this process. The test supplies the run-time functions that it calls.
#pragma once

#include "Prepare.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "targets/cuda/Compile.h"
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace kiln::testing {

/// Returns a compiler whose host code is for this process.
inline std::unique_ptr<KernelCompiler> hostCompiler() {
#if defined(__aarch64__)
  return cuda::createKernelCompiler("aarch64-unknown-linux-gnu", "generic");
#else
  return cuda::createKernelCompiler("x86_64-unknown-linux-gnu", "x86-64");
#endif
}

inline KernelObject compileObject(const std::string &text, const ScheduleConfig *config = nullptr) {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module = prepare(context, text);
  auto object = hostCompiler()->compile(*module->getOps<mlir::func::FuncOp>().begin(), "some_kernel", config);
  if (failed(object))
    throw std::runtime_error("the kernel does not compile");
  return *object;
}

class KernelLibrary {
public:
  explicit KernelLibrary(const std::string &object) {
    const std::string stem = ::testing::TempDir() + "kiln_cuda_" + std::to_string(getpid());
    std::ofstream(stem + ".o", std::ios::binary) << object;
    // Symbols of objects are hidden, like those of an archive.
    std::ofstream(stem + ".c") << R"(
      typedef unsigned u;
      int (*launch)(void *, const void *, u, u, u, u, void **);
      int kiln_cuda_launch(void *worker, const void *module, u function, u x, u y, u z, void **parameters) {
        return launch(worker, module, function, x, y, z, parameters);
      }
      int (*launch_tma)(void *, const void *, u, u, u, const void *, void **);
      int kiln_cuda_launch_tma(void *worker, const void *module, u function, u blocks, u map_count, const void *maps,
                                  void **parameters) {
        return launch_tma(worker, module, function, blocks, map_count, maps, parameters);
      }
      extern int some_kernel(void);
      extern const char some_kernel_module[];
      void *stub = (void *)some_kernel;
      const void *module = some_kernel_module;
    )";
    const std::string command = "cc -shared -fPIC -o " + stem + ".so " + stem + ".c " + stem + ".o";
    EXPECT_EQ(std::system(command.c_str()), 0);
    handle = dlopen((stem + ".so").c_str(), RTLD_NOW);
    EXPECT_TRUE(handle) << dlerror();
    for (const char *suffix : {".o", ".c", ".so"})
      unlink((stem + suffix).c_str());
  }
  KernelLibrary(const KernelLibrary &) = delete;
  KernelLibrary &operator=(const KernelLibrary &) = delete;
  ~KernelLibrary() { dlclose(handle); }

  /// "launch", "launch_tma": pointers through which the run-time functions are called; the test sets them. "stub",
  /// "module": the kernel's symbols.
  template <class T> T &get(const char *name) const { return *static_cast<T *>(dlsym(handle, name)); }

private:
  void *handle = nullptr;
};

} // namespace kiln::testing
