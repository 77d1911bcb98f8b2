// SPDX-License-Identifier: Apache-2.0
#include "targets/halide/check/LaneEvaluator.h"

#include "targets/halide/workarounds/StridedLoads.h"
#include <fmt/format.h>
#include <sstream>

namespace kiln::halide {

using namespace Halide::Internal;
using Halide::Expr;
using Halide::Type;

void LaneEvaluator::unknownNode(const Expr &e) {
  std::ostringstream text;
  text << e;
  throw Halide::InternalError("the memory checker does not know the expression " + text.str());
}

LaneEvaluator::Name &LaneEvaluator::name(const std::string &text) {
  std::unique_ptr<Name> &owned = names[text];
  if (!owned)
    owned = std::make_unique<Name>();
  return *owned;
}

LaneEvaluator::Name &LaneEvaluator::name(const void *node, const std::string &text) {
  Name *&found = nodes[node];
  if (!found)
    found = &name(text);
  return *found;
}

const MemoryView &LaneEvaluator::view(const void *node, const std::string &text) {
  const MemoryView &found = name(node, text).view;
  if (!found.memory)
    throw Halide::InternalError("the memory checker does not know the buffer \"" + text + "\"");
  return found;
}

int64_t LaneEvaluator::scalar(const Expr &e, const char *use) {
  Lanes value = evaluate(e);
  memory.requireDefined(value, use);
  return value.value(0);
}

Lanes LaneEvaluator::draw(Type type, const Lanes &from) {
  Lanes result = Lanes::opaqueOf(from);
  if (!type.is_float() && !type.is_handle())
    for (int i = 0; i < result.count(); ++i)
      result.setValue(i, type.is_bool() ? drawBool() : drawInteger(type, seed, drawn++));
  return result;
}

//===- Loads -------------------------------------------------------------===//

Lanes LaneEvaluator::index(const Expr &e, const ModulusRemainder &alignment, const std::string &use,
                           const Lanes *predicate) {
  Lanes index = evaluate(e);
  takeSteps(index.count() / 4);
  memory.requireDefined(index, use, predicate);
  int64_t first = index.value(0), modulus = alignment.modulus;
  bool isAligned = modulus == 0
                       ? first == alignment.remainder
                       : compute(IntegerOp::Mod, Halide::Int(64), Halide::Int(64),
                                 Lanes::scalar(first - alignment.remainder), Halide::Int(64), Lanes::scalar(modulus))
                                 .value(0) == 0;
  if (!isAligned && (!predicate || predicate->value(0)))
    throw MemoryFault{
        fmt::format("{} is {}, and promised to be {} modulo {}", use, first, alignment.remainder, modulus)};
  return index;
}

std::optional<Lanes> LaneEvaluator::predicate(const Expr &e, const std::string &use) {
  if (is_const_one(e))
    return std::nullopt;
  Lanes lanes = evaluate(e);
  memory.requireDefined(lanes, use);
  return lanes;
}

Lanes LaneEvaluator::load(const Load &op) {
  const MemoryView &from = view(&op, op.name);
  if (from.memory->type.bits() != op.type.bits() || from.memory->type.is_float() != op.type.is_float())
    unknownNode(&op);
  const std::string title =
      from.isArgument && !from.memory->overwrites.empty() ? from.memory->overwrites : from.memory->title;
  std::optional<Lanes> predicate = this->predicate(op.predicate, "the condition of a load of " + title);
  const Lanes *lanes = predicate ? &*predicate : nullptr;
  Lanes elements = index(op.index, op.alignment, "the index of a load of " + title, lanes);
  if (int before = readBefore(op))
    memory.requireInside(*from.memory, elements.value(0) - before, "the code of a load reads");
  return memory.load(from, op.type, elements, lanes);
}

//===- The other expressions ---------------------------------------------===//

Lanes LaneEvaluator::binary(IntegerOp op, Type type, const Expr &a, const Expr &b) {
  Lanes x = evaluate(a), y = evaluate(b);
  if (!a.type().is_float())
    return compute(op, type, a.type(), x, b.type(), y);
  x.mergeMarks(y);
  return type.is_float() ? Lanes::opaqueOf(x) : draw(type, x);
}

Lanes LaneEvaluator::cast(Type type, const Expr &value) {
  Lanes lanes = evaluate(value);
  Type from = value.type();
  if (type.is_float() || type.is_handle())
    return Lanes::opaqueOf(lanes);
  if (from.is_float() && type.is_uint() && !type.is_bool())
    throw MemoryFault{"a float is cast to an unsigned integer, which negative ones do not survive"};
  if (from.is_float())
    return draw(type, lanes);
  if (type.is_bool())
    return convert(type, lanes, [](int64_t x) { return Wide(x != 0); });
  // A ramp that fits stays one.
  return compute(IntegerOp::Add, type, from.bits() < 64 ? Halide::Int(32) : from, lanes, Halide::Int(32),
                 Lanes::ramp(lanes.count(), 0, 0));
}

Lanes LaneEvaluator::reinterpret(Type type, const Expr &value) {
  Type from = value.type();
  bool isNumber = !from.is_float() && !from.is_handle() && !type.is_float() && !type.is_handle();
  if (isNumber && type.lanes() == from.lanes())
    return cast(type, value);
  Lanes lanes = evaluate(value);
  if (type.lanes() != lanes.count())
    unknownNode(value);
  return draw(type, lanes);
}

Lanes LaneEvaluator::ramp(const Ramp &op) {
  Lanes base = evaluate(op.base), stride = evaluate(op.stride);
  if (base.count() == 1 && !op.type.is_float()) {
    Mark mark = std::max(base.mark(0), stride.mark(0));
    Lanes result = Lanes::ramp(op.lanes, base.value(0), stride.value(0), mark);
    if (wrap(op.type, result.value(op.lanes - 1)) == result.value(op.lanes - 1))
      return result;
  }
  int inner = base.count();
  Lanes result = Lanes::ramp(op.type.lanes(), 0, 0);
  for (int i = 0; i < result.count(); ++i) {
    result.setValue(i, wrap(op.type, base.value(i % inner) + Wide(i / inner) * stride.value(i % inner)));
    result.setMark(i, std::max(base.mark(i % inner), stride.mark(i % inner)));
  }
  return op.type.is_float() ? Lanes::opaqueOf(result) : result;
}

Lanes LaneEvaluator::shuffle(const Shuffle &op) {
  std::vector<Lanes> vectors;
  std::vector<std::pair<size_t, int>> lanes; // lanes of the concatenation: vector, lane
  bool isOpaque = true;
  for (const Expr &vector : op.vectors) {
    vectors.push_back(evaluate(vector));
    isOpaque &= op.type.is_float() && vectors.back().hasOneMark() && vectors.back().mark(0) == isDrawn;
    for (int i = 0; i < vectors.back().count(); ++i)
      lanes.emplace_back(vectors.size() - 1, i);
  }
  Lanes result = Lanes::ramp(int(op.indices.size()), 0, 0, isOpaque ? isDrawn : isKnown);
  for (int i = 0; i < result.count() && !isOpaque; ++i) {
    auto [vector, lane] = lanes[size_t(op.indices[size_t(i)])];
    result.setValue(i, vectors[vector].value(lane));
    result.setMark(i, vectors[vector].mark(lane));
  }
  return result;
}

Lanes LaneEvaluator::reduce(const VectorReduce &op) {
  Lanes all = evaluate(op.value);
  if (op.type.is_float() && all.hasOneMark())
    return Lanes::opaque(op.type.lanes(), all.mark(0));
  int width = all.count() / op.type.lanes();
  Lanes result = Lanes::ramp(op.type.lanes(), 0, 0);
  for (int i = 0; i < result.count(); ++i) {
    Lanes sum = Lanes::scalar(all.value(i * width), all.mark(i * width));
    for (int j = 1; j < width; ++j) {
      Lanes next = Lanes::scalar(all.value(i * width + j), all.mark(i * width + j));
      IntegerOp step = op.op == VectorReduce::Add             ? IntegerOp::Add
                       : op.op == VectorReduce::SaturatingAdd ? IntegerOp::SaturatingAdd
                       : op.op == VectorReduce::Mul           ? IntegerOp::Mul
                       : op.op == VectorReduce::Min           ? IntegerOp::Min
                       : op.op == VectorReduce::Max           ? IntegerOp::Max
                       : op.op == VectorReduce::And           ? IntegerOp::And
                                                              : IntegerOp::Or;
      Type type = op.type.is_float() ? Halide::Int(32) : op.type.element_of();
      sum = compute(step, type, type, sum, type, next);
    }
    result.setValue(i, sum.value(0));
    result.setMark(i, sum.mark(0));
  }
  return op.type.is_float() ? Lanes::opaqueOf(result) : result;
}

Lanes LaneEvaluator::variable(const Variable &op) {
  const Name &found = name(&op, op.name);
  if (op.type.is_handle())
    return Lanes::opaque(1); // handles are only used in addresses
  if (!found.isBound)
    unknownNode(&op);
  return found.value;
}

Lanes LaneEvaluator::let(const Let &op) {
  Name &bound = name(&op, op.name), outer = bound;
  bound.value = evaluate(op.value);
  bound.isBound = true;
  Lanes result = evaluate(op.body);
  bound = std::move(outer);
  return result;
}

Lanes LaneEvaluator::choice(const Select &op) {
  Lanes condition = evaluate(op.condition), yes = evaluate(op.true_value), no = evaluate(op.false_value);
  return select(condition.count() == yes.count() ? condition : condition.repeated(yes.count()), yes, no);
}

template <typename Op> static const Op &as(const Expr &e) { return *static_cast<const Op *>(e.get()); }

namespace {

struct BinaryNode {
  IntegerOp op;
  const Expr &a, &b;
};

} // namespace

/// Returns the operation and the operands of a binary node, or nothing for other nodes.
static std::optional<BinaryNode> asBinary(const Expr &e) {
  auto of = [](IntegerOp op, const auto &node) { return BinaryNode{op, node.a, node.b}; };
  switch (e.node_type()) {
  case IRNodeType::Add:
    return of(IntegerOp::Add, as<Add>(e));
  case IRNodeType::Sub:
    return of(IntegerOp::Sub, as<Sub>(e));
  case IRNodeType::Mod:
    return of(IntegerOp::Mod, as<Mod>(e));
  case IRNodeType::Mul:
    return of(IntegerOp::Mul, as<Mul>(e));
  case IRNodeType::Div:
    return of(IntegerOp::Div, as<Div>(e));
  case IRNodeType::Min:
    return of(IntegerOp::Min, as<Min>(e));
  case IRNodeType::Max:
    return of(IntegerOp::Max, as<Max>(e));
  case IRNodeType::EQ:
    return of(IntegerOp::Equal, as<EQ>(e));
  case IRNodeType::NE:
    return of(IntegerOp::NotEqual, as<NE>(e));
  case IRNodeType::LT:
    return of(IntegerOp::Less, as<LT>(e));
  case IRNodeType::LE:
    return of(IntegerOp::LessEqual, as<LE>(e));
  case IRNodeType::GT:
    return BinaryNode{IntegerOp::Less, as<GT>(e).b, as<GT>(e).a};
  case IRNodeType::GE:
    return BinaryNode{IntegerOp::LessEqual, as<GE>(e).b, as<GE>(e).a};
  default:
    return std::nullopt;
  }
}

Lanes LaneEvaluator::evaluate(const Expr &e) {
  takeSteps(1);
  if (std::optional<BinaryNode> node = asBinary(e))
    return binary(node->op, e.type(), node->a, node->b);
  switch (e.node_type()) {
  case IRNodeType::IntImm:
    return Lanes::scalar(as<IntImm>(e).value);
  case IRNodeType::UIntImm:
    return Lanes::scalar(int64_t(as<UIntImm>(e).value));
  case IRNodeType::FloatImm:
    return Lanes::opaque(1);
  case IRNodeType::Broadcast:
    return evaluate(as<Broadcast>(e).value).repeated(as<Broadcast>(e).lanes);
  case IRNodeType::Cast:
    return cast(e.type(), as<Cast>(e).value);
  case IRNodeType::Variable:
    return variable(as<Variable>(e));
  case IRNodeType::And:
    return conjunction(evaluate(as<And>(e).a), evaluate(as<And>(e).b));
  case IRNodeType::Or:
    return disjunction(evaluate(as<Or>(e).a), evaluate(as<Or>(e).b));
  case IRNodeType::Not:
    return convert(e.type(), evaluate(as<Not>(e).a), [](int64_t x) { return Wide(x == 0); });
  case IRNodeType::Select:
    return choice(as<Select>(e));
  case IRNodeType::Load:
    return load(as<Load>(e));
  case IRNodeType::Ramp:
    return ramp(as<Ramp>(e));
  case IRNodeType::Call:
    return call(as<Call>(e));
  case IRNodeType::Let:
    return let(as<Let>(e));
  case IRNodeType::Shuffle:
    return shuffle(as<Shuffle>(e));
  case IRNodeType::VectorReduce:
    return reduce(as<VectorReduce>(e));
  default:
    if (Expr bits = reinterpreted(e); bits.defined())
      return reinterpret(e.type(), bits);
    unknownNode(e);
  }
}

} // namespace kiln::halide
