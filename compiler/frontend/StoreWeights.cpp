// SPDX-License-Identifier: Apache-2.0
#include "compiler/frontend/StoreWeights.h"

#include "compiler/dialect/ElementTypes.h"
#include "compiler/dialect/WeightUses.h"
#include "kiln/names.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <fmt/format.h>

namespace kiln {

using namespace mlir;
using mlir::kiln::ParameterOp;

//===- The text ---===//

std::optional<StorageChoices> parseStorageChoices(StringRef text, std::string &error) {
  SmallVector<StringRef> words;
  llvm::SplitString(text, words, " ,");
  StorageChoices choices;
  if (words.empty()) {
    error = "weights require a type f32, f16, bf16 or int8, got nothing";
    return std::nullopt;
  }
  if (words.size() == 2 || (words.size() > 2 && words[1] != "except")) {
    error = fmt::format("weights require \"TYPE except PATTERN=TYPE ...\", got \"{}\"", text);
    return std::nullopt;
  }
  for (auto [number, word] : llvm::enumerate(words)) {
    if (number == 1)
      continue;
    auto [pattern, type] = number == 0 ? std::pair(StringRef(), word) : word.rsplit('=');
    const Storage storage = find_storage(type);
    if (!storage.is_stated || (number > 0 && pattern.empty())) {
      error = fmt::format("weights require {} f32, f16, bf16 or int8, got \"{}\"",
                          number == 0 ? "a type" : "PATTERN=TYPE behind except, of a type", word);
      return std::nullopt;
    }
    if (number == 0)
      choices.preset = storage;
    else
      choices.exceptions.push_back({pattern.str(), storage});
  }
  return choices;
}

std::string toString(const StorageChoices &choices) {
  std::string text = name_of(choices.preset);
  for (auto [number, exception] : llvm::enumerate(choices.exceptions))
    text += fmt::format("{}{}={}", number == 0 ? " except " : " ", exception.pattern, name_of(exception.storage));
  return text;
}

//===- How a model reads its weights ---===//

namespace {

/// A weight of the file, which several entries may read.
class StoredWeight {
public:
  void add(ParameterOp parameter) { parameters.push_back(parameter); }

  /// Why it cannot be stored in fewer bits; nothing if it can. Then `dim` is the dimension of its outputs.
  std::string whyNot() {
    for (ParameterOp parameter : parameters) {
      auto type = cast<RankedTensorType>(parameter.getType());
      if (!type.getElementType().isF32())
        return "it is no weight of f32";
      if (type.getRank() < 2)
        return "it is no matrix";
      if (parameter.getVariable())
        return "it may be written between calls";
      for (OpOperand &use : parameter.getResult().getUses())
        if (std::string why = visit(use); !why.empty())
          return why;
    }
    return isRead ? "" : "nothing reads it";
  }

  void store(const Storage &storage) {
    for (ParameterOp parameter : parameters) {
      MLIRContext *context = parameter.getContext();
      parameter.setStorageAttr(mlir::kiln::StorageAttr::get(
          context, mlir::kiln::fromElementType(storage.element, context), dim.value_or(0)));
    }
  }

  ParameterOp first() const { return parameters.front(); }

private:
  std::string visit(OpOperand &use) {
    isRead = true;
    if (!dim)
      dim = mlir::kiln::getOutputDim(use);
    if (mlir::kiln::takesLayout(use))
      return "";
    return fmt::format("{} reads it otherwise than as a matrix", use.getOwner()->getName().getStringRef());
  }

  SmallVector<ParameterOp> parameters;
  std::optional<int64_t> dim;
  bool isRead = false;
};

} // namespace

/// What the spec states, by name.
static llvm::StringMap<Storage> statedStorages(const Graph &graph) {
  llvm::StringMap<Storage> stated;
  for (const Parameter &parameter : graph.parameters)
    if (parameter.storage.is_stated)
      stated[graph.name(parameter)] = parameter.storage;
  return stated;
}

LogicalResult storeWeights(ModuleOp module, const Graph &graph, const StorageChoices &choices) {
  const llvm::StringMap<Storage> stated = statedStorages(graph);
  if (choices.isPlain() && stated.empty())
    return success();
  llvm::MapVector<StringRef, StoredWeight> weights;
  module.walk(
      [&](ParameterOp parameter) { weights[cast<StringAttr>(parameter.getSources()[0]).getValue()].add(parameter); });
  std::vector<std::string> reasons(choices.exceptions.size(), "no weight is named so");
  for (auto &[name, weight] : weights) {
    const std::string why = weight.whyNot();
    const auto spec = stated.find(name);
    bool isOfSpec = spec != stated.end();
    Storage storage = isOfSpec ? spec->second : choices.preset;
    for (auto [exception, reason] : llvm::zip_equal(choices.exceptions, reasons))
      if (detail::matches(exception.pattern.c_str(), name.str().c_str())) {
        storage = exception.storage;
        isOfSpec = false;
        const bool isObeyed = why.empty() || !storage.has_fewer_bits();
        reason = isObeyed || reason.empty() ? "" : fmt::format("weight \"{}\": {}", name, why);
      }
    if (!storage.has_fewer_bits())
      continue;
    if (why.empty())
      weight.store(storage);
    else if (isOfSpec)
      return weight.first().emitError() << "weight \"" << name << "\" cannot be stored as " << name_of(storage) << ": "
                                        << why;
  }
  for (auto [exception, reason] : llvm::zip_equal(choices.exceptions, reasons))
    if (!reason.empty())
      return module.emitError() << "weights \"" << exception.pattern << "=" << name_of(exception.storage)
                                << "\" cannot be obeyed: " << reason;
  return success();
}

} // namespace kiln
