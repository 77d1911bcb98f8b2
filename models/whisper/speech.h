// SPDX-License-Identifier: Apache-2.0
//
// How a Whisper checkpoint begins a text, and which tokens it must not generate, from generation_config.json, else
// config.json.
#pragma once

#include "support/config.h"
#include "support/talk.h"

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

struct SpeechRules {
  std::vector<std::optional<support::Token>> beginning; // nothing: the most likely one of `languages`
  std::set<support::Token> languages;
  std::set<support::Token> ends, never, not_first;
};

class SpeechReader {
public:
  SpeechReader(const std::string &folder, std::size_t vocabulary) : folder(folder), vocabulary(vocabulary) {
    for (const char *file : {"/generation_config.json", "/config.json"})
      if (std::filesystem::exists(folder + file))
        files.push_back(support::Config::read(folder + file));
  }

  SpeechRules read() const {
    SpeechRules rules;
    const auto start = find("decoder_start_token_id"), forced = find("forced_decoder_ids");
    rules.beginning = {
        token(start ? *start : files.back().at("decoder_start_token_id"))}; // or an error about its absence
    if (const auto languages = find("lang_to_id"))
      for (const auto &[name, number] : languages->members())
        rules.languages.insert(token(number));
    if (forced && !forced->elements().empty()) {
      add_forced(rules, *forced);
    } else if (!rules.languages.empty()) {
      rules.beginning.push_back(std::nullopt);
      if (const auto tasks = find("task_to_id"))
        rules.beginning.push_back(token(tasks->at("transcribe")));
    }
    if (const auto plain = find("no_timestamps_token_id"); plain && rules.beginning.back() != token(*plain))
      rules.beginning.push_back(token(*plain));
    rules.ends = support::end_tokens(folder);
    rules.never = tokens("suppress_tokens");
    rules.not_first = tokens("begin_suppress_tokens");
    return rules;
  }

private:
  std::optional<support::Config> find(const std::string &key) const {
    for (const support::Config &file : files)
      if (file.has(key))
        return file.at(key);
    return std::nullopt;
  }
  support::Token token(const support::Config &number) const {
    if (number.integer() < 0 || number.integer() >= static_cast<std::int64_t>(vocabulary))
      number.refuse("a token from 0 to " + std::to_string(vocabulary - 1));
    return static_cast<support::Token>(number.integer());
  }
  std::set<support::Token> tokens(const std::string &key) const {
    std::set<support::Token> all;
    if (const auto list = find(key))
      for (const support::Config &number : list->elements())
        all.insert(token(number));
    return all;
  }
  /// Adds the forced tokens: pairs of a position and a token, or null for the language.
  void add_forced(SpeechRules &rules, const support::Config &forced) const {
    for (const support::Config &pair : forced.elements()) {
      const std::vector<support::Config> both = pair.elements();
      const auto next = static_cast<std::int64_t>(rules.beginning.size());
      if (both.size() != 2 || both[0].integer() != next)
        pair.refuse("position " + std::to_string(next) + " and a token");
      if (both[1].is_null() && rules.languages.empty())
        both[1].refuse("a token, since lang_to_id has none");
      rules.beginning.push_back(both[1].is_null() ? std::nullopt : std::optional(token(both[1])));
    }
  }

  std::string folder;
  std::size_t vocabulary;
  std::vector<support::Config> files;
};
