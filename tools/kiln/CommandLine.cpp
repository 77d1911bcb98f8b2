// SPDX-License-Identifier: Apache-2.0
#include "tools/kiln/CommandLine.h"

#include "kiln/names.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {

/// Returns "; nearest: --target, --tuning", or an empty string if there are no names.
static std::string nearest(const std::string &wanted, const std::vector<std::string> &names) {
  constexpr std::size_t most = 3;
  std::vector<std::pair<int, std::string>> ranked;
  for (const std::string &name : names)
    ranked.emplace_back(detail::distance(wanted.c_str(), name.c_str()), name);
  std::sort(ranked.begin(), ranked.end());
  std::string text;
  for (std::size_t i = 0; i < std::min(most, ranked.size()); ++i)
    text += (i == 0 ? "; nearest: " : ", ") + ranked[i].second;
  return text;
}

static std::vector<std::string> optionsOf(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options([](const CLI::Option *) { return true; }))
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  return names;
}

static std::vector<std::string> subcommandsOf(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::App *subcommand : app.get_subcommands([](const CLI::App *) { return true; }))
    names.push_back(subcommand->get_name());
  return names;
}

/// Describes the first unknown option, or else the first word that nothing takes.
static std::string describeExtras(const CLI::App &app) {
  const CLI::App *chosen = &app;
  while (!chosen->get_subcommands().empty())
    chosen = chosen->get_subcommands().front();
  const std::vector<std::string> words = app.remaining(/*recurse=*/true);
  const auto option = std::find_if(words.begin(), words.end(), [](const std::string &w) { return w.starts_with("-"); });
  if (option != words.end()) {
    const std::string name = option->substr(0, option->find('='));
    return fmt::format("option \"{}\": unknown; expected one that --help shows{}", name,
                       nearest(name, optionsOf(*chosen)));
  }
  const std::string word = words.empty() ? "" : words.front();
  const std::vector<std::string> subcommands = subcommandsOf(*chosen);
  if (chosen == &app && !subcommands.empty())
    return fmt::format("subcommand \"{}\": unknown; expected one of {}{}", word, fmt::join(subcommands, ", "),
                       nearest(word, subcommands));
  return fmt::format("word \"{}\": no option takes it; expected options that --help shows", word);
}

int refuseCommandLine(const CLI::App &app, const CLI::ParseError &error) {
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError))
    return app.exit(error);
  std::fflush(stdout);
  fmt::print(stderr, "error: {}\n", describeExtras(app));
  return error.get_exit_code();
}

CLI::Validator oneOf(std::vector<std::string> values) {
  const std::string kind = fmt::format("{{{}}}", fmt::join(values, ","));
  const auto check = [values = std::move(values)](const std::string &word) {
    if (std::find(values.begin(), values.end(), word) != values.end())
      return std::string();
    return fmt::format("\"{}\" is unknown; expected one of {}{}", word, fmt::join(values, ", "), nearest(word, values));
  };
  return CLI::Validator([check](std::string &word) { return check(word); }, kind);
}

CLI::Validator notEmpty() {
  return CLI::Validator(
      [](std::string &word) { return word.empty() ? std::string("empty; expected a folder, such as \".\"") : ""; }, "");
}

} // namespace kiln
