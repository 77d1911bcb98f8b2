// SPDX-License-Identifier: Apache-2.0
//
// The subcommand `scale`, which predicts the time and memory of entries on many machines, for a spec or an archive. A
// build without KILN_PARALLEL has ScaleNone.cpp in place of Scale.cpp.
#pragma once

#include "compiler/driver/Compile.h"

#include <CLI/CLI.hpp>
#include <memory>

namespace kiln {

struct ScaleOptions;

class ScaleCommand {
public:
  /// Adds `scale` to a generator's command line. It fills in `compiled`, which other subcommands share.
  ScaleCommand(CLI::App &app, CompileOptions &compiled);
  ~ScaleCommand();

  bool isChosen() const { return scale->parsed(); }
  /// Compiles the kernels, prints the prediction, and returns the exit status.
  int run(const Graph &graph);

private:
  CLI::App *scale;
  std::unique_ptr<ScaleOptions> options;
};

} // namespace kiln
