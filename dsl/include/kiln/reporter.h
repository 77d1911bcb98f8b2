// SPDX-License-Identifier: Apache-2.0
//
// The mistakes of a trace. The first one is kept as a Text that names the layer, the rule and the source line; model.h
// turns the text into a compile error.
#pragma once

#include "kiln/graph.h"
#include "kiln/names.h"
#include "kiln/rules.h"
#include "kiln/text.h"

namespace kiln {

/// The caller's line, for messages. A default argument `Site site = Site::here()` gets the line of the call.
struct Site {
  const char *file = nullptr;
  int line = 0;

  static constexpr Site here(const char *file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

/// The graph so far, and the place in it and in the source to which the next mistake belongs.
class Reporter {
public:
  /// The first mistake, empty if there is none.
  constexpr const Text &mistake() const { return message; }
  /// Clears the site: the next checks have no source line.
  constexpr void at_none() { site = {}; }
  constexpr Site where() const { return site; }

  /// Records the first mistake: "h.{}.attn: RULE; expected EXPECTED, got GOT [LABEL] (gpt2.h:31)".
  template <class Got, class Expected> constexpr void fail(const char *rule, const Got &got, const Expected &expected) {
    if (!message.empty())
      return;
    begin(rule);
    message.put("; expected ").put(expected).put(", got ").put(got);
    end(rule);
  }
  template <class Got> constexpr void fail(const char *rule, const Got &got) {
    if (!message.empty())
      return;
    begin(rule);
    message.put(rules::states_expected(rule) ? ", got " : "; got ").put(got);
    end(rule);
  }

protected:
  /// Returns a pattern that matches no parameter, with the parameter name that is nearest to it.
  constexpr Text with_nearest(const char *pattern) const {
    Text text, best;
    int least = -1;
    for (const Parameter &parameter : graph.parameters) {
      const Text name = full_name(parameter);
      if (const int distance = detail::distance(pattern, name.data()); least < 0 || distance < least) {
        least = distance;
        best = name;
      }
    }
    text.put(pattern);
    return least < 0 ? text : text.put("; nearest: ").put(best.data());
  }
  constexpr Text full_name(const Parameter &parameter) const {
    Text name;
    put_path(name, parameter.scope);
    name.put(name.empty() ? "" : ".").put(parameter.leaf);
    return name;
  }
  constexpr void put_path(Text &text, int of) const {
    if (of <= 0)
      return;
    const Scope &here = graph.scopes[of];
    put_path(text, here.parent);
    if (detail::is_number_part(here.name)) {
      if (detail::ends_number(here.name))
        text.put(".{}");
      return;
    }
    text.put(text.empty() ? "" : ".").put(here.name);
    if (here.copies > 0)
      text.put(".{}");
  }

  Graph graph;
  Site site;
  int scope = 0;

private:
  constexpr void begin(const char *rule) {
    put_path(message, scope);
    message.put(message.empty() ? "forward: " : ": ").put(rule, rules::label_of(rule));
  }
  constexpr void end(const char *rule) {
    message.put(rules::label_of(rule));
    if (site.line == 0)
      return;
    const char *base = site.file;
    for (const char *c = site.file; *c; ++c)
      if (*c == '/')
        base = c + 1;
    message.put(" (").put(base).put(":").put(site.line).put(")");
  }

  Text message;
};

} // namespace kiln
