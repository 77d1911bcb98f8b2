// SPDX-License-Identifier: Apache-2.0
// `check` compares a checkpoint with a model: all differences, one per line, with the nearest names and a rename that
// fixes a prefix; `pack` accepts the suggested renames.
#include "command.h"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <vector>

namespace kiln::testing {
namespace {

const std::string pairProgram = PAIR_GENERATOR, kilnProgram = KILN_PROGRAM, sources = PACKAGE_FOLDER;

struct Entry {
  std::string name, shape;
  std::size_t elements;
};

const std::vector<Entry> pairEntries = {
    {"down.bias", "6", 6}, {"down.weight", "6,10", 60}, {"up.bias", "10", 10}, {"up.weight", "10,6", 60}};

/// Writes a safetensors file of zeros.
void write(const fs::path &path, const std::vector<Entry> &entries, const std::string &prefix = "") {
  std::string header = "{";
  std::size_t at = 0;
  for (const Entry &entry : entries) {
    header += (at ? ",\"" : "\"") + prefix + entry.name + "\":{\"dtype\":\"F32\",\"shape\":[" + entry.shape +
              "],\"data_offsets\":[" + std::to_string(at) + ",";
    at += entry.elements * 4;
    header += std::to_string(at) + "]}";
  }
  header += "}";
  const std::uint64_t length = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char *>(&length), sizeof length);
  file << header << std::string(at, '\0');
}

std::vector<std::string> sortedLines(const std::string &text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  std::sort(lines.begin(), lines.end() - (lines.empty() ? 0 : 1)); // the last line is the summary
  return lines;
}

TEST(Check, AFileThatFits) {
  Folder folder;
  const std::string path = folder.path / "w.safetensors";
  write(path, pairEntries);
  for (const std::string &command :
       {pairProgram + " check " + path, kilnProgram + " check " + sources + "/pair.cpp " + path,
        pairProgram + " check " + path + " --rename 'up.*=up.*'"}) {
    const Result result = run(command);
    EXPECT_EQ(result.status, 0) << result.text;
    EXPECT_EQ(result.text, path + ": fits model \"pair\", 4 tensors\n");
  }
}

TEST(Check, EachDifferenceIsALine) {
  Folder folder;
  const std::string path = folder.path / "w.safetensors";
  std::vector<Entry> entries = pairEntries;
  entries[0].name = "down.beta";
  entries[1] = {"down.weight", "10,6", 60};
  entries.push_back({"extra", "3", 3});
  entries.push_back({"norm.num_batches_tracked", "1", 1}); // no model needs it
  write(path, entries);
  const Result result = run(pairProgram + " check " + path);
  EXPECT_EQ(result.status, 1);
  // Differences of weights are in the order of the weights, which the compiler chooses.
  EXPECT_EQ(sortedLines(result.text), (std::vector<std::string>{
                                          "missing     down.bias    expected F32 [6]; nearest: down.beta F32 [6]",
                                          "shape       down.weight  expected F32 [6, 10], got F32 [10, 6]",
                                          "unexpected  down.beta    got F32 [6]",
                                          "unexpected  extra        got F32 [3]",
                                          path + ": does not fit model \"pair\", 4 differences",
                                      }));
  const Result renamed = run(pairProgram + " check " + path + " --rename down.beta=down.bias --rename extra=");
  EXPECT_EQ(renamed.status, 1);
  EXPECT_EQ(renamed.text, "shape       down.weight  expected F32 [6, 10], got F32 [10, 6]\n" + path +
                              ": does not fit model \"pair\", 1 difference\n");
}

TEST(Check, APrefixIsARename) {
  Folder folder;
  const std::string path = folder.path / "w.safetensors", renames = folder.path / "names";
  write(path, pairEntries, "model.");
  const Result result = run(pairProgram + " check " + path);
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.text.find("try --rename 'model.*=*'\n"), std::string::npos) << result.text;
  std::ofstream(renames) << "model.* *\n";
  for (const std::string &option : {std::string(" --rename 'model.*=*'"), " --renames " + renames}) {
    EXPECT_EQ(run(pairProgram + " check " + path + option).status, 0) << option;
    const Result packed =
        run(pairProgram + " pack " + path + option + " --target " KILN_V2 " -o " + folder.path.string());
    EXPECT_EQ(packed.status, 0) << packed.text;
  }
  const Result unmatched = run(pairProgram + " check " + path + " --rename 'modell.*=*'");
  EXPECT_EQ(unmatched.status, 1);
  EXPECT_NE(unmatched.text.find("rename 0: fits no tensor; expected a name of the weight file, got \"modell.*\"; "
                                "nearest: model.down.bias, model.down.weight, model.up.bias"),
            std::string::npos)
      << unmatched.text;
  // In a file of renames a question mark allows that a line matches nothing, in files of all kinds.
  std::ofstream(renames) << "model.* *\n?modell.* *\n?left.*\n?zeros =0\n";
  for (const std::string &kind : {"", " --quantized awq"})
    EXPECT_EQ(run(pairProgram + " check " + path + " --renames " + renames + kind).status, 0) << kind;
  std::ofstream(renames) << "model.* *\nmodell.* *\n";
  for (const std::string &kind : {"", " --quantized awq"}) {
    const Result refused = run(pairProgram + " check " + path + " --renames " + renames + kind);
    EXPECT_EQ(refused.status, 1);
    EXPECT_NE(refused.text.find("rename 1: fits no tensor"), std::string::npos) << kind << "\n" << refused.text;
  }
}

TEST(Check, FilesOfOtherKinds) {
  Folder folder;
  const std::string path = folder.path / "w.safetensors";
  std::ofstream(path) << "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
  const Result result = run(pairProgram + " check " + path);
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.text, "error: file \"w.safetensors\": weight file: of another kind; expected a safetensors file, "
                         "got a pointer of git-lfs, for "
                         "which `git lfs pull` gets the file\n");
}

} // namespace
} // namespace kiln::testing
