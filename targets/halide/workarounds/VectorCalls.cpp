// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/workarounds/VectorCalls.h"

#include "compiler/object/InlineFunctions.h"
#include "targets/halide/translate/VectorFunctions.h"

namespace kiln::halide {

using namespace Halide::Internal;
using Halide::Expr;

/// Returns the lanes of a vector from `first` on. Lanes beyond the last one repeat it.
static Expr slice(const Expr &vector, int first, int lanes) {
  if (lanes == vector.type().lanes())
    return vector;
  std::vector<int> taken;
  for (int i = first; i < first + lanes; ++i)
    taken.push_back(std::min(i, vector.type().lanes() - 1));
  return Shuffle::make({vector}, taken);
}

/// Calls a function of vectors of `type`, which is that of the result, with operands in memory.
static Expr callInMemory(const std::string &function, Halide::Type type, std::vector<Expr> operands) {
  operands.insert(operands.begin(), make_zero(type)); // the place of the result
  Expr memory = Call::make(Halide::Handle(), Call::make_struct, operands, Call::Intrinsic);
  Expr call = Call::make(Halide::Handle(), function + inMemorySuffix.str(), {memory}, Call::Extern);
  const std::string result = unique_name("called");
  Expr load = Load::make(type, result, Ramp::make(0, 1, type.lanes()), Halide::Buffer<>(), PipelineParameter(),
                         const_true(type.lanes()), ModulusRemainder());
  return Let::make(result, call, load);
}

/// As Halide does for functions that it finds: from the next power of two down, then twice as many.
int PassVectorsInMemory::lanesOf(const std::string &name, int lanes) const {
  int all = 1;
  while (all < lanes)
    all *= 2;
  auto exists = [&](int count) { return functions.count(name + "x" + std::to_string(count)) != 0; };
  for (int count = all; count > 1; count /= 2)
    if (exists(count))
      return count;
  return exists(2 * all) ? 2 * all : 0;
}

Expr PassVectorsInMemory::visit(const Call *op) {
  Expr mutated = IRMutator::visit(op);
  const Call &call = *mutated.as<Call>();
  const int lanes = call.type.lanes();
  if (lanes == 1 || !llvm::StringRef(call.name).starts_with(vectorFunctionPrefix))
    return mutated;
  const int each = lanesOf(call.name, lanes);
  if (each == 0)
    return mutated;
  std::vector<Expr> results;
  for (int first = 0; first < lanes; first += each) {
    std::vector<Expr> operands;
    for (const Expr &operand : call.args)
      operands.push_back(slice(operand, first, each));
    results.push_back(callInMemory(call.name + "x" + std::to_string(each), call.type.with_lanes(each), operands));
  }
  return slice(results.size() == 1 ? results.front() : Shuffle::make_concat(results), 0, lanes);
}

} // namespace kiln::halide
