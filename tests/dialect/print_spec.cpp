// SPDX-License-Identifier: Apache-2.0
//
// print-spec NAME [-g]: imports a spec and prints the module, with -g its locations as well.
#include <cstring>

#include "compiler/frontend/Import.h"
#include "lstm.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"
#include "models/bert/bert.h"
#include "models/gpt2/gpt2.h"
#include "transformer/transformer.h"
#include "llvm/Support/raw_ostream.h"

static kiln::Graph traceSpec(llvm::StringRef name) {
  if (name == "gpt2")
    return kiln::trace<specs::Gpt2<2, 768, 12>>();
  if (name == "bert")
    return kiln::trace<specs::BertBase>();
  if (name == "lstm")
    return kiln::trace<specs::Lstm256>();
  if (name == "transformer")
    return kiln::trace<specs::TransformerBase>();
  llvm::errs() << "unknown spec " << name << "\n";
  std::exit(1);
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 1;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module = kiln::importGraph(traceSpec(argv[1]), &context, argv[1]);
  if (!module)
    return 1;
  mlir::OpPrintingFlags flags;
  if (argc > 2 && std::strcmp(argv[2], "-g") == 0)
    flags.enableDebugInfo(true, true);
  module->print(llvm::outs(), flags);
  llvm::outs() << "\n";
  return 0;
}
