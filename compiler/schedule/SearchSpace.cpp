// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/SearchSpace.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace kiln {

std::string toString(const SchedulePoint &point) {
  std::vector<std::string> parts;
  for (const auto &[key, value] : point)
    parts.push_back(llvm::formatv("{0}={1}", key, value));
  return llvm::join(parts, " ");
}

SchedulePoint presets(const SearchSpace &space) {
  SchedulePoint point;
  for (const TuningParameter &parameter : space)
    point[parameter.key] = parameter.preset;
  return point;
}

bool obeysRules(const SearchSpace &space, const SchedulePoint &point) {
  return llvm::all_of(space.rules, [&](const TuningRule &rule) { return rule.holds(point); });
}

std::optional<SchedulePoint> resolve(const SearchSpace &space, const SchedulePoint *point, std::string &error) {
  SchedulePoint resolved = presets(space);
  if (!point)
    return resolved;
  for (const auto &[key, value] : *point) {
    auto parameter = llvm::find_if(space, [&](const TuningParameter &p) { return p.key == key; });
    if (parameter == space.end()) {
      error = llvm::formatv("schedule has no parameter \"{0}\"", key);
      return std::nullopt;
    }
    if (!llvm::is_contained(parameter->values, value)) {
      auto legal = llvm::map_range(parameter->values, [](int64_t v) { return std::to_string(v); });
      error = llvm::formatv("schedule parameter \"{0}\": unknown value; expected one of {1}, got {2}", key,
                            llvm::join(legal, ", "), value);
      return std::nullopt;
    }
    resolved[key] = value;
  }
  for (const TuningRule &rule : space.rules)
    if (!rule.holds(resolved)) {
      error = llvm::formatv("schedule: invalid combination; expected {0}, got {1}", rule.text, toString(resolved));
      return std::nullopt;
    }
  return resolved;
}

TuningParameter makeParameter(llvm::StringRef key, std::vector<int64_t> values, int64_t wanted) {
  llvm::sort(values);
  values.erase(llvm::unique(values), values.end());
  int64_t preset = values.front();
  for (int64_t value : values)
    if (value <= wanted)
      preset = value;
  return {key.str(), std::move(values), preset};
}

} // namespace kiln
