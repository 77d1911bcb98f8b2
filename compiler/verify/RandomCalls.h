// SPDX-License-Identifier: Apache-2.0
//
// The calls with which a module is evaluated: values of its symbolic dimensions, calls of all entries one after
// another, random inputs and weights. The same seed produces the same calls on every machine.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "compiler/verify/ModuleInterpreter.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace kiln::verify {

/// One call of an entry.
struct EntryCall {
  std::string entry;
  std::vector<std::int64_t> extents; // values of the module's symbols
  std::vector<SharedTensor> inputs;
  std::string words; // "tokens=3, call 2"; empty if there is nothing to tell apart
};

/// Calls that share states, which are zeros before the first.
using Session = std::vector<EntryCall>;

struct RandomCalls {
  std::vector<std::string> symbols; // the symbolic dimensions of the module
  std::vector<Session> sessions;
  double operations = 0;       // approximate, of all calls
  bool isSmallestOnly = false; // larger extents take too long
};

/// Returns sessions with the smallest extents, with some between, and with the largest. They call the entries twice if
/// there are states. Sessions that would take more than `most` scalar operations are left out or made smaller, except
/// for the smallest. The module is as imported.
RandomCalls drawCalls(mlir::ModuleOp module, std::uint64_t seed, double most);

/// Weights for the parameters of a module as imported, made on demand.
class RandomWeights {
public:
  RandomWeights(mlir::ModuleOp module, std::uint64_t seed);

  /// Reads the storage formats of the module's weights again.
  void update(mlir::ModuleOp module);
  /// Throws std::runtime_error for a name that the module does not have.
  SharedTensor get(const std::string &pattern, const std::string &name);
  /// Like get(), with the dequantised values if the module quantises the weight.
  SharedTensor getStored(const std::string &pattern, const std::string &name);

private:
  struct Form {
    ElementType element;
    TensorShape shape;
    mlir::kiln::StorageAttr storage;
  };
  std::uint64_t seed;
  llvm::StringMap<Form> forms;         // by pattern
  llvm::StringMap<SharedTensor> known; // by name
};

} // namespace kiln::verify
