// SPDX-License-Identifier: Apache-2.0
//
// Splits text into the words that byte-pair encoding works on: the steps "normalizer" and "pre_tokenizer" of a
// tokenizer.json. Regular expressions are ICU's, which support Unicode's categories.
#pragma once

#include "config.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace support {

class Splitter {
public:
  /// Reads the two members of the file that are not null.
  explicit Splitter(const Config &file);

  /// Calls `word` with each word in order; `isFirst`: whether the text begins the whole input.
  void operator()(std::string_view text, bool isFirst, const std::function<void(std::string_view)> &word) const;

  /// Whether tokens are written with a character for each byte.
  bool is_of_bytes() const { return isOfBytes; }

private:
  using Words = std::vector<std::string>;
  using Step = std::function<Words(Words words, bool isFirst)>;

  void add_normalizer(const Config &stage);
  void add_pre_tokenizer(const Config &stage);
  void add_prefix(std::string prefix, bool toFirstOnly, bool isUnlessThere);
  void add_replacement(std::string from, std::string to);
  void add_expression(const Config &place, const std::string &pattern, bool takesOthers = true);
  void add_change(std::function<std::string(const std::string &)> change);
  void add_metaspace(const Config &stage);

  std::vector<Step> steps;
  bool isOfBytes = false;
};

} // namespace support
