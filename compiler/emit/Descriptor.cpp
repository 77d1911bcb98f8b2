// SPDX-License-Identifier: Apache-2.0
//
// Structs are built field by field in the order of runtime/src/model.h; LLVM's natural layout of them is C's.
#include "compiler/emit/Descriptor.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include <algorithm>

using namespace llvm;

namespace kiln {
namespace {

constexpr size_t maxRank = 6; // KILN_MAX_RANK

class DescriptorBuilder {
public:
  DescriptorBuilder(Module &module, const ModelInterface &model)
      : module(module), model(model), context(module.getContext()), pointer(PointerType::getUnqual(context)) {}

  void emit(const std::vector<Variant> &variants);

private:
  Constant *i32(uint64_t value) { return ConstantInt::get(Type::getInt32Ty(context), value); }
  Constant *i64(uint64_t value) { return ConstantInt::get(Type::getInt64Ty(context), value); }
  Constant *structure(ArrayRef<Constant *> fields) { return ConstantStruct::getAnon(context, fields); }
  /// A private constant; null for an empty table.
  Constant *table(ArrayRef<Constant *> elements, const Twine &name);
  Constant *text(StringRef value);

  Constant *extent(const Dim &dim, const EntryInterface &entry);
  Constant *argument(const ArgumentInterface &argument, const EntryInterface &entry);
  Constant *weight(const WeightInterface &weight);
  Constant *entry(const EntryInterface &entry);
  Constant *variant(const Variant &variant);
  void emitEntryPoint(const EntryInterface &entry, unsigned index);

  Module &module;
  const ModelInterface &model;
  LLVMContext &context;
  PointerType *pointer;
};

Constant *DescriptorBuilder::table(ArrayRef<Constant *> elements, const Twine &name) {
  if (elements.empty())
    return ConstantPointerNull::get(pointer);
  auto *type = ArrayType::get(elements[0]->getType(), elements.size());
  auto *global =
      new GlobalVariable(module, type, true, GlobalValue::PrivateLinkage, ConstantArray::get(type, elements), name);
  return global;
}

Constant *DescriptorBuilder::text(StringRef value) {
  Constant *characters = ConstantDataArray::getString(context, value);
  auto *global =
      new GlobalVariable(module, characters->getType(), true, GlobalValue::PrivateLinkage, characters, "text");
  global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
  return global;
}

Constant *DescriptorBuilder::extent(const Dim &dim, const EntryInterface &entry) {
  Constant *symbols[2];
  for (int i = 0; i < 2; ++i) {
    auto found = std::find(entry.symbols.begin(), entry.symbols.end(), dim.symbols[i]);
    int32_t index = dim.symbols[i].present() ? static_cast<int32_t>(found - entry.symbols.begin()) : -1;
    symbols[i] = ConstantInt::getSigned(Type::getInt32Ty(context), index);
  }
  auto *pair = ArrayType::get(Type::getInt32Ty(context), 2);
  return structure({i64(dim.offset), i64(dim.factor), ConstantArray::get(pair, symbols)});
}

Constant *DescriptorBuilder::argument(const ArgumentInterface &argument, const EntryInterface &entry) {
  SmallVector<Constant *> extents;
  for (const Dim &dim : argument.shape)
    extents.push_back(extent(dim, entry));
  while (extents.size() < maxRank)
    extents.push_back(extent(Dim(1), entry));
  ValueCheck check = argument.check.value_or(ValueCheck{});
  return structure({text(argument.name), i32(static_cast<uint32_t>(argument.element)), i32(argument.shape.size()),
                    ConstantArray::get(ArrayType::get(extents[0]->getType(), maxRank), extents), i32(argument.isOutput),
                    i32(argument.check.has_value()), i64(check.minimum), extent(check.limit, entry)});
}

Constant *DescriptorBuilder::weight(const WeightInterface &weight) {
  SmallVector<Constant *> shape;
  for (size_t i = 0; i < maxRank; ++i)
    shape.push_back(i64(i < weight.shape.size() ? weight.shape[i] : 1));
  return structure({text(weight.name), i32(static_cast<uint32_t>(weight.element)), i32(weight.shape.size()),
                    ConstantArray::get(ArrayType::get(Type::getInt64Ty(context), maxRank), shape), i32(weight.copies),
                    i32(0)});
}

/// 1 + the position of the symbol that this one must not be below; 0 if the entry has none.
static uint32_t positionOfLeast(const Symbol &symbol, const EntryInterface &entry) {
  const Symbol *least = findLeast(entry, symbol);
  return least ? static_cast<uint32_t>(least - entry.symbols.data() + 1) : 0;
}

Constant *DescriptorBuilder::entry(const EntryInterface &entry) {
  SmallVector<Constant *> symbols, arguments;
  for (const Symbol &symbol : entry.symbols)
    symbols.push_back(
        structure({text(symbol.name), i64(symbol.min), i64(symbol.max), i32(positionOfLeast(symbol, entry)), i32(0)}));
  for (const ArgumentInterface &described : entry.arguments)
    arguments.push_back(argument(described, entry));
  return structure({text(entry.name), table(symbols, "symbols"), table(arguments, "arguments"), i32(symbols.size()),
                    i32(arguments.size())});
}

Constant *DescriptorBuilder::variant(const Variant &variant) {
  SmallVector<Constant *> placements, bodies;
  for (const WeightPlacement &place : variant.placements)
    placements.push_back(
        structure({i64(place.offset), i64(place.stride), i32(place.tile), i32(place.dim), i64(place.shift)}));
  auto *bodyType = FunctionType::get(Type::getInt32Ty(context), {pointer}, false);
  for (const EntryCode &code : variant.entries)
    bodies.push_back(structure({cast<Constant>(module.getOrInsertFunction(code.symbol, bodyType).getCallee()),
                                i64(code.planBytes), i64(code.scratchBytes)}));
  return structure(
      {i32(variant.isa), i32(0), table(placements, "placements"), i64(variant.packedBytes), table(bodies, "bodies")});
}

/// kiln_status_t NAME_entry(model, call, extents..., pointers...): two arrays on the stack and a call.
void DescriptorBuilder::emitEntryPoint(const EntryInterface &entry, unsigned index) {
  Type *word = Type::getInt64Ty(context), *status = Type::getInt32Ty(context);
  SmallVector<Type *> parameters(2, pointer);
  parameters.append(entry.symbols.size(), word);
  parameters.append(entry.arguments.size(), pointer);
  auto *function = Function::Create(FunctionType::get(status, parameters, false), GlobalValue::ExternalLinkage,
                                    model.name + "_" + entry.name, module);
  IRBuilder<> builder(BasicBlock::Create(context, "", function));
  auto gather = [&](unsigned first, unsigned count, Type *type) {
    Value *array = builder.CreateAlloca(ArrayType::get(type, std::max(count, 1u)));
    for (unsigned i = 0; i < count; ++i)
      builder.CreateStore(function->getArg(first + i), builder.CreateConstGEP1_64(type, array, i));
    return array;
  };
  Value *extents = gather(2, entry.symbols.size(), word);
  Value *pointers = gather(2 + entry.symbols.size(), entry.arguments.size(), pointer);
  FunctionCallee run =
      module.getOrInsertFunction(model.name + "_run", status, pointer, pointer, status, pointer, pointer);
  builder.CreateRet(
      builder.CreateCall(run, {function->getArg(0), function->getArg(1), builder.getInt32(index), extents, pointers}));
}

void DescriptorBuilder::emit(const std::vector<Variant> &variants) {
  SmallVector<Constant *> weights, entries, code;
  for (const WeightInterface &described : model.weights)
    weights.push_back(weight(described));
  for (const EntryInterface &described : model.entries)
    entries.push_back(entry(described));
  for (const Variant &compiled : variants)
    code.push_back(variant(compiled));
  Constant *fields[] = {i32(1), // KILN_ABI_VERSION
                        i32(weights.size()),
                        i32(entries.size()),
                        i32(code.size()),
                        text(model.name),
                        table(weights, "weights"),
                        table(entries, "entries"),
                        table(code, "variants")};
  Constant *descriptor = structure(fields);
  new GlobalVariable(module, descriptor->getType(), true, GlobalValue::ExternalLinkage, descriptor,
                     model.name + "_descriptor");
  for (auto [index, described] : llvm::enumerate(model.entries))
    emitEntryPoint(described, index);
}

} // namespace

void emitDescriptor(Module &module, const ModelInterface &model, const std::vector<Variant> &variants) {
  DescriptorBuilder(module, model).emit(variants);
}

} // namespace kiln
