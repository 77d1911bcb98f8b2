// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda/tile/Mma.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace kiln::cuda::tile {

using namespace mlir;

Type elementOf(Builder &b, MmaType type) {
  return type == MmaType::F16 ? Type(b.getF16Type()) : type == MmaType::BF16 ? Type(b.getBF16Type()) : b.getF32Type();
}

int64_t bytesOf(MmaType type) { return type == MmaType::TF32 ? 4 : 2; }

/// Returns the four fields of a structure, the form in which instructions return registers.
static Values fieldsOf(Builder &b, Value structure) {
  Values fields;
  for (int64_t i = 0; i < 4; ++i)
    fields.push_back(LLVM::ExtractValueOp::create(b, structure, i));
  return fields;
}

Values loadMatrices(Builder &b, Value address, bool isTransposed) {
  MLIRContext *context = b.getContext();
  auto type = LLVM::LLVMStructType::getLiteral(context, SmallVector<Type>(4, b.getI32Type()));
  const auto layout = isTransposed ? NVVM::MMALayout::col : NVVM::MMALayout::row;
  auto shape = NVVM::LdStMatrixShapeAttr::get(context, 8, 8);
  return fieldsOf(b,
                  NVVM::LdMatrixOp::create(b, type, address, uint32_t(4), layout, shape, NVVM::LdStMatrixEltType::B16));
}

Value roundToTf32(Builder &b, Value x) {
  return NVVM::ConvertFloatToTF32Op::create(b, TypeRange(b.getI32Type()), x, NVVM::FPRoundingMode::RNA);
}

Value packFactors(Builder &b, MmaType type, ValueRange numbers) {
  if (type == MmaType::TF32)
    return roundToTf32(b, numbers.front());
  Type element = elementOf(b, type);
  Value pair = LLVM::UndefOp::create(b, VectorType::get(2, element));
  for (int64_t i : {0, 1})
    pair = LLVM::InsertElementOp::create(b, pair, b.createOrFold<arith::TruncFOp>(element, numbers[size_t(i)]),
                                         b.integer(i));
  return LLVM::BitcastOp::create(b, b.getI32Type(), pair);
}

/// For this op, two f16 are a vector; everything else is an i32.
static Values asOperands(Builder &b, MmaType type, ArrayRef<Value> registers) {
  Values operands;
  for (Value value : registers)
    operands.push_back(
        type == MmaType::F16 ? Value(LLVM::BitcastOp::create(b, VectorType::get(2, b.getF16Type()), value)) : value);
  return operands;
}

Values multiplyAdd(Builder &b, MmaType type, ArrayRef<Value> x, ArrayRef<Value> y, ValueRange sums) {
  const auto factor = type == MmaType::F16    ? NVVM::MMATypes::f16
                      : type == MmaType::BF16 ? NVVM::MMATypes::bf16
                                              : NVVM::MMATypes::tf32;
  auto result = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(4, b.getF32Type()));
  const int64_t shape[] = {16, 8, mmaKBytes / bytesOf(type)};
  return fieldsOf(b, NVVM::MmaOp::create(b, result, asOperands(b, type, x), asOperands(b, type, y), sums, shape,
                                         std::nullopt, std::nullopt, std::array{factor, factor},
                                         std::array{NVVM::MMALayout::row, NVVM::MMALayout::col}));
}

} // namespace kiln::cuda::tile
