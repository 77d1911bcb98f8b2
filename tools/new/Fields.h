// SPDX-License-Identifier: Apache-2.0
//
// The fields of a checkpoint's config.json. Each field is checked and recorded when it is read: the generated program
// checks the fields that were read, and unread fields are rejected, since they may change what the model computes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::newproject {

/// An error that the user can fix: one sentence, or a line for each problem.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Fields {
public:
  /// `object` is the content of a file, which messages call `file`; `path` is its path in the file.
  Fields(std::string file, nlohmann::json object, std::string path = "");
  /// Reads a file. Throws a Refusal that names it on failure.
  static Fields read(const std::string &path);

  /// Whether the key exists and is not null.
  bool has(const std::string &key) const;

  /// Returns all keys.
  std::vector<std::string> keys() const;

  // The following return a value, or `otherwise` if the key is missing or null. Without `otherwise` the key is
  // required.
  std::int64_t whole(const std::string &key, std::int64_t least, std::int64_t most,
                     std::optional<std::int64_t> otherwise = std::nullopt);
  double number(const std::string &key, double least, double most, std::optional<double> otherwise = std::nullopt);
  bool flag(const std::string &key, bool otherwise);
  /// Returns one of `allowed`.
  std::string choice(const std::string &key, const std::vector<std::string> &allowed,
                     const std::optional<std::string> &otherwise = std::nullopt);

  /// Requires this value of a key if the key exists: other values are not supported.
  void only(const std::string &key, const nlohmann::json &value);
  /// Ignores keys that do not change results.
  void ignore(std::initializer_list<const char *> keys);
  void ignore(const std::vector<std::string> &keys);
  /// Returns an object among the fields, whose own fields must be read; then it must be closed.
  Fields inner(const std::string &key);
  void close(const std::string &key, const Fields &inner);
  /// Returns any value, unchecked; null if there is none.
  const nlohmann::json &raw(const std::string &key);
  /// Replaces the key's check by a lower bound, for a number that other checkpoints for the project may exceed.
  void mayExceed(const std::string &key, std::int64_t least);

  /// Rejects keys that nothing has read.
  void finish() const;
  /// Returns lines of C++ that compare a config.json with this one by support::ConfigCheck.
  std::string checks() const;
  /// Throws "FILE: KEY: wrong value; expected WHAT, got VALUE", followed by the result of near() if it is given.
  [[noreturn]] void refuse(const std::string &key, const std::string &what, const std::string &nearest = "") const;

private:
  const nlohmann::json *find(const std::string &key);
  void check(const std::string &key, const std::string &line);

  std::string file, path;
  nlohmann::json object;
  std::set<std::string> known;
  std::vector<std::pair<std::string, std::string>> lines; // check statements, by key
};

/// Returns the names of `all` that are similar to `name`, nearest first: "; near: gpt2, gptj", or an empty string.
std::string near(const std::string &name, const std::vector<std::string> &all);
/// Formats a number with all its digits, so that both C++ and people can read it.
std::string shown(double number);

} // namespace kiln::newproject
