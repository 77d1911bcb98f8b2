// SPDX-License-Identifier: Apache-2.0
#include "compiler/object/BinaryInterface.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/IR/DerivedTypes.h"

namespace kiln::abi {

namespace {

/// LLVM's types for the kinds of model.def.
struct LlvmTypes {
  using Type = llvm::Type *;
  llvm::LLVMContext &context;

  Type POINTER() const { return llvm::PointerType::getUnqual(context); }
  Type I32() const { return llvm::Type::getInt32Ty(context); }
  Type I64() const { return llvm::Type::getInt64Ty(context); }
  Type extent() const { return typeOf(Struct::extent, context); }
  Type weight() const { return typeOf(Struct::weight, context); }
  Type array(Type element, unsigned count) const { return llvm::ArrayType::get(element, count); }
  llvm::StructType *structure(llvm::ArrayRef<Type> fields) const { return llvm::StructType::get(context, fields); }
};

struct MlirTypes {
  using Type = mlir::Type;
  mlir::MLIRContext *context;

  Type POINTER() const { return mlir::LLVM::LLVMPointerType::get(context); }
  Type I32() const { return mlir::IntegerType::get(context, 32); }
  Type I64() const { return mlir::IntegerType::get(context, 64); }
  Type extent() const { return typeOf(Struct::extent, context); }
  Type weight() const { return typeOf(Struct::weight, context); }
  Type array(Type element, unsigned count) const { return mlir::LLVM::LLVMArrayType::get(element, count); }
  mlir::LLVM::LLVMStructType structure(llvm::ArrayRef<Type> fields) const {
    return mlir::LLVM::LLVMStructType::getLiteral(context, fields);
  }
};

template <class Types> std::vector<typename Types::Type> fieldsOf(Struct structure, const Types &types) {
  switch (structure) {
#define KILN_STRUCT(structure)                                                                                         \
  case Struct::structure:                                                                                              \
    return {
#define KILN_FIELD(structure, kind, type, name) types.kind(),
#define KILN_FIELDS(structure, kind, type, name, count) types.array(types.kind(), count),
#define KILN_REST(structure, declaration)
#define KILN_END(structure)                                                                                            \
  }                                                                                                                    \
  ;
#include "runtime/src/core/model.def"
  }
  llvm_unreachable("no struct of model.def");
}

} // namespace

llvm::StructType *typeOf(Struct structure, llvm::LLVMContext &context) {
  LlvmTypes types{context};
  return types.structure(fieldsOf(structure, types));
}

mlir::LLVM::LLVMStructType typeOf(Struct structure, mlir::MLIRContext *context) {
  MlirTypes types{context};
  return types.structure(fieldsOf(structure, types));
}

StructConstant::StructConstant(Struct structure, llvm::LLVMContext &context) : type(typeOf(structure, context)) {
  for (llvm::Type *field : type->elements())
    fields.push_back(llvm::Constant::getNullValue(field));
}

StructConstant &StructConstant::set(unsigned field, llvm::Constant *value) {
  assert(value->getType() == type->getElementType(field) && "the field has another type");
  fields[field] = value;
  return *this;
}

StructConstant &StructConstant::set(unsigned field, uint64_t value) {
  return set(field, llvm::ConstantInt::get(type->getElementType(field), value));
}

StructConstant &StructConstant::set(unsigned field, llvm::ArrayRef<uint64_t> values) {
  llvm::Type *element = llvm::cast<llvm::ArrayType>(type->getElementType(field))->getElementType();
  std::vector<llvm::Constant *> constants;
  for (uint64_t value : values)
    constants.push_back(llvm::ConstantInt::get(element, value));
  return set(field, constants);
}

StructConstant &StructConstant::set(unsigned field, llvm::ArrayRef<llvm::Constant *> values) {
  auto *array = llvm::cast<llvm::ArrayType>(type->getElementType(field));
  std::vector<llvm::Constant *> elements(values);
  assert(elements.size() <= array->getNumElements() && "more values than the array has elements");
  elements.resize(array->getNumElements(), llvm::Constant::getNullValue(array->getElementType()));
  return set(field, llvm::ConstantArray::get(array, elements));
}

} // namespace kiln::abi
