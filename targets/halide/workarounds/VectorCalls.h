// SPDX-License-Identifier: Apache-2.0
//
// Calls of vector functions, for versions of Halide that do not link their code. Halide would call the function for
// each lane. This pass passes a pointer to a struct with the vectors, from which LLVM 22 restores the call before it
// inlines the function (compiler/object/InlineFunctions.h).
#pragma once

#include "targets/halide/Compat.h"
#include <set>

namespace kiln::halide {

/// A lowering pass. `functions` are the names of the functions that can be linked: NAME, NAMEx4, NAMEx8.
class PassVectorsInMemory : public Halide::Internal::IRMutator {
public:
  explicit PassVectorsInMemory(std::set<std::string> functions) : functions(std::move(functions)) {}

private:
  using IRMutator::visit;
  Halide::Expr visit(const Halide::Internal::Call *op) override;

  /// Returns the number of lanes that one call computes; 0 if there are only calls for each lane.
  int lanesOf(const std::string &name, int lanes) const;

  std::set<std::string> functions;
};

} // namespace kiln::halide
