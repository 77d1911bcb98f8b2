// SPDX-License-Identifier: Apache-2.0
//
#include "compiler/package/Descriptor.h"

#include "compiler/library/Names.h"
#include "compiler/library/Version.h"
#include "compiler/object/BinaryInterface.h"
#include "compiler/package/PackWeights.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/xxhash.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

using namespace llvm;

namespace kiln {
namespace {

class DescriptorBuilder {
public:
  DescriptorBuilder(Module &module, const ModelInterface &model)
      : module(module), model(model), context(module.getContext()), pointer(PointerType::getUnqual(context)) {}

  void emit(const std::vector<Variant> &variants);

private:
  abi::StructConstant structure(abi::Struct of) { return abi::StructConstant(of, context); }
  /// Returns a private constant; null for an empty table.
  Constant *table(ArrayRef<Constant *> elements, const Twine &name);
  Constant *text(StringRef value);
  /// Returns a reference to data of another object; null without a name.
  Constant *external(StringRef symbol);

  Constant *extent(const Dim &dim, const EntryInterface &entry);
  uint32_t outputKind(const ArgumentInterface &argument, const EntryInterface &entry) const;
  Constant *argument(const ArgumentInterface &argument, const EntryInterface &entry);
  /// Returns a weight or a state as a kiln_weight_t. `layout`: of a library for several processes, else null.
  template <class Tensor>
  Constant *tensor(const Tensor &tensor, const TensorLayout *layout, uint32_t flags,
                   const Initial &initial = Initial::zeros());
  /// Returns an array of integers with `bits` bits each.
  Constant *numbers(ArrayRef<uint64_t> values, unsigned bits, const Twine &name);
  Constant *shard(const TensorLayout &layout);
  Constant *state(const TrainingState &state);
  Constant *symbols(ArrayRef<Symbol> given);
  Constant *entry(const EntryInterface &entry);
  Constant *variant(const Variant &variant);
  void emitEntryPoint(const EntryInterface &entry, unsigned index);
  void emitConstant(const std::string &what, Constant *value, std::optional<uint64_t> perWorker = std::nullopt);
  void emitConstants(const std::vector<Variant> &variants);

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

Constant *DescriptorBuilder::numbers(ArrayRef<uint64_t> values, unsigned bits, const Twine &name) {
  SmallVector<Constant *> elements;
  for (uint64_t value : values)
    elements.push_back(ConstantInt::get(IntegerType::get(context, bits), value));
  return table(elements, name);
}

Constant *DescriptorBuilder::text(StringRef value) {
  Constant *characters = ConstantDataArray::getString(context, value);
  auto *global =
      new GlobalVariable(module, characters->getType(), true, GlobalValue::PrivateLinkage, characters, "text");
  global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
  return global;
}

Constant *DescriptorBuilder::external(StringRef symbol) {
  if (symbol.empty())
    return ConstantPointerNull::get(pointer);
  return module.getOrInsertGlobal(symbol, Type::getInt8Ty(context));
}

Constant *DescriptorBuilder::extent(const Dim &dim, const EntryInterface &entry) {
  uint64_t symbols[2 * Dim::max_terms];
  for (int i = 0; i < 2 * Dim::max_terms; ++i) {
    auto found = std::find(entry.symbols.begin(), entry.symbols.end(), dim.symbols[i]);
    symbols[i] = dim.symbols[i].present() ? found - entry.symbols.begin() : -1;
  }
  return structure(abi::Struct::extent)
      .set(abi::extent::offset, dim.offset)
      .set(abi::extent::factor, dim.factor)
      .set(abi::extent::second, dim.second)
      .set(abi::extent::symbol, symbols)
      .get();
}

uint32_t DescriptorBuilder::outputKind(const ArgumentInterface &argument, const EntryInterface &entry) const {
  if (!argument.isOutput || !model.parallel)
    return argument.isOutput;
  return model.parallel->resultsOfLast.count({entry.name, argument.name}) ? KILN_OUTPUT_OF_LAST : 1;
}

Constant *DescriptorBuilder::argument(const ArgumentInterface &argument, const EntryInterface &entry) {
  SmallVector<Constant *> extents;
  for (const Dim &dim : argument.shape)
    extents.push_back(extent(dim, entry));
  static_assert(KILN_MAX_RANK == largest_rank, "the tables hold all dimensions");
  while (extents.size() < KILN_MAX_RANK)
    extents.push_back(extent(Dim(1), entry));
  ValueCheck check = argument.check.value_or(ValueCheck{});
  return structure(abi::Struct::argument)
      .set(abi::argument::name, text(argument.name))
      .set(abi::argument::dtype, static_cast<uint32_t>(argument.element))
      .set(abi::argument::rank, argument.shape.size())
      .set(abi::argument::extents, extents)
      .set(abi::argument::is_output, outputKind(argument, entry))
      .set(abi::argument::is_checked, argument.check.has_value())
      .set(abi::argument::minimum, check.minimum)
      .set(abi::argument::limit, extent(check.limit, entry))
      .get();
}

static uint32_t initialKind(const Initial &initial) {
  switch (initial.kind) {
  case Initial::Kind::uniform:
    return KILN_INITIAL_UNIFORM;
  case Initial::Kind::normal:
    return KILN_INITIAL_NORMAL;
  default:
    assert(initial.kind == Initial::Kind::constant && "the interface has resolved the others");
    return KILN_INITIAL_CONSTANT;
  }
}

template <class Tensor>
Constant *DescriptorBuilder::tensor(const Tensor &tensor, const TensorLayout *layout, uint32_t flags,
                                    const Initial &initial) {
  const std::vector<int64_t> &extents = layout && layout->parts > 1 ? layout->sharedShape : tensor.shape;
  SmallVector<uint64_t> shape(extents.begin(), extents.end());
  shape.resize(KILN_MAX_RANK, 1);
  const bool isOfStage = layout && layout->allCopies;
  if (layout)
    flags |= (isOfStage ? KILN_WEIGHT_OF_STAGE : 0) | layout->absent * KILN_WEIGHT_ABSENT;
  return structure(abi::Struct::weight)
      .set(abi::weight::name, text(tensor.name))
      .set(abi::weight::dtype, static_cast<uint32_t>(tensor.element))
      .set(abi::weight::rank, extents.size())
      .set(abi::weight::shape, shape)
      .set(abi::weight::copies, isOfStage ? layout->allCopies : tensor.copies)
      .set(abi::weight::flags, flags)
      .set(abi::weight::initial, initialKind(initial))
      .set(abi::weight::initial_number, llvm::bit_cast<uint32_t>(static_cast<float>(initial.number)))
      .get();
}

Constant *DescriptorBuilder::shard(const TensorLayout &layout) {
  if (!layout.slice)
    return structure(abi::Struct::shard).set(abi::shard::parts, layout.parts).get();
  SmallVector<Constant *> sections;
  for (const WeightSection &section : layout.slice->sections)
    sections.push_back(structure(abi::Struct::section)
                           .set(abi::section::first, section.first)
                           .set(abi::section::extent, section.extent)
                           .set(abi::section::step, section.step)
                           .set(abi::section::group, section.group)
                           .get());
  return structure(abi::Struct::shard)
      .set(abi::shard::sections, table(sections, "sections"))
      .set(abi::shard::extent, layout.slice->extent)
      .set(abi::shard::dim, layout.slice->dim)
      .set(abi::shard::section_count, sections.size())
      .set(abi::shard::parts, layout.parts)
      .get();
}

Constant *DescriptorBuilder::state(const TrainingState &state) {
  const TensorLayout *layout = state.layout ? &*state.layout : nullptr;
  return structure(abi::Struct::state)
      .set(abi::state::tensor, tensor(state.state, layout, 0))
      .set(abi::state::offsets,
           numbers(layout ? ArrayRef(layout->offsets) : ArrayRef(state.state.offset), 64, "offsets"))
      .set(abi::state::stride, state.state.stride)
      .get();
}

/// Returns 1 + the position of the symbol of that name, or 0 if there is none.
static uint32_t positionOf(StringRef name, ArrayRef<Symbol> symbols) {
  auto found = llvm::find_if(symbols, [&](const Symbol &symbol) { return name == symbol.name; });
  return name.empty() || found == symbols.end() ? 0 : static_cast<uint32_t>(found - symbols.begin() + 1);
}

Constant *DescriptorBuilder::symbols(ArrayRef<Symbol> given) {
  SmallVector<Constant *> rows;
  for (const Symbol &symbol : given)
    rows.push_back(structure(abi::Struct::symbol)
                       .set(abi::symbol::name, text(symbol.name))
                       .set(abi::symbol::min, symbol.min)
                       .set(abi::symbol::max, symbol.max)
                       .set(abi::symbol::least, positionOf(symbol.least, given))
                       .get());
  return table(rows, "symbols");
}

Constant *DescriptorBuilder::entry(const EntryInterface &entry) {
  SmallVector<Constant *> arguments;
  for (const ArgumentInterface &described : entry.arguments)
    arguments.push_back(argument(described, entry));
  return structure(abi::Struct::entry)
      .set(abi::entry::name, text(entry.name))
      .set(abi::entry::symbols, symbols(entry.symbols))
      .set(abi::entry::arguments, table(arguments, "arguments"))
      .set(abi::entry::symbol_count, entry.symbols.size())
      .set(abi::entry::argument_count, arguments.size())
      .set(abi::entry::own_symbols, symbols(entry.ownSymbols))
      .set(abi::entry::own_symbol_count, entry.ownSymbols.size())
      .set(abi::entry::own_rows, positionOf(entry.ownRows, entry.ownSymbols))
      .set(abi::entry::is_batch, entry.isBatch())
      .set(abi::entry::keeps, (entry.states.empty() ? 0 : KILN_KEEPS_STATES) |
                                  (entry.changesWeights && model.hasOptimizerState() ? KILN_KEEPS_OPTIMIZER_STATE : 0))
      .set(abi::entry::state_bytes, entry.isBatch() ? model.stateBytes : entry.stateBytes)
      .get();
}

Constant *DescriptorBuilder::variant(const Variant &variant) {
  SmallVector<Constant *> placements, bodies;
  for (const WeightPlacement &place : variant.placements)
    placements.push_back(structure(abi::Struct::placement)
                             .set(abi::placement::offset, place.offset)
                             .set(abi::placement::stride, place.stride)
                             .set(abi::placement::tile, place.tile)
                             .set(abi::placement::dim, place.dim)
                             .set(abi::placement::shift, place.shift)
                             .set(abi::placement::scales, place.scales)
                             .set(abi::placement::dtype, static_cast<uint32_t>(place.element))
                             .set(abi::placement::group, place.group)
                             .set(abi::placement::zeros, place.zeros)
                             .get());
  auto *bodyType = FunctionType::get(Type::getInt32Ty(context), {pointer}, false);
  auto addBody = [&](const EntryCode &code) {
    bodies.push_back(
        structure(abi::Struct::body)
            .set(abi::body::run, cast<Constant>(module.getOrInsertFunction(code.symbol, bodyType).getCallee()))
            .set(abi::body::plan_bytes, code.planBytes)
            .set(abi::body::scratch_bytes, code.scratchBytes)
            .set(abi::body::task_bytes, code.taskBytes)
            .set(abi::body::staging_bytes, code.stagingBytes)
            .get());
  };
  llvm::for_each(variant.entries, addBody);
  if (variant.deriving)
    addBody(*variant.deriving);
  SmallVector<Constant *> modules;
  for (const std::string &symbol : variant.modules)
    modules.push_back(external(symbol));
  Constant *constants = variant.constants.empty() ? external("") : text(variant.constants);
  return structure(abi::Struct::variant)
      .set(abi::variant::target, text(variant.target))
      .set(abi::variant::features, variant.features)
      .set(abi::variant::memory_space, variant.memorySpace)
      .set(abi::variant::placements, table(placements, "placements"))
      .set(abi::variant::derives, variant.deriving.has_value())
      .set(abi::variant::packed_bytes, variant.packedBytes)
      .set(abi::variant::stage_role_bytes,
           numbers(model.parallel && model.parallel->stages > 1 ? ArrayRef<uint64_t>(variant.packedBytesOf)
                                                                : ArrayRef<uint64_t>(),
                   64, "role_bytes"))
      .set(abi::variant::digest, packedDigest(model, variant))
      .set(abi::variant::bodies, table(bodies, "bodies"))
      .set(abi::variant::backend, external(variant.backend))
      .set(abi::variant::constants, constants)
      .set(abi::variant::constant_bytes, variant.constants.size())
      .set(abi::variant::modules, table(modules, "modules"))
      .set(abi::variant::module_count, modules.size())
      .get();
}

/// Returns a hash of the states, the optimiser state, and where each tensor is stored.
static uint64_t stateMark(const ModelInterface &model) {
  std::string text;
  auto add = [&](const std::vector<StateInterface> &states, const std::vector<TensorLayout> *layouts) {
    for (auto [i, state] : llvm::enumerate(states))
      text += fmt::format(
          "{} {} {} {} {} {}{};", state.name, name_of(state.element), state.copies, fmt::join(state.shape, ","),
          layouts ? fmt::format("{}", fmt::join((*layouts)[i].offsets, ",")) : fmt::to_string(state.offset),
          state.stride, state.room > 0 ? fmt::format(" {}", state.room) : "");
  };
  add(model.states, model.parallel ? &model.parallel->states : nullptr);
  add(model.optimizerStates, model.parallel ? &model.parallel->optimizerStates : nullptr);
  return llvm::xxh3_64bits(text) | 1; // never 0, which marks a new session
}

/// Emits kiln_status_t NAME_entry(model, call, extents..., pointers...), or NAME_entry_batch(model, call, count,
/// sequences, pointers...). The function stores its arguments in arrays on the stack and makes one call.
void DescriptorBuilder::emitEntryPoint(const EntryInterface &entry, unsigned index) {
  Type *word = Type::getInt64Ty(context), *status = Type::getInt32Ty(context);
  SmallVector<Type *> parameters(2, pointer), passed{pointer, pointer, status};
  if (entry.isBatch())
    parameters.append({module.getTargetTriple().isArch32Bit() ? status : word, pointer}); // a size_t
  else
    parameters.append(entry.symbols.size(), word);
  const unsigned first = parameters.size();
  parameters.append(entry.arguments.size(), pointer);
  auto *function = Function::Create(FunctionType::get(status, parameters, false), GlobalValue::ExternalLinkage,
                                    model.name + "_" + entry.name, module);
  IRBuilder<> builder(BasicBlock::Create(context, "", function));
  auto gather = [&](unsigned from, unsigned count, Type *type) {
    Value *array = builder.CreateAlloca(ArrayType::get(type, std::max(count, 1u)));
    for (unsigned i = 0; i < count; ++i)
      builder.CreateStore(function->getArg(from + i), builder.CreateConstGEP1_64(type, array, i));
    return array;
  };
  SmallVector<Value *> values{function->getArg(0), function->getArg(1), builder.getInt32(index)};
  if (entry.isBatch())
    values.append({function->getArg(2), function->getArg(3)});
  else
    values.push_back(gather(2, entry.symbols.size(), word));
  values.push_back(gather(first, entry.arguments.size(), pointer));
  for (Value *value : ArrayRef(values).drop_front(passed.size()))
    passed.push_back(value->getType());
  FunctionCallee run = module.getOrInsertFunction(model.name + (entry.isBatch() ? "_run_batch" : "_run"),
                                                  FunctionType::get(status, passed, false));
  builder.CreateRet(builder.CreateCall(run, values));
}

/// Emits NAME_<what>, which returns a number or text that the header has as a macro, for callers that cannot read C. If
/// there is `perWorker`, the function has a parameter and adds `perWorker` times that parameter.
void DescriptorBuilder::emitConstant(const std::string &what, Constant *value, std::optional<uint64_t> perWorker) {
  Type *workers = Type::getInt32Ty(context), *type = value->getType();
  auto *function =
      Function::Create(FunctionType::get(type, perWorker ? ArrayRef<Type *>(workers) : ArrayRef<Type *>(), false),
                       GlobalValue::ExternalLinkage, model.name + "_" + what, module);
  IRBuilder<> builder(BasicBlock::Create(context, "", function));
  Value *result = value;
  if (perWorker)
    result = builder.CreateAdd(
        result, builder.CreateMul(builder.CreateZExt(function->getArg(0), type), ConstantInt::get(type, *perWorker)));
  builder.CreateRet(result);
}

void DescriptorBuilder::emitConstants(const std::vector<Variant> &variants) {
  Type *size = module.getTargetTriple().isArch32Bit() ? Type::getInt32Ty(context) : Type::getInt64Ty(context);
  for (auto [index, described] : llvm::enumerate(model.entries)) {
    const ArenaBytes arena = arenaBytes(variants, index);
    emitConstant(described.name + arenaBytesSuffix, ConstantInt::get(size, arena.fixed), arena.perWorker);
  }
  emitConstant("state_bytes", ConstantInt::get(size, model.stateBytes));
  if (model.trains())
    emitConstant("training_bytes", ConstantInt::get(size, model.trainingBytes));
  emitConstant("version", text(versionText()));
  emitConstant("abi_version", ConstantInt::get(Type::getInt32Ty(context), KILN_ABI_VERSION));
}

void DescriptorBuilder::emit(const std::vector<Variant> &variants) {
  const ParallelLayout *parallel = model.parallel ? &*model.parallel : nullptr;
  SmallVector<Constant *> weights, shards, states, entries, code;
  for (auto [i, described] : llvm::enumerate(model.weights)) {
    const TensorLayout *layout = parallel ? &parallel->weights[i] : nullptr;
    weights.push_back(tensor(described, layout, described.isVariable ? KILN_WEIGHT_VARIABLE : 0, described.initial));
    if (layout)
      shards.push_back(shard(*layout));
  }
  for (const TrainingState &described : trainingStates(model)) {
    states.push_back(state(described));
    if (described.layout)
      shards.push_back(shard(*described.layout));
  }
  for (const EntryInterface &described : model.entries)
    entries.push_back(entry(described));
  if (llvm::any_of(variants, [](const Variant &variant) { return variant.deriving.has_value(); }))
    entries.push_back(entry(derivingInterface())); // not counted in the descriptor's number of entries
  SmallVector<uint64_t> roles;
  for (int64_t stage = 0; parallel && parallel->stages > 1 && stage < parallel->stages; ++stage)
    roles.push_back(parallel->roleOf(stage));
  for (const Variant &compiled : variants)
    code.push_back(variant(compiled));
  Constant *descriptor = structure(abi::Struct::descriptor)
                             .set(abi::descriptor::abi_version, KILN_ABI_VERSION)
                             .set(abi::descriptor::weight_count, weights.size())
                             .set(abi::descriptor::entry_count, model.entries.size())
                             .set(abi::descriptor::variant_count, code.size())
                             .set(abi::descriptor::name, text(model.name))
                             .set(abi::descriptor::weights, table(weights, "weights"))
                             .set(abi::descriptor::entries, table(entries, "entries"))
                             .set(abi::descriptor::variants, table(code, "variants"))
                             .set(abi::descriptor::states, table(states, "states"))
                             .set(abi::descriptor::state_count, states.size())
                             .set(abi::descriptor::ranks, parallel ? parallel->ranks : 1)
                             .set(abi::descriptor::replicas, parallel ? parallel->replicas : 1)
                             .set(abi::descriptor::stages, parallel ? parallel->stages : 1)
                             .set(abi::descriptor::sharding, external(parallel ? "kiln_sharding" : ""))
                             .set(abi::descriptor::shards, table(shards, "shards"))
                             .set(abi::descriptor::roles, numbers(roles, 32, "roles"))
                             .set(abi::descriptor::state_bytes, model.stateBytes)
                             .set(abi::descriptor::training_bytes, model.trainingBytes)
                             .set(abi::descriptor::mark, stateMark(model))
                             .get();
  new GlobalVariable(module, descriptor->getType(), true, GlobalValue::ExternalLinkage, descriptor,
                     model.name + "_descriptor");
  for (auto [index, described] : llvm::enumerate(model.entries))
    emitEntryPoint(described, index);
  emitConstants(variants);
}

} // namespace

void emitDescriptor(Module &module, const ModelInterface &model, const std::vector<Variant> &variants) {
  DescriptorBuilder(module, model).emit(variants);
}

} // namespace kiln
