// SPDX-License-Identifier: Apache-2.0
//
// lower-graph LIBRARY: traces the model of a near miss that compiled, checks its graph and forms its kernels. Exits
// with 0, or with 1 after diagnostics.
#include <dlfcn.h>

#include "compiler/driver/Lower.h"
#include "compiler/pipeline/ImportModel.h"
#include "compiler/pipeline/Pipeline.h"
#include "targets/registry.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : nullptr;
  auto *trace = library ? reinterpret_cast<void (*)(kiln::Graph &)>(dlsym(library, "kiln_trace")) : nullptr;
  if (!trace) {
    llvm::errs() << "error: cannot load the library: " << dlerror() << "\n";
    return 2;
  }
  kiln::Graph graph;
  trace(graph);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  kiln::loadDialects(context);
  mlir::OwningOpRef<mlir::ModuleOp> module = kiln::importModel(graph, &context, "m");
  const kiln::Target *target = kiln::findTarget("x86-64-v3");
  return module && succeeded(kiln::lowerToKernels(*module, *target, {})) ? 0 : 1;
}
