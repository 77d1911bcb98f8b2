// SPDX-License-Identifier: Apache-2.0
#include "tools/new/Fields.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

namespace kiln::newproject {

using Json = nlohmann::json;

std::string shown(double number) {
  return std::fabs(number) < 1e15 && number == std::floor(number) ? std::to_string(static_cast<std::int64_t>(number))
                                                                  : fmt::format("{}", number);
}

/// Returns the edit distance with insertions, deletions and substitutions of a letter, and transpositions of two
/// neighbours.
static std::size_t distance(const std::string &a, const std::string &b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        table[i][j] = i + j;
        continue;
      }
      table[i][j] =
          std::min({table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
    }
  return table[a.size()][b.size()];
}

std::string near(const std::string &name, const std::vector<std::string> &all) {
  std::vector<std::pair<std::size_t, std::string>> found;
  if (name.size() <= 64) // longer names have no near ones
    for (const std::string &each : all)
      if (std::size_t far = distance(name, each); far <= 1 + each.size() / 4)
        found.emplace_back(far, each);
  std::sort(found.begin(), found.end());
  std::string words;
  for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), 3); ++i)
    words += (i ? ", " : "; near: ") + found[i].second;
  return words;
}

Fields::Fields(std::string name, Json value, std::string where)
    : file(std::move(name)), path(std::move(where)), object(std::move(value)) {}

Fields Fields::read(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    throw Refusal(fmt::format("cannot read \"{}\"", path));
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}}, name = path.substr(path.rfind('/') + 1);
  Json value = Json::parse(bytes, nullptr, false);
  if (value.is_discarded())
    throw Refusal(fmt::format("{}: no JSON", path));
  if (!value.is_object())
    throw Refusal(fmt::format("{}: no JSON object; expected one", path));
  return {name, std::move(value)};
}

void Fields::refuse(const std::string &key, const std::string &what, const std::string &nearest) const {
  const auto found = object.find(key);
  std::string value = found == object.end() ? "nothing" : found->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (value.size() > 80)
    value = value.substr(0, 80) + "...";
  throw Refusal(fmt::format("{}: {}{}: wrong value; expected {}, got {}{}", file, path, key, what, value, nearest));
}

bool Fields::has(const std::string &key) const {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

std::vector<std::string> Fields::keys() const {
  std::vector<std::string> all;
  for (const auto &[key, value] : object.items())
    all.push_back(key);
  return all;
}

const Json *Fields::find(const std::string &key) {
  known.insert(key);
  return has(key) ? &object.at(key) : nullptr;
}

void Fields::check(const std::string &key, const std::string &line) { lines.emplace_back(key, "  " + line + "\n"); }

std::int64_t Fields::whole(const std::string &key, std::int64_t least, std::int64_t most,
                           std::optional<std::int64_t> otherwise) {
  const Json *value = find(key);
  const std::string what = fmt::format("an integer from {} to {}", least, most);
  if (!value && !otherwise)
    refuse(key, what);
  if (value && !value->is_number_integer())
    refuse(key, what);
  // Values beyond 63 bits are unsigned, and too large.
  if (value && value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(most))
    refuse(key, what);
  const std::int64_t result = value ? value->get<std::int64_t>() : *otherwise;
  if (result < least || result > most)
    refuse(key, what);
  check(key, otherwise ? fmt::format("check.number(\"{}\", {}, {});", key, *otherwise, result)
                       : fmt::format("check.number(\"{}\", {});", key, result));
  return result;
}

double Fields::number(const std::string &key, double least, double most, std::optional<double> otherwise) {
  const Json *value = find(key);
  const std::string what = fmt::format("a number from {} to {}", least, most);
  if (value ? !value->is_number() : !otherwise)
    refuse(key, what);
  const double result = value ? value->get<double>() : *otherwise;
  if (!(result >= least && result <= most))
    refuse(key, what);
  check(key, otherwise ? fmt::format("check.number(\"{}\", {}, {});", key, shown(*otherwise), shown(result))
                       : fmt::format("check.number(\"{}\", {});", key, shown(result)));
  return result;
}

bool Fields::flag(const std::string &key, bool otherwise) {
  const Json *value = find(key);
  if (value && !value->is_boolean())
    refuse(key, "true or false");
  const bool result = value ? value->get<bool>() : otherwise;
  check(key, fmt::format("check.flag(\"{}\", {}, {});", key, otherwise, result));
  return result;
}

std::string Fields::choice(const std::string &key, const std::vector<std::string> &allowed,
                           const std::optional<std::string> &otherwise) {
  const Json *value = find(key);
  const std::string what = fmt::format("{}\"{}\"", allowed.size() > 1 ? "one of " : "", fmt::join(allowed, "\", \""));
  if (value ? !value->is_string() : !otherwise)
    refuse(key, what);
  const std::string result = value ? value->get<std::string>() : *otherwise;
  if (std::find(allowed.begin(), allowed.end(), result) == allowed.end())
    refuse(key, what, near(result, allowed));
  check(key, fmt::format("check.text(\"{}\", \"{}\", \"{}\");", key, otherwise.value_or("missing"), result));
  return result;
}

void Fields::only(const std::string &key, const Json &value) {
  const Json *found = find(key);
  if (found && *found != value)
    refuse(key, value.is_null() ? "null" : value.dump());
  if (value.is_null())
    check(key, fmt::format("if (config.has(\"{0}\"))\n    check.differs(\"{0}\", \"present\", \"null\");", key));
  else if (value.is_boolean())
    check(key, fmt::format("check.flag(\"{0}\", {1}, {1});", key, value.get<bool>()));
  else if (value.is_string())
    check(key, fmt::format("check.text(\"{0}\", {1}, {1});", key, value.dump()));
}

void Fields::ignore(std::initializer_list<const char *> keys) { known.insert(keys.begin(), keys.end()); }
void Fields::ignore(const std::vector<std::string> &keys) { known.insert(keys.begin(), keys.end()); }

Fields Fields::inner(const std::string &key) {
  const Json *value = find(key);
  if (!value || !value->is_object())
    refuse(key, "an object");
  return {file, *value, path + key + "."};
}

void Fields::close(const std::string &key, const Fields &inner) {
  inner.finish();
  std::string body;
  std::istringstream text("  support::ConfigCheck check(config);\n" + inner.checks() + "  check.finish();\n");
  for (std::string line; std::getline(text, line);)
    body += "  " + line + "\n";
  check(key, fmt::format("[](const support::Config &config) {{\n{}  }}(config.at(\"{}\"));", body, key));
}

const Json &Fields::raw(const std::string &key) {
  static const Json nothing;
  const Json *value = find(key);
  return value ? *value : nothing;
}

void Fields::mayExceed(const std::string &key, std::int64_t least) {
  std::erase_if(lines, [&](const auto &line) { return line.first == key; });
  check(key, fmt::format("check.at_least(\"{}\", {});", key, least));
}

void Fields::finish() const {
  std::string words;
  const std::vector<std::string> all(known.begin(), known.end());
  for (const auto &[key, value] : object.items())
    if (!known.contains(key) && !value.is_null())
      words += fmt::format("{}{}: {}{}: unknown key for this model, which may change its results{}",
                           words.empty() ? "" : "\n", file, path, key, near(key, all));
  if (!words.empty())
    throw Refusal(words + "\n--ignore KEY ignores a key that has no effect");
}

std::string Fields::checks() const {
  std::string text;
  for (const auto &[key, line] : lines)
    text += line;
  return text;
}

} // namespace kiln::newproject
