// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/StandIn.h"

#include "compiler/interpreter/Arithmetic.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include <cmath>

namespace kiln::verify {

using interpreter::Tensor;
using interpreter::TensorShape;
using interpreter::Value;

/// Returns a number in [-1, 1) for an element of a tensor.
static double numberOf(std::uint64_t key, std::int64_t element) {
  const std::uint64_t words[] = {key, static_cast<std::uint64_t>(element)};
  const std::uint64_t hash =
      llvm::xxh3_64bits(llvm::ArrayRef(reinterpret_cast<const std::uint8_t *>(words), sizeof words));
  return static_cast<double>(hash >> 11) * 0x1p-52 - 1;
}

static std::uint64_t keyOf(llvm::StringRef name, const char *role, std::size_t number) {
  return llvm::xxh3_64bits((name + role + llvm::Twine(number)).str());
}

/// Returns the sum of all floating-point elements, each times a weight of about 1 / the root of their number.
static Value sumOf(llvm::StringRef name, llvm::ArrayRef<const Tensor *> operands) {
  const interpreter::Arithmetic arithmetic(ElementType::f32);
  std::int64_t count = 1;
  for (const Tensor *operand : operands)
    count += floating(operand->element) ? operand->size() : 0;
  interpreter::Sum sum(arithmetic);
  for (std::size_t number = 0; number < operands.size(); ++number) {
    const Tensor &operand = *operands[number];
    const std::uint64_t key = keyOf(name, " operand ", number);
    for (std::int64_t i = 0; floating(operand.element) && i < operand.size(); ++i)
      sum.addProduct(operand.at(i), interpreter::exact(numberOf(key, i) / std::sqrt(static_cast<double>(count))));
  }
  return sum.result();
}

/// Returns a number that depends on each integer of the operands; undetermined if one of them is.
static Value hashOf(llvm::StringRef name, llvm::ArrayRef<const Tensor *> operands) {
  std::uint64_t hash = keyOf(name, " integers", 0);
  bool isDetermined = true;
  for (const Tensor *operand : operands)
    for (std::int64_t i = 0; !floating(operand->element) && i < operand->size(); ++i) {
      hash = hash * 31 + static_cast<std::uint64_t>(static_cast<std::int64_t>(operand->values[i]));
      isDetermined &= operand->at(i).isDetermined();
    }
  const auto number = static_cast<double>(hash % 1000);
  return isDetermined ? interpreter::exact(number) : interpreter::undetermined(number);
}

/// Rounds to the element type. The error includes that of the rounding, and that of the other result with which this
/// one is compared.
static Value roundedOnce(ElementType element, Value x) {
  const double unit = element == ElementType::f32 ? 0x1p-24 : element == ElementType::f16 ? 0x1p-11 : 0x1p-8;
  if (!x.isDetermined() || !std::isfinite(x.value))
    return x;
  return {interpreter::roundTo(element, x.value), x.error + 2 * std::abs(x.value) * unit};
}

std::vector<Tensor> evaluateStandIn(llvm::StringRef name, llvm::ArrayRef<const Tensor *> operands,
                                    llvm::ArrayRef<ElementType> elements, llvm::ArrayRef<TensorShape> shapes) {
  const interpreter::Arithmetic arithmetic(ElementType::f32);
  const Value sum = sumOf(name, operands), hash = hashOf(name, operands);
  std::vector<Tensor> results;
  for (std::size_t number = 0; number < shapes.size(); ++number) {
    const ElementType element = elements[number];
    Tensor result = Tensor::zeros(element, shapes[number]);
    const std::uint64_t key = keyOf(name, " result ", number);
    for (std::int64_t i = 0; i < result.size(); ++i) {
      const double own = numberOf(key, i);
      const Value integer = {std::fmod(hash.value + std::floor(8 * (own + 1)), element == ElementType::boolean ? 2 : 3),
                             hash.error};
      const Value weighted = arithmetic.mul(sum, interpreter::exact(own));
      result.set(i, floating(element)
                        ? roundedOnce(element, arithmetic.add(weighted, interpreter::exact(integer.value / 4)))
                        : integer);
    }
    results.push_back(std::move(result));
  }
  return results;
}

} // namespace kiln::verify
