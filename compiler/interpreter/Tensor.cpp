// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpreter/Tensor.h"

#include <cmath>
#include <cstring>

namespace kiln::interpreter {

/// The largest supported tensor: the interpreter is for small models.
static constexpr std::int64_t maxElements = std::int64_t{1} << 28;

Tensor flushed(Tensor value) {
  if (value.element == ElementType::f32 || value.element == ElementType::bf16)
    for (std::size_t i = 0; i < value.values.size(); ++i)
      if (std::abs(value.values[i]) - value.errors[i] < least_state_magnitude)
        value.errors[i] += least_state_magnitude;
  return value;
}

std::int64_t elementCount(const TensorShape &shape) {
  std::int64_t count = 1;
  for (std::int64_t extent : shape) {
    if (extent < 1)
      throw std::runtime_error("tensor: dimension out of range; expected at least 1, got " + describe(shape));
    if (extent > maxElements / count)
      throw std::runtime_error("tensor: too many elements for the interpreter; expected at most " +
                               std::to_string(maxElements) + ", got " + describe(shape));
    count *= extent;
  }
  return count;
}

Tensor Tensor::zeros(ElementType element, TensorShape shape) {
  const auto count = static_cast<std::size_t>(elementCount(shape));
  return {element, std::move(shape), std::vector<double>(count), std::vector<double>(count)};
}

Tensor Tensor::of(ElementType element, TensorShape shape, std::vector<double> values) {
  const std::int64_t count = elementCount(shape);
  if (static_cast<std::int64_t>(values.size()) != count)
    throw std::runtime_error("tensor: wrong number of values; expected one for each element, got " +
                             std::to_string(values.size()) + " for " + describe(shape));
  std::vector<double> errors;
  // Subnormal numbers of f16 are normal ones of f32, in which they are computed.
  const double least = floating(element) ? std::ldexp(1.0, info(ElementType::f32).least_exponent()) : 0;
  for (double &value : values) {
    value = roundTo(element, value);
    errors.push_back(std::abs(value) < least ? std::abs(value) : 0);
  }
  return {element, std::move(shape), std::move(values), std::move(errors)};
}

/// `bits`: of the significand, including the leading one. `least`: the exponent of the smallest normal number.
static double roundToBits(double value, int bits, int least) {
  if (value == 0 || !std::isfinite(value))
    return value;
  const int exponent = std::max(std::ilogb(value), least);
  const double unit = std::ldexp(1.0, exponent - (bits - 1));
  const double rounded = std::nearbyint(value / unit) * unit;
  return std::ilogb(rounded) > 1 - least ? std::copysign(std::numeric_limits<double>::infinity(), value) : rounded;
}

static double whole(ElementType element, double value, double least, double most) {
  if (!(value >= least && value <= most && value == std::trunc(value)))
    throw std::runtime_error(std::string(name_of(element)) + ": number out of range; expected an integer from " +
                             std::to_string(least) + " to " + std::to_string(most) + ", got " + std::to_string(value));
  return value;
}

double roundTo(ElementType element, double value) {
  if (!is_known(element))
    throw std::runtime_error("tensor: unknown element type; expected one of the language, got " +
                             std::to_string(static_cast<int>(element)));
  const ElementInfo &type = info(element);
  return floating(element) ? roundToBits(value, type.digits, type.least_exponent())
                           : whole(element, value, static_cast<double>(type.least()), static_cast<double>(type.most()));
}

std::string describe(const TensorShape &shape) {
  std::string text;
  for (std::int64_t extent : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

std::string describe(const Tensor &tensor) { return name_of(tensor.element) + describe(tensor.shape); }

static std::int64_t valueOf(const Symbol &symbol, const Extents &extents) {
  const std::string name(symbol.name, strnlen(symbol.name, Symbol::capacity));
  auto found = extents.find(name);
  if (found == extents.end())
    throw std::runtime_error("call: dimension without a value; expected one for every name, got none for " + name);
  const std::int64_t value = found->second;
  if (value < symbol.min || value > symbol.max)
    throw std::runtime_error("call: dimension out of bounds; expected " + std::to_string(symbol.min) + " to " +
                             std::to_string(symbol.max) + ", got " + name + " = " + std::to_string(value));
  auto least = extents.find(std::string(symbol.least, strnlen(symbol.least, Symbol::capacity)));
  if (symbol.least[0] && least != extents.end() && value < least->second)
    throw std::runtime_error("call: dimension out of bounds; expected at least " + std::to_string(least->second) +
                             ", got " + name + " = " + std::to_string(value));
  return value;
}

std::int64_t evaluate(const Dim &dim, const Extents &extents) {
  __extension__ using Wide = __int128;
  Wide result = dim.offset;
  for (int i = 0; i < dim.terms(); ++i) {
    Wide product = i == 0 ? dim.factor : dim.second;
    for (int k = 2 * i; k < 2 * i + 2 && dim.symbols[k].present(); ++k) {
      if (product > std::numeric_limits<std::int64_t>::max() || product < std::numeric_limits<std::int64_t>::min())
        throw std::runtime_error("tensor: dimension is too large; expected one that 64 bits hold");
      product *= valueOf(dim.symbols[k], extents);
    }
    result += product;
  }
  if (result < 1 || result > maxElements)
    throw std::runtime_error("tensor: dimension out of range; expected at least 1, and one that memory holds");
  return static_cast<std::int64_t>(result);
}

TensorShape evaluate(const std::vector<Dim> &dims, const Extents &extents) {
  TensorShape shape;
  for (const Dim &dim : dims)
    shape.push_back(evaluate(dim, extents));
  return shape;
}

} // namespace kiln::interpreter
