// SPDX-License-Identifier: Apache-2.0
//
// The compilers print the message "in: layer: name 'ö, x' [layer_c9] (spec.cpp:7)" in these forms.
#include "tools/kiln/CompilerOutput.h"

#include <gtest/gtest.h>

namespace kiln::diagnose {
namespace {

constexpr const char *message = "in: layer: name 'ö, x' [layer_c9] (spec.cpp:7)";

std::string textOf(const char *output) {
  const std::vector<Error> errors = readErrors(output);
  return errors.empty() ? "no error" : findLanguageText(errors.front()).value_or("no text");
}

TEST(CompilerOutput, ReadsTheStringThatGccQuotes) {
  EXPECT_EQ(
      textOf(
          R"out(refusal.h: In instantiation of 'struct kiln::error::Refusal<kiln::Message<48>{"in: layer: name \'\37777777703\37777777666, x\' [layer_c9] (spec.cpp:7)"}>':
model.h:309:88:   required from 'constexpr const bool kiln::error::Check<M>::passed'
spec.cpp:9:1:   required from here
refusal.h:50:17: error: static assertion failed: kiln: the model breaks a rule; the next line quotes it
refusal.h:50:17: note: 'kiln::error::none<kiln::Message<48>{"in: layer: name \'\37777777703\37777777666, x\' [layer_c9] (spec.cpp:7)"}>' evaluates to false
)out"),
      message);
}

TEST(CompilerOutput, ReadsTheMessageOfGccInCxx26) {
  EXPECT_EQ(
      textOf(R"out(refusal.h: In instantiation of 'struct kiln::error::Refusal<kiln::Message<48>{"in: layer: name"}>':
model.h:309:88:   required from 'constexpr const bool kiln::error::Check<M>::passed'
spec.cpp:9:1:   required from here
refusal.h:42:17: error: static assertion failed: in: layer: name 'ö, x' [layer_c9] (spec.cpp:7)
refusal.h:42:17: note: 'kiln::error::none<kiln::Message<48>{"in: layer: name"}>' evaluates to false
)out"),
      message);
}

TEST(CompilerOutput, LeavesOtherAssertionsOfGcc) {
  EXPECT_EQ(textOf("spec.cpp:4:3: error: static assertion failed: too wide\n"), "no text");
}

TEST(CompilerOutput, ReadsTheLettersThatClangSpells) {
  EXPECT_EQ(
      textOf(
          R"out(refusal.h:31:17: error: static assertion failed due to requirement 'sizeof...(Letters) == 0': kiln: the model breaks a rule; the next note spells it
refusal.h:48:17: note: in instantiation of template class 'kiln::error::Spelled<'i', 'n', ':', ' ', 'l', 'a', 'y', 'e', 'r', ':', ' ', 'n', 'a', 'm', 'e', ' ', '\'', '\xC3', '\xB6', ',', ' ', 'x', '\'', ' ', '[', 'l', 'a', 'y', 'e', 'r', '_', 'c', '9', ']', ' ', '(', 's', 'p', 'e', 'c', '.', 'c', 'p', 'p', ':', '7', ')'>' requested here
)out"),
      message);
}

TEST(CompilerOutput, ReadsTheMessageOfClang) {
  EXPECT_EQ(textOf("refusal.h:42:17: error: static assertion failed due to requirement 'none<Message<48>{\"in: layer: "
                   "[...]\"}>': in: layer: name 'ö, x' [layer_c9] (spec.cpp:7)\n"),
            message);
}

TEST(CompilerOutput, ReadsWhyACompilerIsRefused) {
  constexpr const char *why = "standard: too old; expected -std=c++20 or later";
  EXPECT_EQ(textOf("compilers.h:9:2: error: \"kiln: standard: too old; expected -std=c++20 or later\"\n"), why);
  EXPECT_EQ(textOf("compilers.h:9:2: error: #error \"kiln: standard: too old; expected -std=c++20 or later\"\n"), why);
}

} // namespace
} // namespace kiln::diagnose
