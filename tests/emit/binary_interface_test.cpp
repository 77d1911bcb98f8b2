// SPDX-License-Identifier: Apache-2.0
//
// The LLVM types of the binary interface have the memory layout of the run time's C structs.
#include "compiler/object/BinaryInterface.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/LLVMContext.h"
#include <cstddef>
#include <gtest/gtest.h>

namespace kiln {
namespace {

struct FieldOfC {
  const char *name;
  size_t offset, bytes;
};

struct StructOfC {
  const char *name;
  abi::Struct structure;
  size_t bytes; // 0: the run time's struct has private fields at its end
  std::vector<FieldOfC> fields;
};

#define KILN_FIELD_OF_C(structure, name)                                                                               \
  {#name, offsetof(kiln_##structure##_t, name), sizeof(kiln_##structure##_t::name)},

std::vector<StructOfC> structsOfC() {
  return {
#define KILN_STRUCT(structure) {#structure, abi::Struct::structure, sizeof(kiln_##structure##_t), {
#define KILN_FIELD(structure, kind, type, name) KILN_FIELD_OF_C(structure, name)
#define KILN_FIELDS(structure, kind, type, name, count) KILN_FIELD_OF_C(structure, name)
#define KILN_REST(structure, declaration)
#define KILN_END(structure)                                                                                            \
  }                                                                                                                    \
  }                                                                                                                    \
  ,
#include "runtime/src/core/model.def"
  };
}

// LLVM lays them out for this process, whose C compiler lays out the C structs.
TEST(BinaryInterface, LlvmAndCAgree) {
  llvm::LLVMContext context;
#if defined(__x86_64__)
  const llvm::DataLayout layout("e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128");
#elif defined(__aarch64__)
  const llvm::DataLayout layout(
      "e-m:e-p270:32:32-p271:32:32-p272:64:64-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32");
#else
  GTEST_SKIP() << "the data layout of this CPU is not written down here";
  const llvm::DataLayout layout("");
#endif
  for (const StructOfC &c : structsOfC()) {
    llvm::StructType *type = abi::typeOf(c.structure, context);
    ASSERT_EQ(type->getNumElements(), c.fields.size()) << c.name;
    for (auto [index, field] : llvm::enumerate(c.fields)) {
      EXPECT_EQ(layout.getStructLayout(type)->getElementOffset(index).getFixedValue(), field.offset)
          << c.name << "." << field.name;
      EXPECT_EQ(layout.getTypeAllocSize(type->getElementType(index)).getFixedValue(), field.bytes)
          << c.name << "." << field.name;
    }
    if (c.structure != abi::Struct::worker) // which ends with fields private to the run time
      EXPECT_EQ(layout.getTypeAllocSize(type).getFixedValue(), c.bytes) << c.name;
  }
}

TEST(BinaryInterface, LlvmAndMlirHaveTheSameFields) {
  llvm::LLVMContext context;
  mlir::MLIRContext mlirContext;
  mlirContext.loadDialect<mlir::LLVM::LLVMDialect>();
  for (const StructOfC &c : structsOfC()) {
    auto fields = abi::typeOf(c.structure, &mlirContext).getBody();
    llvm::StructType *type = abi::typeOf(c.structure, context);
    ASSERT_EQ(fields.size(), type->getNumElements());
    for (auto [field, element] : llvm::zip_equal(fields, type->elements())) {
      EXPECT_EQ(mlir::isa<mlir::LLVM::LLVMPointerType>(field), element->isPointerTy()) << c.name;
      EXPECT_EQ(field.isInteger(32), element->isIntegerTy(32)) << c.name;
      EXPECT_EQ(field.isInteger(64), element->isIntegerTy(64)) << c.name;
    }
  }
}

TEST(BinaryInterface, FieldsAreSetInAnyOrderAndZeroElse) {
  llvm::LLVMContext context;
  llvm::Constant *extent = abi::StructConstant(abi::Struct::extent, context)
                               .set(abi::extent::symbol, std::vector<uint64_t>{uint64_t(-1)})
                               .set(abi::extent::factor, 7)
                               .get();
  auto word = [](llvm::Constant *value) { return llvm::cast<llvm::ConstantInt>(value)->getSExtValue(); };
  EXPECT_EQ(word(extent->getAggregateElement(abi::extent::offset)), 0);
  EXPECT_EQ(word(extent->getAggregateElement(abi::extent::factor)), 7);
  EXPECT_EQ(word(extent->getAggregateElement(abi::extent::symbol)->getAggregateElement(0u)), -1);
  EXPECT_EQ(word(extent->getAggregateElement(abi::extent::symbol)->getAggregateElement(1u)), 0);
}

} // namespace
} // namespace kiln
