// SPDX-License-Identifier: Apache-2.0
#include "compiler/package/DeriveHere.h"

#include "compiler/dialect/ElementTypes.h"
#include "compiler/dialect/KilnDialect.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/verify/ModuleInterpreter.h"
#include "runtime/src/core/instance.h"
#include "runtime/src/weights/convert.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln {

void describeDerivation(ModuleOp module, Variant &variant) {
  auto function = module.lookupSymbol<func::FuncOp>(kd::derivesFunctionName);
  if (!function)
    return;
  OwningOpRef<ModuleOp> part = ModuleOp::create(module.getLoc());
  part->getOperation()->setAttrs(module->getAttrDictionary());
  OpBuilder builder = OpBuilder::atBlockEnd(part->getBody());
  function.walk([&](kd::CallOp call) {
    if (!part->lookupSymbol(call.getCallee()))
      builder.clone(*module.lookupSymbol(call.getCallee()));
  });
  builder.clone(*function);
  llvm::raw_string_ostream(variant.derivation) << *part;
  variant.derivationDigest = function->getAttrOfType<StringAttr>(kd::derivesAttrName).str();
}

namespace {

/// The weights of a bound model, converted to f32.
class BoundWeights {
public:
  BoundWeights(const kiln_model_t &model, ModuleOp module) : model(model) {
    module.walk([&](kd::ParameterOp parameter) {
      if (!parameter.getDerived())
        types[cast<StringAttr>(parameter.getSources()[0]).str()] = cast<RankedTensorType>(parameter.getType());
    });
  }

  verify::SharedTensor get(const std::string &pattern, const std::string &name) const {
    const RankedTensorType type = types.at(pattern);
    const ElementType element = *kd::toElementType(type.getElementType());
    const auto count = static_cast<size_t>(type.getNumElements());
    std::vector<char> bytes(stored_bytes(element, static_cast<int64_t>(count)));
    std::vector<float> floats(count);
    kiln_error_t error = {};
    const uint64_t rows = type.getRank() > 0 ? static_cast<uint64_t>(type.getDimSize(0)) : 1;
    if (kiln_read_weight(&model, name.c_str(), 0, rows, bytes.data(), &error))
      throw std::runtime_error(error.message);
    kiln_convert_widen(floats.data(), bytes.data(), count, static_cast<uint32_t>(element));
    return std::make_shared<const verify::Tensor>(
        verify::Tensor::of(element, {type.getShape().begin(), type.getShape().end()}, {floats.begin(), floats.end()}));
  }

private:
  const kiln_model_t &model;
  std::map<std::string, RankedTensorType, std::less<>> types;
};

} // namespace

/// Returns the names of a derived weight's copies, in their order.
static std::vector<std::string> namesOfCopies(kd::AssignOp assign) {
  const auto name = cast<StringAttr>(assign.getParameter().getDefiningOp<kd::ParameterOp>().getSources()[0]);
  std::vector<int64_t> counts;
  for (auto loop = assign->getParentOfType<kd::RepeatOp>(); loop; loop = loop->getParentOfType<kd::RepeatOp>())
    counts.insert(counts.begin(), static_cast<int64_t>(loop.getCount()));
  return names_in_layers(name.str(), counts);
}

void deriveWeights(kiln_model_t &model, const Variant &variant) {
  if (variant.derivation.empty())
    return;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  loadDialects(context);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(variant.derivation, &context);
  if (!module)
    throw std::runtime_error("what computes derived weights cannot be read");
  const BoundWeights weights(model, *module);
  verify::ModuleInterpreter interpreter(
      [&](const std::string &pattern, const std::string &name) { return weights.get(pattern, name); });
  auto function = module->lookupSymbol<func::FuncOp>(kd::derivesFunctionName);
  interpreter.run(function, {}, {});
  function.walk([&](kd::AssignOp assign) {
    auto parameter = assign.getParameter().getDefiningOp<kd::ParameterOp>();
    const StringRef pattern = cast<StringAttr>(parameter.getSources()[0]).getValue();
    const DerivedWeight &place =
        *llvm::find_if(variant.derived, [&](const DerivedWeight &derived) { return pattern == derived.name; });
    for (const auto &[copy, name] : llvm::enumerate(namesOfCopies(assign))) {
      const verify::Tensor &tensor = *interpreter.derived.at(name);
      const std::vector<float> floats(tensor.values.begin(), tensor.values.end());
      kiln_convert_narrow(model.packed + place.offset + copy * place.stride, floats.data(), floats.size(),
                          static_cast<uint32_t>(tensor.element));
    }
  });
}

} // namespace kiln
