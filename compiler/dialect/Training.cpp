// SPDX-License-Identifier: Apache-2.0
//
// Numbers and flags with their default values are left out of the attribute.
#include "compiler/dialect/Training.h"

#include "compiler/dialect/KilnDialect.h"

namespace mlir::kiln {

using ::kiln::Training;
using ::kiln::Update;

namespace {

struct UpdateName {
  StringRef name;
  Update update;
};
constexpr UpdateName updateNames[] = {
    {"give", Update::give}, {"sgd", Update::sgd}, {"adam", Update::adam}, {"adamw", Update::adamw}};

struct NumberField {
  StringRef name;
  double Training::*member;
};
constexpr NumberField numberFields[] = {{"momentum", &Training::momentum},
                                        {"beta1", &Training::beta1},
                                        {"beta2", &Training::beta2},
                                        {"epsilon", &Training::epsilon},
                                        {"weight_decay", &Training::weight_decay},
                                        {"clip", &Training::clip},
                                        {"average", &Training::average}};

/// Collects the fields of a dictionary.
class FieldWriter {
public:
  explicit FieldWriter(MLIRContext *context) : builder(context) {}

  void add(StringRef name, Attribute value) { fields.push_back(builder.getNamedAttr(name, value)); }
  void addText(StringRef name, StringRef text) { add(name, builder.getStringAttr(text)); }
  void addFlag(StringRef name, bool flag) {
    if (flag)
      add(name, builder.getUnitAttr());
  }
  void addInteger(StringRef name, int64_t value, int64_t preset = 0) {
    if (value != preset)
      add(name, builder.getI64IntegerAttr(value));
  }
  void addNumber(StringRef name, double value) {
    if (value != 0)
      add(name, builder.getF64FloatAttr(value));
  }
  DictionaryAttr get() { return builder.getDictionaryAttr(fields); }

private:
  Builder builder;
  SmallVector<NamedAttribute> fields;
};

/// Reads the fields of a dictionary.
class FieldReader {
public:
  explicit FieldReader(DictionaryAttr fields) : fields(fields) {}

  bool isRight() const { return !isWrong && read == fields.size(); }
  std::string text(StringRef name) {
    auto value = find<StringAttr>(name);
    isWrong |= !value || value.empty();
    return value ? value.str() : "";
  }
  bool flag(StringRef name) { return find<UnitAttr>(name) != nullptr; }
  int64_t integer(StringRef name, int64_t preset = 0) {
    auto value = find<IntegerAttr>(name);
    isWrong |= value && !value.getType().isInteger(64);
    return value && !isWrong ? value.getInt() : preset;
  }
  double number(StringRef name) {
    auto value = find<FloatAttr>(name);
    return value ? value.getValueAsDouble() : 0;
  }
  template <class Value> Value find(StringRef name) {
    Attribute value = fields.get(name);
    read += value ? 1 : 0;
    isWrong |= value && !isa<Value>(value);
    return dyn_cast_or_null<Value>(value);
  }

private:
  DictionaryAttr fields;
  size_t read = 0;
  bool isWrong = false;
};

std::optional<TrainedParameter> readParameter(Attribute attribute) {
  auto fields = dyn_cast<DictionaryAttr>(attribute);
  if (!fields)
    return std::nullopt;
  FieldReader reader(fields);
  TrainedParameter parameter;
  parameter.name = reader.text("name");
  parameter.copies = reader.integer("copies", 1);
  parameter.runningRate = reader.number("running_rate");
  parameter.hasMoments = reader.flag("moments");
  parameter.decays = reader.flag("decays");
  parameter.roles = reader.integer("roles", 1);
  parameter.isCountedHere = !reader.flag("counted_elsewhere");
  return reader.isRight() && parameter.copies > 0 && parameter.roles > 0 ? std::optional(parameter) : std::nullopt;
}

DictionaryAttr writeParameter(const TrainedParameter &parameter, MLIRContext *context) {
  FieldWriter writer(context);
  writer.addText("name", parameter.name);
  writer.addInteger("copies", parameter.copies, 1);
  writer.addNumber("running_rate", parameter.runningRate);
  writer.addFlag("moments", parameter.hasMoments);
  writer.addFlag("decays", parameter.decays);
  writer.addInteger("roles", parameter.roles, 1);
  writer.addFlag("counted_elsewhere", !parameter.isCountedHere);
  return writer.get();
}

std::optional<TrainingRequest> readRequest(DictionaryAttr fields) {
  FieldReader reader(fields);
  TrainingRequest request;
  const std::string update = reader.text("update");
  const auto *known = llvm::find_if(updateNames, [&](const UpdateName &each) { return each.name == update; });
  auto parameters = reader.find<ArrayAttr>("parameters");
  if (known == std::end(updateNames) || !parameters)
    return std::nullopt;
  request.options.update = known->update;
  for (const NumberField &field : numberFields)
    request.options.*field.member = reader.number(field.name);
  request.options.recomputes = reader.flag("recomputes");
  const int64_t microBatches = reader.integer("micro_batches");
  request.options.micro_batches = static_cast<int>(microBatches);
  if (auto type = reader.find<TypeAttr>("activations")) {
    if (!isHalfFloat(type.getValue()))
      return std::nullopt;
    request.options.activations = *toElementType(type.getValue());
  }
  request.inputs = reader.integer("inputs");
  request.loss = reader.text("loss");
  for (Attribute each : parameters) {
    std::optional<TrainedParameter> parameter = readParameter(each);
    if (!parameter)
      return std::nullopt;
    request.parameters.push_back(std::move(*parameter));
  }
  const bool isInRange =
      microBatches >= 0 && microBatches <= std::numeric_limits<int32_t>::max() && request.inputs >= 0;
  return reader.isRight() && isInRange ? std::optional(std::move(request)) : std::nullopt;
}

unsigned countSymbols(FunctionOpInterface function) {
  return llvm::count_if(function.getArgumentTypes(), llvm::IsaPred<IndexType>);
}

} // namespace

std::optional<TrainingRequest> TrainingRequest::of(func::FuncOp function) {
  auto fields = function->getAttrOfType<DictionaryAttr>(trainingAttrName);
  return fields ? readRequest(fields) : std::nullopt;
}

void TrainingRequest::write(func::FuncOp function) const {
  MLIRContext *context = function.getContext();
  FieldWriter writer(context);
  for (const UpdateName &each : updateNames)
    if (each.update == options.update)
      writer.addText("update", each.name);
  for (const NumberField &field : numberFields)
    writer.addNumber(field.name, options.*field.member);
  writer.addFlag("recomputes", options.recomputes);
  writer.addInteger("micro_batches", options.micro_batches);
  if (options.activations != ::kiln::ElementType::f32)
    writer.add("activations", TypeAttr::get(fromElementType(options.activations, context)));
  writer.addInteger("inputs", inputs);
  writer.addText("loss", loss);
  writer.add("parameters", ArrayAttr::get(context, llvm::map_to_vector(parameters, [&](const TrainedParameter &each) {
                                            return Attribute(writeParameter(each, context));
                                          })));
  function->setAttr(trainingAttrName, writer.get());
}

LogicalResult verifyTraining(Operation *op, Attribute attribute) {
  auto function = dyn_cast<func::FuncOp>(op);
  auto fields = dyn_cast<DictionaryAttr>(attribute);
  const std::optional<TrainingRequest> request = fields ? readRequest(fields) : std::nullopt;
  if (!function || function.isExternal() || !request)
    return op->emitError() << trainingAttrName
                           << ": wrong owner or value; expected a function with a body, and what its training asks for";
  const int64_t inputs = static_cast<int64_t>(function.getNumArguments()) - countSymbols(function);
  if (request->inputs > inputs)
    return op->emitError() << trainingAttrName << ": too many inputs of the loss; expected at most " << inputs
                           << ", got " << request->inputs;
  return success();
}

Value getInput(func::FuncOp function, StringRef name) {
  for (BlockArgument argument : llvm::reverse(function.getArguments()))
    if (auto own = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), nameAttrName); own && own == name)
      return argument;
  return {};
}

SmallVector<BlockArgument> getLossInputs(func::FuncOp function, const TrainingRequest &request) {
  return SmallVector<BlockArgument>(function.getArguments().slice(countSymbols(function), request.inputs));
}

static Operation *getReturn(func::FuncOp function) { return function.getBody().front().getTerminator(); }

/// Whether the gradient has the axes of the parameter's layers.
static bool isGradientOf(const TrainedParameter &parameter, const GradientResult &gradient) {
  auto type = dyn_cast<RankedTensorType>(gradient.value.getType());
  return parameter.name == gradient.parameter && type && type.hasStaticShape() &&
         type.getRank() >= static_cast<int64_t>(parameter.layers());
}

FailureOr<SmallVector<GradientResult>> takeGradients(func::FuncOp function, const TrainingRequest &request) {
  SmallVector<GradientResult> gradients;
  Operation *end = getReturn(function);
  BitVector taken(function.getNumResults());
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (auto parameter = function.getResultAttrOfType<StringAttr>(i, gradientAttrName)) {
      auto whole = function.getResultAttrOfType<TypeAttr>(i, shardOfAttrName);
      gradients.push_back({parameter.str(), end->getOperand(i),
                           function.getResultAttrOfType<StringAttr>(i, nameAttrName),
                           whole ? dyn_cast<RankedTensorType>(whole.getValue()) : RankedTensorType()});
      taken.set(i);
    }
  const bool isComplete = gradients.size() == request.parameters.size() &&
                          llvm::all_of(llvm::zip(request.parameters, gradients),
                                       [](auto pair) { return isGradientOf(std::get<0>(pair), std::get<1>(pair)); });
  if (!isComplete || taken.all())
    return function.emitError() << trainingAttrName
                                << ": wrong results; expected a loss and a gradient of each parameter, in their order";
  end->eraseOperands(taken);
  (void)function.eraseResults(taken);
  return gradients;
}

/// Adds results without attributes, and returns the number of the first one.
static unsigned addResults(func::FuncOp function, ValueRange values) {
  auto end = cast<func::ReturnOp>(getReturn(function));
  const unsigned first = function.getNumResults();
  end.getOperandsMutable().append(values);
  function.setType(Builder(function.getContext()).getFunctionType(function.getArgumentTypes(), end.getOperandTypes()));
  return first;
}

void addGradients(func::FuncOp function, ArrayRef<GradientResult> gradients) {
  unsigned number =
      addResults(function, llvm::map_to_vector(gradients, [](const GradientResult &each) { return each.value; }));
  Builder builder(function.getContext());
  for (const GradientResult &each : gradients) {
    function.setResultAttr(number, gradientAttrName, builder.getStringAttr(each.parameter));
    if (each.name)
      function.setResultAttr(number, nameAttrName, each.name);
    if (each.isShared())
      function.setResultAttr(number, shardOfAttrName, TypeAttr::get(each.whole));
    ++number;
  }
}

void addResult(func::FuncOp function, Value value, StringRef name) {
  const unsigned number = addResults(function, value);
  function.setResultAttr(number, nameAttrName, StringAttr::get(function.getContext(), name));
}

} // namespace mlir::kiln
