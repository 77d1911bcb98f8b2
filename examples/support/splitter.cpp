// SPDX-License-Identifier: Apache-2.0
#include "splitter.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/regex.h>
#include <unicode/unistr.h>
#include <unicode/utext.h>

namespace support {

namespace {

// The pattern of ByteLevel, which is GPT-2's.
constexpr const char *gpt2_pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::string replaced(const std::string &text, const std::string &from, const std::string &to) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t found = std::min(text.find(from, at), text.size());
    result.append(text, at, found - at);
    if (found < text.size())
      result += to;
    at = found + from.size();
  }
  return result;
}

class Expression {
public:
  Expression(const Config &place, const std::string &pattern) {
    UErrorCode status = U_ZERO_ERROR;
    UParseError where{};
    compiled.reset(icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(pattern), 0, where, status));
    if (U_FAILURE(status))
      place.refuse(std::string("an expression that ICU reads (") + u_errorName(status) + " at character " +
                   std::to_string(where.offset) + ")");
  }

  /// Returns the begin and end of each match.
  std::vector<std::pair<std::size_t, std::size_t>> matches(const std::string &text) const {
    std::vector<std::pair<std::size_t, std::size_t>> found;
    UErrorCode status = U_ZERO_ERROR;
    UText utext = UTEXT_INITIALIZER;
    utext_openUTF8(&utext, text.data(), static_cast<std::int64_t>(text.size()), &status);
    std::unique_ptr<icu::RegexMatcher> matcher(compiled->matcher(status));
    if (U_SUCCESS(status)) {
      matcher->reset(&utext);
      matcher->setStackLimit(0, status); // a long run of spaces needs more than the default of 8 MB
    }
    while (U_SUCCESS(status) && matcher->find(status))
      found.emplace_back(matcher->start64(status), matcher->end64(status));
    utext_close(&utext);
    if (U_FAILURE(status))
      throw std::runtime_error(std::string("ICU cannot split the text: ") + u_errorName(status));
    return found;
  }

  /// Words are the matches, and with `takesOthers` also the text between them.
  void split(const std::string &text, bool takesOthers, std::vector<std::string> &words) const {
    std::size_t last = 0;
    auto add_up_to = [&](std::size_t end, bool isTaken) {
      if (end > last && isTaken)
        words.push_back(text.substr(last, end - last));
      last = end;
    };
    for (const auto &[begin, end] : matches(text)) {
      add_up_to(begin, takesOthers);
      add_up_to(end, true);
    }
    add_up_to(text.size(), takesOthers);
  }

  std::string replaced(const std::string &text, const std::string &to) const {
    std::string result;
    std::size_t last = 0;
    for (const auto &[begin, end] : matches(text)) {
      result += text.substr(last, begin - last) + to;
      last = end;
    }
    return result + text.substr(last);
  }

private:
  std::unique_ptr<icu::RegexPattern> compiled;
};

/// Normalises to Unicode's form C.
std::string composed(const Config &place, const std::string &text) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2 *form = icu::Normalizer2::getNFCInstance(status);
  icu::UnicodeString result;
  if (U_SUCCESS(status))
    result = form->normalize(icu::UnicodeString::fromUTF8(text), status);
  if (U_FAILURE(status))
    place.refuse(std::string("a form that ICU has (") + u_errorName(status) + ")");
  std::string bytes;
  return result.toUTF8String(bytes);
}

} // namespace

Splitter::Splitter(const Config &file) {
  if (file.has("normalizer"))
    add_normalizer(file.at("normalizer"));
  if (file.has("pre_tokenizer"))
    add_pre_tokenizer(file.at("pre_tokenizer"));
}

void Splitter::operator()(std::string_view text, bool isFirst,
                          const std::function<void(std::string_view)> &word) const {
  Words words{std::string(text)};
  for (const Step &step : steps)
    words = step(std::move(words), isFirst);
  for (const std::string &each : words)
    word(each);
}

void Splitter::add_prefix(std::string prefix, bool toFirstOnly, bool isUnlessThere) {
  steps.push_back([=](Words words, bool isFirst) {
    if (!words.empty() && (isFirst || !toFirstOnly) && !(isUnlessThere && words[0].starts_with(prefix)))
      words[0] = prefix + words[0];
    return words;
  });
}

void Splitter::add_replacement(std::string from, std::string to) {
  steps.push_back([=](Words words, bool) {
    for (std::string &word : words)
      word = replaced(word, from, to);
    return words;
  });
}

void Splitter::add_expression(const Config &place, const std::string &pattern, bool takesOthers) {
  steps.push_back([expression = std::make_shared<Expression>(place, pattern), takesOthers](const Words &words, bool) {
    Words result;
    for (const std::string &word : words)
      expression->split(word, takesOthers, result);
    return result;
  });
}

void Splitter::add_change(std::function<std::string(const std::string &)> change) {
  steps.push_back([change = std::move(change)](Words words, bool) {
    for (std::string &word : words)
      word = change(word);
    return words;
  });
}

void Splitter::add_normalizer(const Config &stage) {
  const std::string type = stage.at("type").text();
  if (type == "Sequence") {
    for (const Config &part : stage.at("normalizers").elements())
      add_normalizer(part);
  } else if (type == "Prepend") {
    add_prefix(stage.at("prepend").text(), false, false);
  } else if (type == "Replace" && stage.at("pattern").has("String")) {
    const std::string from = stage.at("pattern").at("String").text();
    if (from.empty())
      stage.at("pattern").refuse("a string that is not empty");
    add_replacement(from, stage.at("content").text());
  } else if (type == "Replace" && stage.at("pattern").has("Regex")) {
    const Config pattern = stage.at("pattern").at("Regex");
    add_change([expression = std::make_shared<Expression>(pattern, pattern.text()),
                to = stage.at("content").text()](const std::string &word) { return expression->replaced(word, to); });
  } else if (type == "Lowercase") {
    add_change([](const std::string &word) {
      std::string result;
      return icu::UnicodeString::fromUTF8(word).toLower(icu::Locale::getRoot()).toUTF8String(result);
    });
  } else if (type == "NFC") {
    add_change([stage](const std::string &word) { return composed(stage, word); });
  } else {
    stage.refuse("Lowercase, NFC, Prepend, Replace, or a Sequence of these");
  }
}

void Splitter::add_pre_tokenizer(const Config &stage) {
  const std::string type = stage.at("type").text();
  if (type == "Sequence") {
    for (const Config &part : stage.at("pretokenizers").elements())
      add_pre_tokenizer(part);
  } else if (type == "ByteLevel") {
    isOfBytes = true;
    if (stage.boolean("add_prefix_space", true))
      add_prefix(" ", false, true);
    if (stage.boolean("use_regex", true))
      add_expression(stage, gpt2_pattern);
  } else if (type == "Digits") {
    add_expression(stage, stage.boolean("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)");
  } else if (type == "Split") {
    const bool isInverted = stage.boolean("invert", false);
    if (stage.at("behavior").text() != (isInverted ? "Removed" : "Isolated"))
      stage.refuse("the behavior Isolated, or Removed and inverted");
    const Config pattern = stage.at("pattern").at("Regex");
    add_expression(pattern, pattern.text(), !isInverted);
  } else if (type == "Metaspace") {
    add_metaspace(stage);
  } else {
    stage.refuse("ByteLevel, Digits, Metaspace, Split, or a Sequence of these");
  }
}

void Splitter::add_metaspace(const Config &stage) {
  const std::string mark = stage.at("replacement").text();
  const std::string scheme = stage.text("prepend_scheme", stage.boolean("add_prefix_space", true) ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    stage.at("prepend_scheme").refuse("always, first or never");
  if (mark.empty() || mark.find_first_of("\\[](){}.*+?^$|") != mark.npos)
    stage.at("replacement").refuse("a character that stands for a space");
  add_replacement(" ", mark);
  if (scheme != "never")
    add_prefix(mark, scheme == "first", true);
  if (stage.boolean("split", true))
    add_expression(stage, mark + "[^" + mark + "]*");
}

} // namespace support
