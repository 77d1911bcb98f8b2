// SPDX-License-Identifier: Apache-2.0
#include "compiler/package/EmbedWeights.h"

#include "kiln/runtime.h"
#include "runtime/src/core/selftest.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include <fmt/format.h>

using namespace llvm;

namespace kiln {

/// Code addresses data with 32-bit offsets, and a program may link several archives.
static constexpr uint64_t mostBytes = uint64_t{1} << 30;

Expected<EmbeddedWeights> compileWeights(const ModelInterface &model, const std::vector<Variant> &variants,
                                         const Checkpoint &checkpoint, const CpuName &cpu) {
  LLVMContext context;
  Module module("weights", context);
  auto *pointer = PointerType::getUnqual(context);
  SmallVector<GlobalVariable *> copies;
  SmallVector<Constant *> table;
  EmbeddedWeights result;
  uint64_t bytes = 0;
  for (const Variant &variant : variants) {
    Expected<std::string> packed = packedWeights(model, variant, checkpoint);
    if (!packed)
      return packed.takeError();
    result.digests.push_back(kiln_selftest_digest(0, packed->data(), packed->size()));
    Constant *data = ConstantDataArray::getRaw(*packed, packed->size(), Type::getInt8Ty(context));
    auto same = find_if(copies, [&](GlobalVariable *copy) { return copy->getInitializer() == data; });
    if (same == copies.end()) {
      bytes += packed->size();
      if (bytes > mostBytes)
        return createStringError(
            fmt::format("embedded weights: too large; expected at most {} MiB, got {} MiB for the targets up to "
                        "{}: bind a file, or name fewer targets",
                        mostBytes >> 20, bytes >> 20, variant.target));
      copies.push_back(new GlobalVariable(module, data->getType(), /*isConstant=*/true, GlobalValue::PrivateLinkage,
                                          data, "weights"));
      copies.back()->setAlignment(Align(KILN_ARENA_ALIGNMENT));
      same = std::prev(copies.end());
    }
    table.push_back(*same);
  }
  auto *type = ArrayType::get(pointer, table.size());
  auto *global = new GlobalVariable(module, type, true, GlobalValue::ExternalLinkage, ConstantArray::get(type, table),
                                    runtimePrefix + "embedded_weights");
  global->setVisibility(GlobalValue::HiddenVisibility);
  Expected<std::string> object = compileToObject(module, cpu);
  if (!object)
    return object.takeError();
  result.object = std::move(*object);
  return result;
}

} // namespace kiln
