// SPDX-License-Identifier: Apache-2.0
//
// For builds without KILN_PARALLEL: `scale` says that it is not there, whatever its options.
#include "tools/kiln/Scale.h"

#include "tools/kiln/Options.h"

#include <fmt/format.h>

namespace kiln {

struct ScaleOptions {};

ScaleCommand::ScaleCommand(CLI::App &app, CompileOptions &compiled)
    : scale(app.add_subcommand("scale", "not in this build, which has no KILN_PARALLEL")) {
  addModelOptions(*scale, compiled);
  scale->allow_extras(); // of the machine
}

ScaleCommand::~ScaleCommand() = default;

static int refuse() {
  fmt::print(stderr, "error: scale: built without KILN_PARALLEL; expected a build with it\n");
  return 1;
}

int ScaleCommand::run(const Graph &) { return refuse(); }

} // namespace kiln

extern "C" int kiln_scale_archive(int, char **) { return kiln::refuse(); }
