// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify/Outcome.h"

#include <cmath>
#include <fmt/format.h>

#include "compiler/dialect/KilnDialect.h"
#include "compiler/verify/Difference.h"

using namespace mlir;
namespace kd = mlir::kiln;

namespace kiln::verify {

void Outcome::zip(const Outcome &other, llvm::function_ref<void(SharedTensor &, const SharedTensor &)> function) {
  for (auto [mine, theirs] : llvm::zip_equal(results, other.results))
    for (auto [my, their] : llvm::zip_equal(mine, theirs))
      for (auto [one, another] : llvm::zip_equal(my, their))
        function(one, another);
  for (auto member : {&Outcome::states, &Outcome::written})
    for (auto [mine, theirs] : llvm::zip_equal(this->*member, other.*member))
      for (auto &[name, tensor] : mine)
        function(tensor, theirs.at(name));
}

Tensor perturbed(const Tensor &tensor) {
  Tensor result = tensor;
  if (floating(tensor.element))
    for (std::size_t i = 0; i < result.values.size(); ++i)
      result.values[i] *= 1 + ((i * 0x9e3779b97f4a7c15U) >> 63 ? 0x1p-23 : -0x1p-23);
  return result;
}

Outcome narrowed(const Outcome &expected, const Outcome &moved) {
  Outcome result = expected;
  result.zip(moved, [](SharedTensor &tensor, const SharedTensor &other) {
    Tensor narrow = *tensor;
    double most = 0, mean = 0;
    const bool isHalf = half_float(narrow.element); // then another order of operations may round to a neighbouring
                                                    // value
    const double share = isHalf ? std::ldexp(4.0, -info(narrow.element).digits) : 1e-5;
    for (std::size_t i = 0; i < narrow.values.size(); ++i)
      if (std::isfinite(narrow.values[i]) && std::isfinite(narrow.errors[i])) {
        most = std::max(most, std::abs(other->values[i] - narrow.values[i]));
        mean += std::abs(narrow.values[i]) / static_cast<double>(narrow.values.size());
      }
    for (std::size_t i = 0; i < narrow.values.size(); ++i) {
      // Numbers below the smallest normal one have few bits.
      const double bound = 64 * most + share * (std::abs(narrow.values[i]) + mean) + 0x1p-126;
      // Not if the other value is NaN.
      if (std::isfinite(narrow.values[i]) && std::isfinite(bound))
        narrow.errors[i] = std::min(narrow.errors[i], bound);
    }
    tensor = std::make_shared<const Tensor>(std::move(narrow));
  });
  return result;
}

Outcome withBounds(const Outcome &values, const Outcome &bounds) {
  Outcome result = values;
  result.zip(bounds, [](SharedTensor &tensor, const SharedTensor &other) {
    Tensor rebased = *tensor;
    rebased.errors = other->errors;
    tensor = std::make_shared<const Tensor>(std::move(rebased));
  });
  return result;
}

std::optional<std::string> findDifference(const Outcome &expected, const Outcome &actual, const RandomCalls &calls,
                                          ModuleOp module, std::size_t &elements, std::size_t &undetermined) {
  auto inParentheses = [](const std::string &words) { return words.empty() ? "" : " (" + words + ")"; };
  for (std::size_t session = 0; session < calls.sessions.size(); ++session) {
    const Session &called = calls.sessions[session];
    for (std::size_t number = 0; number < called.size(); ++number) {
      const EntryCall &call = called[number];
      const std::vector<SharedTensor> &wanted = expected.results[session][number],
                                      &got = actual.results[session][number];
      if (got.size() != wanted.size())
        return fmt::format("{}: it had {} results, has {}{}", call.entry, wanted.size(), got.size(),
                           inParentheses(call.words));
      auto entry = module.lookupSymbol<func::FuncOp>(call.entry);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        elements += wanted[i]->values.size();
        auto name = i < entry.getNumResults() // the others are sent values
                        ? entry.getResultAttrOfType<StringAttr>(static_cast<unsigned>(i), kd::nameAttrName)
                        : StringAttr();
        if (auto difference = findDifference(*wanted[i], *got[i], undetermined))
          return fmt::format("\"{}\" of {}: {}{}", name ? name.str() : std::to_string(i), call.entry, *difference,
                             inParentheses(call.words));
      }
    }
    const std::string words = called.empty() ? "" : inParentheses(called[0].words);
    auto compare = [&](const char *kind, const std::map<std::string, SharedTensor> &before,
                       const std::map<std::string, SharedTensor> &after) -> std::optional<std::string> {
      for (const auto &[name, wanted] : before) {
        auto got = after.find(name);
        if (got == after.end())
          return fmt::format("the {} \"{}\": nothing uses it any more{}", kind, name, words);
        elements += wanted->values.size();
        if (auto difference = findDifference(*wanted, *got->second, undetermined))
          return fmt::format("the {} \"{}\": {}{}", kind, name, *difference, words);
      }
      return std::nullopt;
    };
    if (auto difference = compare("state", expected.states[session], actual.states[session]))
      return difference;
    if (auto difference = compare("weight", expected.written[session], actual.written[session]))
      return difference;
  }
  return std::nullopt;
}

} // namespace kiln::verify
