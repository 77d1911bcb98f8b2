// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/SearchSpace.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace kiln {

std::string toString(const ScheduleConfig &config) {
  std::vector<std::string> parts;
  for (const auto &[key, value] : config)
    parts.push_back(llvm::formatv("{0}={1}", key, value));
  return llvm::join(parts, " ");
}

ScheduleConfig defaultConfigOf(const SearchSpace &space) {
  ScheduleConfig config;
  for (const TuningParameter &parameter : space)
    config[parameter.key] = parameter.defaultValue;
  return config;
}

bool obeysRules(const SearchSpace &space, const ScheduleConfig &config) {
  return llvm::all_of(space.rules, [&](const TuningRule &rule) { return rule.holds(config); });
}

std::optional<ScheduleConfig> resolve(const SearchSpace &space, const ScheduleConfig *config, std::string &error) {
  ScheduleConfig resolved = defaultConfigOf(space);
  if (!config)
    return resolved;
  for (const auto &[key, value] : *config) {
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
  int64_t defaultValue = values.front();
  for (int64_t value : values)
    if (value <= wanted)
      defaultValue = value;
  return {key.str(), std::move(values), defaultValue};
}

} // namespace kiln
