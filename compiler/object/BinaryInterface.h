// SPDX-License-Identifier: Apache-2.0
//
// The structs of runtime/src/core/model.def as LLVM types, and their fields by name: abi::frame::arena. Offsets follow
// from the data layout of the target.
#pragma once

#include "runtime/src/core/model.h"

#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "llvm/IR/Constants.h"
#include <vector>

namespace kiln::abi {

// The positions of the fields: enum frame::Field { worker, weights, .. }.
#define KILN_STRUCT(structure)                                                                                         \
  namespace structure {                                                                                                \
  enum Field : unsigned {
#define KILN_FIELD(structure, kind, type, name) name,
#define KILN_FIELDS(structure, kind, type, name, count) name,
#define KILN_REST(structure, declaration)
#define KILN_END(structure)                                                                                            \
  numFields                                                                                                            \
  }                                                                                                                    \
  ;                                                                                                                    \
  }
#include "runtime/src/core/model.def"

enum class Struct {
#define KILN_STRUCT(structure) structure,
#define KILN_FIELD(structure, kind, type, name)
#define KILN_FIELDS(structure, kind, type, name, count)
#define KILN_REST(structure, declaration)
#define KILN_END(structure)
#include "runtime/src/core/model.def"
};

/// Returns the type of a struct, without the fields that only the run time uses.
llvm::StructType *typeOf(Struct structure, llvm::LLVMContext &context);
mlir::LLVM::LLVMStructType typeOf(Struct structure, mlir::MLIRContext *context);

/// A constant struct, field by field; a field that is not set is zero.
class StructConstant {
public:
  StructConstant(Struct structure, llvm::LLVMContext &context);

  StructConstant &set(unsigned field, llvm::Constant *value);
  /// Sets an integer field.
  StructConstant &set(unsigned field, uint64_t value);
  /// Sets an array of integers or structs; elements after the values are zero.
  StructConstant &set(unsigned field, llvm::ArrayRef<uint64_t> values);
  StructConstant &set(unsigned field, llvm::ArrayRef<llvm::Constant *> values);

  llvm::Constant *get() const { return llvm::ConstantStruct::get(type, fields); }

private:
  llvm::StructType *type;
  std::vector<llvm::Constant *> fields;
};

} // namespace kiln::abi
