// SPDX-License-Identifier: Apache-2.0
//
// Reads the JSON files of a checkpoint with nlohmann's library. A value knows its file and path, so that errors name
// them: "tokenizer.json: model.merges[17]: wrong value; expected a string, got 5".
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace support {

class Config {
public:
  /// Reads the file at `path`; errors name it.
  static Config read(const std::string &path);
  /// Parses the bytes of a file that messages call `name`.
  static Config parse(const std::string &name, const std::string &bytes);
  /// Wraps the contents `value` of such a file.
  Config(std::string name, nlohmann::json value);

  /// Whether this is an object with the member, which is not null.
  bool has(const std::string &name) const;
  /// Returns a member that an object must have.
  Config at(const std::string &name) const;
  /// Returns the elements of an array.
  std::vector<Config> elements() const;
  /// Returns an object's names with their values.
  std::vector<std::pair<std::string, Config>> members() const;

  std::string text() const;
  bool boolean() const;
  double number() const;
  std::int64_t integer() const;
  bool is_null() const { return value().is_null(); }
  bool is_text() const { return value().is_string(); }
  bool is_array() const { return value().is_array(); }

  /// Returns the member, or `otherwise` where the object lacks it or has null.
  std::string text(const std::string &name, const std::string &otherwise) const;
  bool boolean(const std::string &name, bool otherwise) const;
  double number(const std::string &name, double otherwise) const;
  std::int64_t integer(const std::string &name, std::int64_t otherwise) const;

  const std::string &file_name() const { return name; }
  /// Throws std::runtime_error: "FILE: WHERE: wrong value; expected WHAT, got VALUE".
  [[noreturn]] void refuse(const std::string &what) const;

private:
  Config(std::shared_ptr<const nlohmann::json> file, const nlohmann::json *here, std::string name, std::string path)
      : file(std::move(file)), here(here), name(std::move(name)), path(std::move(path)) {}
  const nlohmann::json &value() const { return *here; }

  std::shared_ptr<const nlohmann::json> file; // keeps `here` alive
  const nlohmann::json *here;
  std::string name; // of the file
  std::string path; // within the file
};

/// Compares fields of a checkpoint's config.json with those that a library was built for; the error names all
/// differences.
class ConfigCheck {
public:
  explicit ConfigCheck(const Config &config) : config(config) {}

  /// Compares a field whose default is `otherwise`.
  void number(const std::string &field, double otherwise, double built);
  /// Compares a field that the file must have.
  void number(const std::string &field, double built);
  void text(const std::string &field, const std::string &otherwise, const std::string &built);
  void flag(const std::string &field, bool otherwise, bool built);
  /// Checks a field that may be larger.
  void at_least(const std::string &field, double built);
  /// Records a difference; `is` and `built` are texts.
  void differs(const std::string &field, const std::string &is, const std::string &built);
  /// Throws std::runtime_error with a line for each field that differs.
  void finish() const;

private:
  const Config &config;
  std::string wrong;
};

/// Returns the bytes of a file; errors name it.
std::string read_whole_file(const std::string &path);

} // namespace support
