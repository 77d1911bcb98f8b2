// SPDX-License-Identifier: Apache-2.0
//
// The functions and intrinsics that lowered kernels call, for the memory checker.
#include "targets/halide/check/LaneEvaluator.h"

#include "targets/halide/translate/VectorFunctions.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"

namespace kiln::halide {

using namespace Halide::Internal;
using Halide::Expr;

/// Returns the operation on two numbers that the intrinsic is, if it is one.
static std::optional<IntegerOp> integerOp(const Call &op) {
  // Halide compares intrinsics by name. Each version has some that others lack.
  static const llvm::StringMap<IntegerOp> meanings = {
      {"absd", IntegerOp::AbsoluteDifference},
      {"bitwise_and", IntegerOp::And},
      {"bitwise_or", IntegerOp::Or},
      {"bitwise_xor", IntegerOp::Xor},
      {"div_round_to_zero", IntegerOp::DivTowardsZero},
      {"halving_add", IntegerOp::HalvingAdd},
      {"halving_sub", IntegerOp::HalvingSub},
      {"mod_round_to_zero", IntegerOp::ModTowardsZero},
      {"rounding_halving_add", IntegerOp::RoundingHalvingAdd},
      {"rounding_halving_sub", IntegerOp::RoundingHalvingSub},
      {"rounding_shift_left", IntegerOp::RoundingShiftLeft},
      {"rounding_shift_right", IntegerOp::RoundingShiftRight},
      {"saturating_add", IntegerOp::SaturatingAdd},
      {"saturating_sub", IntegerOp::SaturatingSub},
      {"shift_left", IntegerOp::ShiftLeft},
      {"shift_right", IntegerOp::ShiftRight},
      {"sorted_avg", IntegerOp::HalvingAdd},
      {"strict_add", IntegerOp::Add},
      {"strict_div", IntegerOp::Div},
      {"strict_eq", IntegerOp::Equal},
      {"strict_le", IntegerOp::LessEqual},
      {"strict_lt", IntegerOp::Less},
      {"strict_max", IntegerOp::Max},
      {"strict_min", IntegerOp::Min},
      {"strict_mul", IntegerOp::Mul},
      {"strict_sub", IntegerOp::Sub},
      {"widen_right_add", IntegerOp::Add},
      {"widen_right_mul", IntegerOp::Mul},
      {"widen_right_sub", IntegerOp::Sub},
      {"widening_add", IntegerOp::Add},
      {"widening_mul", IntegerOp::Mul},
      {"widening_shift_left", IntegerOp::ShiftLeft},
      {"widening_shift_right", IntegerOp::ShiftRight},
      {"widening_sub", IntegerOp::Sub},
  };
  const auto found = op.is_intrinsic() ? meanings.find(op.name) : meanings.end();
  return found == meanings.end() ? std::nullopt : std::optional(found->second);
}

/// Whether the call is a function without memory accesses whose result the checker draws at random: functions of floats
/// such as "exp_f32", and the vector functions, which return floats, their bits, or sums of integers.
static bool isFunction(const Call &op) {
  llvm::StringRef name = op.name, stem = name.rsplit('_').first;
  if (name.starts_with(vectorFunctionPrefix))
    return true;
  if (op.call_type != Call::PureExtern || !(name.ends_with("_f16") || name.ends_with("_f32") || name.ends_with("_f64")))
    return false;
  return llvm::StringSwitch<bool>(stem)
      .Cases({"sqrt", "exp", "log", "pow", "floor", "ceil", "round", "trunc", "is_nan", "is_inf", "is_finite"}, true)
      .Cases({"sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh"}, true)
      .Cases({"acosh", "atanh", "erf", "fast_inverse", "fast_inverse_sqrt"}, true)
      .Default(false);
}

/// Evaluates a field of a buffer. Buffers are dense and start at 0.
Lanes LaneEvaluator::bufferField(const Call &op) {
  auto *buffer = op.args[0].as<Variable>();
  if (op.name == Call::buffer_get_host)
    return Lanes::opaque(1);
  if (!buffer || op.args.size() != 2 || !llvm::StringRef(buffer->name).ends_with(".buffer"))
    unknownNode(&op);
  if (op.name == Call::buffer_get_min)
    return Lanes::scalar(0);
  const std::vector<int64_t> &shape = view(buffer, buffer->name).memory->shape;
  size_t dimension = shape.size() - 1 - size_t(scalar(op.args[1], "a dimension"));
  int64_t extent = shape[dimension], stride = 1;
  for (size_t i = dimension + 1; i < shape.size(); ++i)
    stride *= shape[i];
  return Lanes::scalar(op.name == Call::buffer_get_extent ? extent : stride);
}

Lanes LaneEvaluator::saturatingCast(Halide::Type type, const Expr &value) {
  const int magnitudeBits = type.bits() - (type.is_int() ? 1 : 0);
  const Wide past = Wide(1) << magnitudeBits, least = type.is_int() ? -past : Wide(0);
  const bool isUnsigned = value.type().is_uint();
  return convert(type, evaluate(value),
                 [&](int64_t x) { return std::clamp(isUnsigned ? Wide(uint64_t(x)) : Wide(x), least, past - 1); });
}

Lanes LaneEvaluator::call(const Call &op) {
  const Expr e = &op;
  if (std::optional<IntegerOp> meaning = integerOp(op))
    return binary(*meaning, op.type, op.args[0], op.args[1]);
  if (isStrict(op) ||
      op.is_intrinsic({Call::likely, Call::likely_if_innermost, Call::promise_clamped, Call::unsafe_promise_clamped}))
    return evaluate(op.args[0]);
  if (op.is_intrinsic(Call::if_then_else)) {
    // Only the side that is taken is evaluated.
    bool isTrue = scalar(op.args[0], "a condition") != 0;
    if (op.args.size() < 3 && !isTrue)
      unknownNode(e);
    return evaluate(op.args[isTrue ? 1 : 2]);
  }
  if (Expr bits = reinterpreted(e); bits.defined())
    return reinterpret(op.type, bits);
  if (op.is_intrinsic(Call::abs) && !op.type.is_float())
    return convert(op.type, evaluate(op.args[0]), [](int64_t x) { return x < 0 ? -Wide(x) : Wide(x); });
  if (op.is_intrinsic() && op.name == "saturating_cast" && !op.type.is_float() && !op.args[0].type().is_float())
    return saturatingCast(op.type, op.args[0]);
  if (op.is_intrinsic() && op.name == "round") // of floats
    return draw(op.type, evaluate(op.args[0]));
  if (op.is_intrinsic(Call::bitwise_not))
    return convert(op.type, evaluate(op.args[0]), [](int64_t x) { return Wide(~x); });
  if (op.is_intrinsic(Call::return_second)) {
    evaluate(op.args[0]);
    return evaluate(op.args[1]);
  }
  if (op.is_intrinsic(Call::undef))
    return Lanes::opaque(op.type.lanes(), memory.undefinedLane("undef()"));
  if (op.is_intrinsic(Call::signed_integer_overflow))
    throw MemoryFault{"arithmetic on indices overflows"};
  if (llvm::StringRef(op.name).starts_with("_halide_buffer_get_"))
    return bufferField(op);
  const bool isPrefetch = op.name == prefetchIntrinsic; // workarounds/Prefetch.cpp: any address is allowed
  if (!isPrefetch && !isFunction(op) && !(op.is_intrinsic(Call::abs) && op.type.is_float()))
    unknownNode(e);
  Lanes from = Lanes::opaque(op.type.lanes());
  for (const Expr &argument : op.args)
    if (Lanes lanes = evaluate(argument); lanes.count() == from.count())
      from.mergeMarks(lanes);
  return draw(op.type, from);
}

} // namespace kiln::halide
