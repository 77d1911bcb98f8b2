// SPDX-License-Identifier: Apache-2.0
//
// Sorted positions (argsort), and sums of rows by index (index_add).
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "compiler/interpreter/OpCall.h"

namespace kiln::interpreter {
namespace {

/// Whether a number comes before another in ascending order: NaN is the largest.
bool isSmaller(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

/// Whether no correct implementation can order two elements in another way.
bool isOrderCertain(Value a, Value b) {
  if (!a.isDetermined() || !b.isDetermined())
    return false;
  if ((a.error == 0 && b.error == 0) || std::isnan(a.value) || std::isnan(b.value))
    return true;
  return a.value == b.value ? false : std::abs(a.value - b.value) > a.error + b.error;
}

/// Returns the positions of the elements in order. One is undetermined if another element may be in its place.
std::vector<Value> sortedPositions(const std::vector<Value> &line, bool isDescending) {
  std::vector<std::size_t> places(line.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    return isDescending ? isSmaller(line[b].value, line[a].value) : isSmaller(line[a].value, line[b].value);
  });
  std::vector<std::size_t> inexact;
  for (std::size_t i = 0; i < line.size(); ++i)
    if (line[i].error != 0)
      inexact.push_back(i);
  std::vector<Value> result;
  for (std::size_t place : places) {
    auto isCertain = [&](std::size_t other) { return other == place || isOrderCertain(line[place], line[other]); };
    bool isKnown = std::all_of(inexact.begin(), inexact.end(), isCertain);
    for (std::size_t other = 0; isKnown && line[place].error != 0 && other < line.size(); ++other)
      isKnown = isCertain(other);
    const auto at = static_cast<double>(place);
    result.push_back(isKnown ? exact(at) : undetermined(at));
  }
  return result;
}

} // namespace

Tensor evaluateArgsort(const OpCall &call) {
  call.requireOperands(1, 1);
  const Tensor &x = call[0];
  call.require(x.element != ElementType::boolean, "wrong element type; expected numbers");
  const int axis = call.axis();
  TensorShape shape = x.shape;
  if (call.shape.size() == shape.size())
    shape[axis] = std::min(shape[axis], call.shape[axis]);
  Tensor result = call.result(shape, ElementType::i32);
  const Lines from(x.shape, axis), to(shape, axis);
  std::vector<Value> line(static_cast<std::size_t>(from.extent));
  for (std::int64_t o = 0; o < from.outer; ++o)
    for (std::int64_t i = 0; i < from.inner; ++i) {
      for (std::int64_t k = 0; k < from.extent; ++k)
        line[k] = x.at(from.at(o, k, i));
      const std::vector<Value> places = sortedPositions(line, call.attributes().reverse);
      for (std::int64_t k = 0; k < to.extent; ++k)
        result.set(to.at(o, k, i), places[static_cast<std::size_t>(k)]);
    }
  return result;
}

/// Each element of the result is a sum of its own, in any order. If an index is undetermined, all sums are.
Tensor evaluateIndexAdd(const OpCall &call) {
  call.requireOperands(3, 3);
  call.requireIntegers(1);
  const Tensor &x = call[0], &indices = call[1], &rows = call[2];
  call.require(x.rank() == 2 && rows.rank() == 2 && indices.rank() == 1 && rows.shape[0] == indices.shape[0] &&
                   rows.shape[1] == x.shape[1] && rows.element == x.element,
               "shapes or types differ; expected a table, indices, and a row of the table for each");
  const std::int64_t height = x.shape[0], width = x.shape[1];
  std::vector<std::vector<std::int64_t>> added(static_cast<std::size_t>(height));
  bool isDetermined = true;
  for (std::int64_t r = 0; r < indices.size(); ++r) {
    isDetermined &= indices.at(r).isDetermined();
    const double index = indices.values[r];
    if (index >= 0 && index < static_cast<double>(height))
      added[static_cast<std::size_t>(index)].push_back(r);
  }
  const bool isWhole = x.element == ElementType::i32;
  const Arithmetic arithmetic(x.element);
  Tensor result = call.result(x.shape, x.element);
  for (std::int64_t v = 0; v < height; ++v)
    for (std::int64_t c = 0; c < width; ++c) {
      const Value own = x.at(v * width + c);
      Sum sum(arithmetic);
      sum.add(own);
      bool isSumDetermined = isDetermined && own.isDetermined();
      auto whole = static_cast<std::int64_t>(isWhole ? own.value : 0);
      for (std::int64_t r : added[static_cast<std::size_t>(v)]) {
        const Value term = rows.at(r * width + c);
        isSumDetermined &= term.isDetermined();
        if (isWhole)
          whole += static_cast<std::int64_t>(term.value);
        else
          sum.add(term);
      }
      const Value total = isWhole ? exact(wrap(x.element, whole)) : sum.result();
      const bool isCopied = added[static_cast<std::size_t>(v)].empty();
      result.set(v * width + c, !isSumDetermined ? undetermined(total.value) : isCopied ? own : total);
    }
  return result;
}

} // namespace kiln::interpreter
