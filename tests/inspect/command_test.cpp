// SPDX-License-Identifier: Apache-2.0
// `kiln inspect` as a user runs it: for a spec and for an archive, as text and as a page.
#include "tests/package/command.h"

#include <vector>

using namespace kiln::testing;

namespace {

const std::string kiln = KILN_PROGRAM, pair = PAIR_GENERATOR, folder = PAIR_FOLDER, archive = folder + "/libpair.a";
const std::string rates = " --flops 1e11 --bandwidth 1e10";

TEST(InspectCommand, SaysTheSameOfASpecAndOfItsArchive) {
  const Result spec = run(pair + " inspect --target " KILN_V2 + rates);
  ASSERT_EQ(spec.status, 0) << spec.text;
  for (const std::string &path : {archive, folder + "/pair.manifest.json"}) {
    const Result there = run(kiln + " inspect " + path + rates);
    EXPECT_EQ(there.status, 0);
    EXPECT_EQ(there.text, spec.text);
  }
  for (const char *words : {"pair: 136 parameters", "encode(x f32[rows, 6]) -> code f32[rows, 10]\n", "rows: 1 to 20\n",
                            "100 GFLOP/s", "predicted", "linear_tanh", "up.weight f32[10, 6] as f32"})
    EXPECT_NE(spec.text.find(words), std::string::npos) << words << " is not in\n" << spec.text;
}

TEST(InspectCommand, MeasuresThisMachineUnlessRatesAreGiven) {
  const Result result = run(kiln + " inspect " + archive);
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.text.find(" copied, measured here on 1 thread\n"), std::string::npos) << result.text;
}

// The page of an archive has no graph and no loop nests; that of a spec has both.
TEST(InspectCommand, WritesAPage) {
  Folder here;
  const std::string page = (here.path / "pair.html").string();
  const std::vector<std::string> commands{pair + " inspect --target " KILN_V2 " --html " + page + rates,
                                          kiln + " inspect --html " + page + " " + archive + rates,
                                          kiln + " inspect " + archive + " --html " + page + rates};
  for (const std::string &command : commands) {
    const Result result = run(command);
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.text, page + "\n");
    const std::string text = readFile(page);
    EXPECT_EQ(text.rfind("<!doctype html>", 0), 0u);
    EXPECT_EQ(text.find("\"graphs\":[]") == std::string::npos, command == commands[0]) << command;
    EXPECT_EQ(text.find("produce ") != std::string::npos, command == commands[0]) << command;
  }
}

struct Refused {
  std::string arguments, message;
};

TEST(InspectCommand, SaysWhatIsWrong) {
  const Refused cases[] = {
      {"/nonexistent/libx.a",
       "error: cannot read \"/nonexistent/x.manifest.json\", which \"compile\" writes next to the "
       "archive: "},
      {archive + " --target cuda" + rates, "has no target \"cuda\"; it has: " KILN_V2},
      {archive + " --times /nonexistent.json", "error: cannot read \"/nonexistent.json\": "},
      {archive + " --flops 1e11", "--flops requires --bandwidth"},
      {archive + " --flops 0 --bandwidth 1", "--flops"},
      {archive + " --html /nonexistent/page.html" + rates, "error: cannot write \"/nonexistent/page.html\": "},
      {archive + " --memory", "error: option \"--memory\": unknown; expected one that --help shows"},
  };
  for (const Refused &refused : cases) {
    const Result result = run(kiln + " inspect " + refused.arguments);
    EXPECT_NE(result.status, 0) << refused.arguments;
    EXPECT_NE(result.text.find(refused.message), std::string::npos) << refused.arguments << " says\n" << result.text;
  }
}

} // namespace
