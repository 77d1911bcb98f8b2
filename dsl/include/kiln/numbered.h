// SPDX-License-Identifier: Apache-2.0
//
// Names of tensors that stand for one tensor in each layer of the stacks around them. "{}" is the number of a layer:
// "h.{}.weight". In a pattern of layers the number is a sum, of which each loop around the tensor contributes a part:
// "layers.{6k}.{}.{+5}.{}.weight" is in loops k and j the weight of layer 6 k + 5 + j, "layers.11.weight" for k = 1 and
// j = 0. Names of a spec have no braces.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

namespace detail {

/// "{+5}" or "{6k}".
constexpr std::array<char, 24> number_part(std::int64_t number, bool is_stride) {
  std::array<char, 24> text{};
  std::size_t size = 0, digits = 1;
  text[size++] = '{';
  if (!is_stride)
    text[size++] = '+';
  for (std::int64_t rest = number; rest >= 10; rest /= 10)
    ++digits;
  for (std::size_t i = digits; i > 0; --i, number /= 10)
    text[size + i - 1] = static_cast<char>('0' + number % 10);
  size += digits;
  if (is_stride)
    text[size++] = 'k';
  text[size] = '}';
  return text;
}

/// The component of a path before the number of a loop over periods, or over layers that begin with this one.
template <std::int64_t Stride> inline constexpr std::array<char, 24> layer_stride_name = number_part(Stride, true);
template <std::int64_t Offset> inline constexpr std::array<char, 24> layer_offset_name = number_part(Offset, false);

/// Whether a component of a path is such a part of a number, and whether it ends it.
constexpr bool is_number_part(const char *name) { return name[0] == '{' && name[1] != '}'; }
constexpr bool ends_number(const char *name) { return is_number_part(name) && name[1] == '+'; }

/// A name that is read from its beginning, component by component.
class NameReader {
public:
  explicit NameReader(const std::string &name) : name(name) {}

  bool is_at_end() const { return at >= name.size(); }
  /// Takes a component and the dot after it, which is only part of the result if the component is no part of a number.
  std::string take() {
    const std::size_t dot = name.find('.', at);
    const std::size_t end = dot == std::string::npos ? name.size() : dot + 1;
    std::string component = name.substr(at, end - at);
    at = end;
    if (is_number_part(component.c_str()) && component.back() == '.')
      component.pop_back();
    return component;
  }
  /// Takes the "{}" that follows a part of a number, with the dot after it if there is one.
  std::string take_hole() {
    at += 2;
    return at < name.size() && name[at] == '.' ? (++at, ".") : "";
  }

private:
  const std::string &name;
  std::size_t at = 0;
};

} // namespace detail

/// Returns the name of one tensor: the numbers of the layers replace the parts that stand for them, those of the
/// outermost loop first. Missing numbers are 0.
inline std::string name_in_layers(const std::string &pattern, const std::vector<std::int64_t> &layers) {
  std::string name;
  std::size_t loop = 0;
  std::int64_t sum = 0;
  auto next = [&] { return loop < layers.size() ? layers[loop++] : 0; };
  for (detail::NameReader reader(pattern); !reader.is_at_end();) {
    std::string component = reader.take();
    if (detail::is_number_part(component.c_str())) {
      const bool is_end = detail::ends_number(component.c_str());
      const std::int64_t number = std::stoll(component.substr(is_end ? 2 : 1));
      const std::string dot = reader.take_hole();
      sum += is_end ? number + next() : number * next();
      if (is_end)
        name += std::to_string(std::exchange(sum, 0)) + dot;
      continue;
    }
    for (std::size_t hole = 0; (hole = component.find("{}", hole)) != std::string::npos;)
      component.replace(hole, 2, std::to_string(next()));
    name += component;
  }
  return name;
}

/// Returns the names of all tensors, those of the innermost layers next to each other. `counts`: of the loops'
/// iterations, outermost first.
inline std::vector<std::string> names_in_layers(const std::string &pattern, const std::vector<std::int64_t> &counts) {
  std::vector<std::string> names;
  std::vector<std::int64_t> layers(counts.size(), 0);
  while (true) {
    names.push_back(name_in_layers(pattern, layers));
    std::size_t loop = counts.size();
    while (loop > 0 && ++layers[loop - 1] == counts[loop - 1])
      layers[--loop] = 0;
    if (loop == 0)
      return names;
  }
}

/// Whether the number of a layer is a sum.
inline bool has_number_parts(const std::string &pattern) { return pattern.find("{+") != std::string::npos; }

/// What an iteration of a loop contributes to the number of a layer: factor * iteration + offset.
struct NumberTerm {
  std::int64_t factor = 1, offset = 0;
};
/// Returns the terms of the only number of a name, one for each loop; none if the name has several numbers.
inline std::vector<NumberTerm> number_terms(const std::string &pattern) {
  std::vector<NumberTerm> terms;
  int numbers = 0;
  for (detail::NameReader reader(pattern); !reader.is_at_end();) {
    const std::string component = reader.take();
    if (detail::is_number_part(component.c_str())) {
      const bool is_end = detail::ends_number(component.c_str());
      const std::int64_t number = std::stoll(component.substr(is_end ? 2 : 1));
      terms.push_back(is_end ? NumberTerm{1, number} : NumberTerm{number, 0});
      numbers += is_end;
      reader.take_hole();
    } else if (component.find("{}") != std::string::npos) {
      terms.push_back({});
      ++numbers;
    }
  }
  return numbers == 1 ? terms : std::vector<NumberTerm>();
}

/// Returns the name as a spec's patterns and messages have it, with one "{}" for each number: "layers.{}.weight".
inline std::string written_name(const std::string &pattern) {
  std::string name;
  for (detail::NameReader reader(pattern); !reader.is_at_end();) {
    const std::string component = reader.take();
    if (!detail::is_number_part(component.c_str())) {
      name += component;
      continue;
    }
    const std::string dot = reader.take_hole();
    if (detail::ends_number(component.c_str()))
      name += "{}" + dot;
  }
  return name;
}

} // namespace kiln
