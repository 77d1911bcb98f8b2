// SPDX-License-Identifier: Apache-2.0
//
// The fields of a checkpoint's config.json, each checked as it is read, and each remembered: what was read becomes the
// check of the generated program, and what was not is refused, since it may change what the model computes.
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

/// What a user has to change; one sentence, or a line for each thing.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Fields {
public:
  /// The object of a file that messages call `file`; `path` is where in it.
  Fields(std::string file, nlohmann::json object, std::string path = "");
  /// The file, or a Refusal that names it.
  static Fields read(const std::string &path);

  /// Whether the key is there and not null.
  bool has(const std::string &key) const;

  /// All that are there.
  std::vector<std::string> keys() const;

  // Values, or `otherwise` where the key is missing or null; without it the key is required.
  std::int64_t whole(const std::string &key, std::int64_t least, std::int64_t most,
                     std::optional<std::int64_t> otherwise = std::nullopt);
  double number(const std::string &key, double least, double most, std::optional<double> otherwise = std::nullopt);
  bool flag(const std::string &key, bool otherwise);
  /// One of `allowed`.
  std::string choice(const std::string &key, const std::vector<std::string> &allowed,
                     const std::optional<std::string> &otherwise = std::nullopt);

  /// A key with which only this value can be built, which is what its absence means, too.
  void only(const std::string &key, const nlohmann::json &value);
  /// Keys that change no result.
  void ignore(std::initializer_list<const char *> keys);
  void ignore(const std::vector<std::string> &keys);
  /// An object among the fields, whose own fields are to be read; then it is closed.
  Fields inner(const std::string &key);
  void close(const std::string &key, const Fields &inner);
  /// Any value, unchecked; null if there is none.
  const nlohmann::json &raw(const std::string &key);
  /// A number that other checkpoints of the project may exceed, in place of the key's own check.
  void mayExceed(const std::string &key, std::int64_t least);

  /// Refuses keys that nothing has read.
  void finish() const;
  /// Lines of C++ that compare a config.json with this one by support::ConfigCheck.
  std::string checks() const;
  /// "FILE: KEY requires WHAT, got VALUE".
  [[noreturn]] void refuse(const std::string &key, const std::string &what) const;

private:
  const nlohmann::json *find(const std::string &key);
  void check(const std::string &key, const std::string &line);

  std::string file, path;
  nlohmann::json object;
  std::set<std::string> known;
  std::vector<std::pair<std::string, std::string>> lines; // of checks, by key
};

/// The names of `all` that a person may have meant, nearest first: "; near: gpt2, gptj", or nothing.
std::string near(const std::string &name, const std::vector<std::string> &all);
/// A number as C++ and people read it, with all its digits.
std::string shown(double number);

} // namespace kiln::newproject
