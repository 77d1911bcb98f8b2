// SPDX-License-Identifier: Apache-2.0
//
// Only this file knows halide_buffer_t (HalideRuntime.h). A tensor descriptor is a halide_buffer_t followed by its
// dimensions. Halide's dimension 0 is the innermost one, which is the tensor's last.
#include "targets/halide/Abi.h"

#include "targets/halide/translate/Translator.h"
#include "llvm/ADT/STLExtras.h"

namespace kiln::halide {

using namespace mlir;

namespace {

/// The fields of halide_buffer_t and halide_dimension_t in declaration order.
enum BufferField { device, deviceInterface, host, flags, type, rank, dimensions, padding, numBufferFields };
enum DimensionField { minimum, extent, stride, dimensionFlags, numDimensionFields };

/// Returns the element type in memory: a boolean occupies a byte.
halide_type_t storedElement(Type element) {
  halide_type_t type = elementType(element);
  type.bits = std::max<uint8_t>(type.bits, 8);
  return type;
}

/// Returns a halide_type_t packed into 32 bits: code, bits, lanes.
int32_t typeWord(Type element) {
  const halide_type_t type = storedElement(element);
  return type.code | type.bits << 8 | type.lanes << 16;
}

/// Writes the fields of structs in memory.
class FieldWriter {
public:
  FieldWriter(OpBuilder &builder, Location loc)
      : builder(builder), loc(loc), i32(builder.getI32Type()), i64(builder.getI64Type()),
        pointer(LLVM::LLVMPointerType::get(builder.getContext())) {
    MLIRContext *context = builder.getContext();
    bufferType = LLVM::LLVMStructType::getLiteral(context, {i64, pointer, pointer, i64, i32, i32, pointer, pointer});
    dimensionType = LLVM::LLVMStructType::getLiteral(context, {i32, i32, i32, i32});
    assert(bufferType.getBody().size() == numBufferFields && dimensionType.getBody().size() == numDimensionFields);
  }

  Value constant(Type type, int64_t value) {
    return LLVM::ConstantOp::create(builder, loc, type, builder.getIntegerAttr(type, value));
  }
  Value narrow(Value value) { return LLVM::TruncOp::create(builder, loc, i32, value); }
  /// Returns the address of element `index` of an array of structs.
  Value at(LLVM::LLVMStructType structure, Value first, int32_t index) {
    return LLVM::GEPOp::create(builder, loc, pointer, structure, first, ArrayRef<LLVM::GEPArg>{index});
  }
  void store(LLVM::LLVMStructType structure, Value memory, int32_t field, Value value) {
    Value address = LLVM::GEPOp::create(builder, loc, pointer, structure, memory, ArrayRef<LLVM::GEPArg>{0, field});
    LLVM::StoreOp::create(builder, loc, value, address);
  }

  /// Returns the address in a descriptor.
  Value load(Value memory) {
    Value address = LLVM::GEPOp::create(builder, loc, pointer, bufferType, memory, ArrayRef<LLVM::GEPArg>{0, host});
    return LLVM::LoadOp::create(builder, loc, pointer, address);
  }

  /// Writes the descriptor of `tensor` to `memory` and returns the address after it.
  Value describe(const KernelArgument &tensor, Value memory) {
    Value zero = constant(i64, 0), null = LLVM::ZeroOp::create(builder, loc, pointer);
    Value first = at(bufferType, memory, 1);
    store(bufferType, memory, device, zero);
    store(bufferType, memory, deviceInterface, null);
    store(bufferType, memory, host, tensor.value);
    store(bufferType, memory, flags, zero);
    store(bufferType, memory, type, constant(i32, typeWord(tensor.element)));
    store(bufferType, memory, rank, constant(i32, tensor.extents.size()));
    store(bufferType, memory, dimensions, first);
    store(bufferType, memory, padding, null);
    Value elements = constant(i64, 1);
    for (auto [index, length] : llvm::enumerate(llvm::reverse(tensor.extents))) {
      Value dimension = at(dimensionType, first, index);
      store(dimensionType, dimension, minimum, constant(i32, 0));
      store(dimensionType, dimension, extent, narrow(length));
      store(dimensionType, dimension, stride, narrow(elements));
      store(dimensionType, dimension, dimensionFlags, constant(i32, 0));
      elements = LLVM::MulOp::create(builder, loc, elements, length);
    }
    return at(dimensionType, first, tensor.extents.size());
  }

private:
  OpBuilder &builder;
  Location loc;
  Type i32, i64, pointer;
  LLVM::LLVMStructType bufferType, dimensionType;
};

class HalideAbi : public KernelAbi {
public:
  StringRef hookPrefix() const override { return "halide_"; }

  // Targets with smaller pointers need less; they use the host's sizes, too.
  int64_t descriptorBytes(int64_t rank) const override {
    return sizeof(halide_buffer_t) + rank * int64_t(sizeof(halide_dimension_t));
  }

  LLVM::LLVMFunctionType functionType(TypeRange arguments) const override {
    assert(!arguments.empty() && "a kernel has a result");
    MLIRContext *context = arguments.front().getContext();
    Type i32 = IntegerType::get(context, 32), pointer = LLVM::LLVMPointerType::get(context);
    SmallVector<Type> types{pointer};
    for (Type argument : arguments)
      types.push_back(argument.isIndex() ? i32 : pointer);
    return LLVM::LLVMFunctionType::get(i32, types);
  }

  Value emitCall(OpBuilder &builder, Location loc, Value kernel, Value worker, ArrayRef<KernelArgument> arguments,
                 Value memory) const override {
    FieldWriter writer(builder, loc);
    SmallVector<Value> operands{kernel, worker};
    SmallVector<Type> types;
    for (const KernelArgument &argument : arguments) {
      if (!argument.element) {
        operands.push_back(writer.narrow(argument.value));
        types.push_back(builder.getIndexType());
        continue;
      }
      operands.push_back(memory);
      types.push_back(memory.getType());
      memory = writer.describe(argument, memory);
    }
    return LLVM::CallOp::create(builder, loc, functionType(types), operands).getResult();
  }

  uint64_t describe(void *address, Type element, ArrayRef<int64_t> shape, char *memory) const override {
    auto *buffer = new (memory) halide_buffer_t();
    buffer->host = static_cast<uint8_t *>(address);
    buffer->type = storedElement(element);
    buffer->dimensions = int32_t(shape.size());
    buffer->dim = reinterpret_cast<halide_dimension_t *>(buffer + 1);
    int64_t elements = 1;
    for (auto [index, length] : llvm::enumerate(llvm::reverse(shape))) {
      new (buffer->dim + index) halide_dimension_t(0, int32_t(length), int32_t(elements));
      elements *= length;
    }
    return reinterpret_cast<uint64_t>(buffer);
  }
};

} // namespace

Value emitAddressOf(OpBuilder &builder, Location loc, Value descriptor) {
  return FieldWriter(builder, loc).load(descriptor);
}

const KernelAbi &halideAbi() {
  static const HalideAbi abi;
  return abi;
}

} // namespace kiln::halide
