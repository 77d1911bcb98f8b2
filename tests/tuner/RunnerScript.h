// SPDX-License-Identifier: Apache-2.0
//
// A runner script as users write them for another machine (compiler/tuner/Runner.h), here for this machine.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace kiln::testing {

/// Writes the script in the folder and returns its path. `run`: the shell command that runs "$program".
inline std::string writeRunner(const std::filesystem::path &folder, const std::string &run = "exec \"$program\"") {
  const std::filesystem::path path = folder / "runner.sh";
  std::ofstream(path) << "#!/bin/sh\nset -e\ncommand=$1 program=$2\nshift 2\ncase $command in\n"
                      << "link) " KILN_LINKER " \"$@\" -pthread -lm -o \"$program\" ;;\nrun) " << run << " ;;\nesac\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

} // namespace kiln::testing
