// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace support {

namespace {

/// Returns a number in the fewest digits that represent it.
std::string shown(double number) {
  const auto whole = static_cast<std::int64_t>(std::clamp(number, -9e15, 9e15));
  return static_cast<double>(whole) == number ? std::to_string(whole) : nlohmann::json(number).dump();
}

} // namespace

std::string read_whole_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file.good() && !file.eof())
    throw std::runtime_error("cannot read \"" + path + "\"");
  return bytes;
}

Config Config::read(const std::string &path) { return parse(path.substr(path.rfind('/') + 1), read_whole_file(path)); }

Config Config::parse(const std::string &name, const std::string &bytes) {
  try {
    return {name, nlohmann::json::parse(bytes)};
  } catch (const nlohmann::json::exception &error) {
    const std::string words = error.what(); // "[json.exception...] parse error at line 1, column 2: ..."
    const std::size_t after = words.find("] ");
    throw std::runtime_error(name + ": no JSON: " + (after == words.npos ? words : words.substr(after + 2)));
  }
}

Config::Config(std::string name, nlohmann::json value)
    : file(std::make_shared<const nlohmann::json>(std::move(value))), here(file.get()), name(std::move(name)) {}

void Config::refuse(const std::string &what) const {
  std::string shown = value().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (shown.size() > 80)
    shown = shown.substr(0, 80) + "...";
  throw std::runtime_error(name + ": " + (path.empty() ? "" : path + ": ") + "wrong value; expected " + what +
                           ", got " + shown);
}

bool Config::has(const std::string &member) const {
  const auto found = value().is_object() ? value().find(member) : value().end();
  return found != value().end() && !found->is_null();
}

Config Config::at(const std::string &member) const {
  if (!value().is_object())
    refuse("an object");
  const auto found = value().find(member);
  if (found == value().end())
    throw std::runtime_error(name + ": " + (path.empty() ? "the file" : path) + " lacks \"" + member + "\"");
  return {file, &*found, name, path.empty() ? member : path + "." + member};
}

std::vector<Config> Config::elements() const {
  if (!value().is_array())
    refuse("an array");
  std::vector<Config> result;
  for (const nlohmann::json &element : value())
    result.push_back(Config(file, &element, name, path + "[" + std::to_string(result.size()) + "]"));
  return result;
}

std::vector<std::pair<std::string, Config>> Config::members() const {
  if (!value().is_object())
    refuse("an object");
  std::vector<std::pair<std::string, Config>> result;
  for (const auto &[member, content] : value().items())
    result.emplace_back(member, Config(file, &content, name, path + "." + member));
  return result;
}

std::string Config::text() const {
  if (!value().is_string())
    refuse("a string");
  return value().get<std::string>();
}

bool Config::boolean() const {
  if (!value().is_boolean())
    refuse("true or false");
  return value().get<bool>();
}

double Config::number() const {
  if (!value().is_number())
    refuse("a number");
  return value().get<double>();
}

std::int64_t Config::integer() const {
  const double number = value().is_number() ? value().get<double>() : 0.5;
  if (number != static_cast<double>(static_cast<std::int64_t>(std::clamp(number, -9e15, 9e15))))
    refuse("an integer");
  return static_cast<std::int64_t>(number);
}

std::string Config::text(const std::string &member, const std::string &otherwise) const {
  return has(member) ? at(member).text() : otherwise;
}
bool Config::boolean(const std::string &member, bool otherwise) const {
  return has(member) ? at(member).boolean() : otherwise;
}
double Config::number(const std::string &member, double otherwise) const {
  return has(member) ? at(member).number() : otherwise;
}
std::int64_t Config::integer(const std::string &member, std::int64_t otherwise) const {
  return has(member) ? at(member).integer() : otherwise;
}

void ConfigCheck::number(const std::string &field, double otherwise, double built) {
  if (const double is = config.number(field, otherwise); is != built)
    differs(field, shown(is), shown(built));
}

void ConfigCheck::number(const std::string &field, double built) {
  if (config.has(field))
    number(field, built, built);
  else
    differs(field, "missing", shown(built));
}

void ConfigCheck::text(const std::string &field, const std::string &otherwise, const std::string &built) {
  if (const std::string is = config.text(field, otherwise); is != built)
    differs(field, is, built);
}

void ConfigCheck::flag(const std::string &field, bool otherwise, bool built) {
  if (const bool is = config.boolean(field, otherwise); is != built)
    differs(field, is ? "true" : "false", built ? "true" : "false");
}

void ConfigCheck::at_least(const std::string &field, double built) {
  if (config.number(field, built) < built)
    number(field, built, built);
}

void ConfigCheck::differs(const std::string &field, const std::string &is, const std::string &built) {
  wrong += (wrong.empty() ? "" : "\n") + config.file_name() + ": " + field + " is " + is +
           ", the library was built for " + built;
}

void ConfigCheck::finish() const {
  if (!wrong.empty())
    throw std::runtime_error(wrong);
}

} // namespace support
