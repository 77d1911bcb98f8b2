// SPDX-License-Identifier: Apache-2.0
//
// kiln-diagnose [--verbose] SPEC -- COMPILER WORD...: runs the compiler on a spec, and prints the user's first mistake
// in one line before all other output. kiln_add_library uses it as the launcher of the C++ compiler for generators.
#include "compiler/library/Version.h"
#include "tools/kiln/Diagnose.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

/// Returns the file that `-o` names.
std::string objectOf(const std::vector<std::string> &words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == "-o")
      return words[i + 1];
  return "";
}

/// Whether an object contains the call that KILN_MODEL makes.
bool callsGenerator(const std::string &object) {
  std::ifstream file(object, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return bytes.find("_ZN4kiln12runGenerator") != std::string::npos;
}

constexpr const char *usage = "usage: kiln-diagnose [--verbose] SPEC -- COMPILER WORD...\n";

} // namespace

int main(int argc, char **argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 1 && (words.front() == "-h" || words.front() == "--help")) {
    std::printf(
        "%s\nRuns the compiler on a spec, and prints the first mistake in one line before its output, which it\n"
        "prints with --verbose, or with VERBOSE=1 in the environment. kiln_add_library calls it.\n\n"
        "  -h,--help  print this help\n  --version  print the version\n",
        usage);
    return 0;
  }
  if (words.size() == 1 && words.front() == "--version") {
    std::printf("%s\n", kiln::versionReport());
    return 0;
  }
  const char *asked = std::getenv("VERBOSE"); // `cmake --build . --verbose` sets it for make
  bool isVerbose = asked && *asked;
  if (!words.empty() && words.front() == "--verbose") {
    isVerbose = true;
    words.erase(words.begin());
  }
  if (words.size() < 3 || words[1] != "--") {
    std::fprintf(stderr, "%s", usage);
    return 2;
  }
  const std::string spec = words.front();
  words.erase(words.begin(), words.begin() + 2);
  const std::string compiler = words.front();
  const std::string object = objectOf(words);
  int status = kiln::diagnose::compile(std::move(words), spec, isVerbose,
                                       "VERBOSE=1 in the environment of the build shows them");
  if (status == 0 && !object.empty() && !callsGenerator(object))
    if (std::optional<std::string> mistake = kiln::diagnose::findMissingModel(kiln::diagnose::readSources(spec, {}))) {
      std::fprintf(stderr, "%s\n", mistake->c_str());
      std::remove(object.c_str());
      status = 1;
    }
  if (status == 127)
    std::fprintf(stderr, "error: the C++ compiler \"%s\" cannot be started\n", compiler.c_str());
  return status;
}
