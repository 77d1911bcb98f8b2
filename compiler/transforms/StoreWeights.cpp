// SPDX-License-Identifier: Apache-2.0
#include "compiler/transforms/StoreWeights.h"

#include "compiler/dialect/ElementTypes.h"
#include "compiler/dialect/NearestNames.h"
#include "compiler/dialect/WeightUses.h"
#include "compiler/transforms/Passes.h"
#include "kiln/names.h"
#include "kiln/numbered.h"
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
    error = fmt::format("no type; expected {}, got nothing", format_names.data());
    return std::nullopt;
  }
  if (words.size() == 2 || (words.size() > 2 && words[1] != "except")) {
    error = fmt::format("wrong form; expected \"TYPE except PATTERN=TYPE ...\", got \"{}\"", text.str());
    return std::nullopt;
  }
  for (auto [number, word] : llvm::enumerate(words)) {
    if (number == 1)
      continue;
    auto [pattern, type] = number == 0 ? std::pair(StringRef(), word) : word.rsplit('=');
    const Storage storage = find_storage(type);
    if (!storage.is_stated || (number > 0 && pattern.empty())) {
      error = fmt::format("{} {}, got \"{}\"",
                          number == 0 ? "unknown type; expected" : "wrong exception; expected PATTERN=TYPE with a type",
                          format_names.data(), word.str());
      return std::nullopt;
    }
    if (number == 0)
      choices.defaultFormat = storage;
    else
      choices.exceptions.push_back({pattern.str(), storage});
  }
  return choices;
}

std::string toString(const StorageChoices &choices) {
  std::string text = name_of(choices.defaultFormat);
  for (auto [number, exception] : llvm::enumerate(choices.exceptions))
    text += fmt::format("{}{}={}", number == 0 ? " except " : " ", exception.pattern, name_of(exception.storage));
  return text;
}

std::optional<bool> parseActivations(StringRef text, std::string &error) {
  if (text == "f32" || text == "int8")
    return text == "int8";
  error = fmt::format("unknown type; expected f32 or int8, got \"{}\"", text.str());
  return std::nullopt;
}

//===- How a model reads its weights ---===//

namespace {

/// A weight of the file. Several entries may read it.
class StoredWeight {
public:
  void add(ParameterOp parameter) { parameters.push_back(parameter); }

  /// Returns why the weight cannot have this storage format, or an empty string. In the latter case, sets `dim` to the
  /// dimension of its outputs.
  std::string whyNot(const Storage &storage) {
    if (!storage.has_fewer_bits())
      return "";
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
    if (!isRead)
      return "nothing reads it";
    ArrayRef<int64_t> shape = cast<RankedTensorType>(first().getType()).getShape();
    const int64_t kExtent = ShapedType::getNumElements(shape) / shape[dim.value_or(0)];
    const int64_t whole = whole_of(storage);
    if (kExtent % whole == 0)
      return "";
    return fmt::format("the {} numbers of an output are no whole groups of {}", kExtent, whole);
  }

  void store(const Storage &storage) {
    for (ParameterOp parameter : parameters) {
      MLIRContext *context = parameter.getContext();
      parameter.setStorageAttr(mlir::kiln::StorageAttr::get(context,
                                                            mlir::kiln::fromElementType(storage.element, context),
                                                            dim.value_or(0), storage.group, storage.has_zero));
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
    return fmt::format("{} reads it otherwise than as a matrix", use.getOwner()->getName().getStringRef().str());
  }

  SmallVector<ParameterOp> parameters;
  std::optional<int64_t> dim;
  bool isRead = false;
};

} // namespace

/// Returns the storage formats that the spec states, by name.
static llvm::StringMap<Storage> statedStorages(ModuleOp module) {
  llvm::StringMap<Storage> stated;
  if (auto storages = module->getAttrOfType<DictionaryAttr>(mlir::kiln::statedStorageAttrName))
    for (NamedAttribute each : storages)
      stated[each.getName()] = find_storage(cast<StringAttr>(each.getValue()).getValue());
  return stated;
}

/// Whether the weight has a storage format that int8 rows are multiplied by, and K is small enough for the sums of
/// products to fit in 32 bits.
static bool takesRowsOfInt8(mlir::kiln::LinearOp linear) {
  constexpr int64_t mostInputs = 1 << 17; // inputs times 127 * 127
  auto weight = linear.getWeight().getDefiningOp<ParameterOp>();
  auto storage = weight ? weight.getStorageAttr() : mlir::kiln::StorageAttr();
  const auto element = storage ? mlir::kiln::toElementType(storage.getElement()) : std::nullopt;
  return element && takes_int8_rows(*element, storage.getGroup()) && storage.getDim() == linear.getOutputDim() &&
         cast<RankedTensorType>(weight.getType()).getDimSize(1 - linear.getOutputDim()) <= mostInputs;
}

/// Quantises the rows that linear multiplies by integer weights.
static LogicalResult quantizeRows(ModuleOp module) {
  SmallVector<mlir::kiln::LinearOp> linears;
  module.walk([&](mlir::kiln::LinearOp linear) {
    if (takesRowsOfInt8(linear))
      linears.push_back(linear);
  });
  if (linears.empty())
    return module.emitError() << "activations of int8: no quantised weights; expected some of "
                              << integer_format_names.data() << " that linear reads, got none";
  for (mlir::kiln::LinearOp linear : linears) {
    OpBuilder builder(linear);
    Value x = linear.getX(), scales = mlir::kiln::RowScalesOp::create(builder, linear.getLoc(), x);
    linear.getXMutable().assign(mlir::kiln::QuantizeRowsOp::create(builder, linear.getLoc(), x, scales));
    linear.getScalesMutable().assign(scales);
  }
  return success();
}

/// Sets the storage of each kiln.parameter: that of the last matching exception, else the spec's, else the
/// defaultFormat.
static LogicalResult storeWeights(ModuleOp module, const StorageChoices &choices) {
  const llvm::StringMap<Storage> stated = statedStorages(module);
  if (choices.isPlain() && stated.empty())
    return success();
  llvm::MapVector<StringRef, StoredWeight> weights;
  module.walk(
      [&](ParameterOp parameter) { weights[cast<StringAttr>(parameter.getSources()[0]).getValue()].add(parameter); });
  std::vector<std::string> names;
  for (const auto &[name, weight] : weights)
    names.push_back(name.str());
  std::vector<std::string> reasons;
  for (const auto &exception : choices.exceptions)
    reasons.push_back("no weight is named so" + nearestNames(exception.pattern, names));
  for (auto &[name, weight] : weights) {
    const auto spec = stated.find(name);
    bool isOfSpec = spec != stated.end();
    Storage storage = isOfSpec ? spec->second : choices.defaultFormat;
    for (auto [exception, reason] : llvm::zip_equal(choices.exceptions, reasons))
      if (detail::matches(exception.pattern.c_str(), ::kiln::written_name(name.str()).c_str())) {
        storage = exception.storage;
        isOfSpec = false;
        const std::string why = weight.whyNot(storage);
        reason = why.empty() || reason.empty() ? "" : fmt::format("weight \"{}\": {}", name.str(), why);
      }
    const std::string why = weight.whyNot(storage);
    if (why.empty() && storage.has_fewer_bits())
      weight.store(storage);
    else if (!why.empty() && isOfSpec)
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

namespace mlir::kiln {

#define GEN_PASS_DEF_QUANTIZEROWS
#define GEN_PASS_DEF_STOREWEIGHTS
#include "compiler/transforms/Passes.h.inc"

namespace {

struct StoreWeights : impl::StoreWeightsBase<StoreWeights> {
  using StoreWeightsBase::StoreWeightsBase;
  explicit StoreWeights(const ::kiln::StorageChoices &choices) : given(choices) { weights = ::kiln::toString(choices); }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::string error;
    const auto choices = given ? given : ::kiln::parseStorageChoices(weights, error);
    if (!choices)
      module.emitError() << "weights: " << error;
    if (!choices || failed(::kiln::storeWeights(module, *choices)))
      return signalPassFailure();
    module->removeAttr(statedStorageAttrName);
  }

private:
  std::optional<::kiln::StorageChoices> given;
};

struct QuantizeRows : impl::QuantizeRowsBase<QuantizeRows> {
  using QuantizeRowsBase::QuantizeRowsBase;

  void runOnOperation() override {
    if (failed(::kiln::quantizeRows(getOperation())))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createStoreWeights(const ::kiln::StorageChoices &choices) {
  return std::make_unique<StoreWeights>(choices);
}

} // namespace mlir::kiln
