// SPDX-License-Identifier: Apache-2.0
//
// What a module is evaluated with: values of its named extents, calls of all entries one after another, random inputs
// and weights. The same seed gives the same ones on every machine.
#pragma once

#include "compiler/dialect/KilnDialect.h"
#include "compiler/verify/ModuleInterpreter.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace kiln::verify {

/// One call of an entry.
struct EntryCall {
  std::string entry;
  std::vector<std::int64_t> extents; // of the module's symbols
  std::vector<SharedTensor> inputs;
  std::string words; // "tokens=3, call 2"; empty if there is nothing to tell apart
};

/// Calls that share states, which are zeros before the first.
using Session = std::vector<EntryCall>;

struct RandomCalls {
  std::vector<std::string> symbols; // the named extents of the module
  std::vector<Session> sessions;
  double operations = 0;       // of all calls, about
  bool isSmallestOnly = false; // larger extents take too long
};

/// Sessions with the smallest extents, with some between, and with the largest; the entries twice if there are states.
/// All but the smallest are left away, or made smaller, where a session would take more than `most` scalar operations.
/// The module is as imported.
RandomCalls drawCalls(mlir::ModuleOp module, std::uint64_t seed, double most);

/// Weights for the parameters of a module as imported, made when they are asked for.
class RandomWeights {
public:
  RandomWeights(mlir::ModuleOp module, std::uint64_t seed);

  /// Throws std::runtime_error for a name that the module does not have.
  SharedTensor get(const std::string &pattern, const std::string &name);
  /// The same, with the numbers that stand for it where the module stores it in fewer bits.
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
