# SPDX-License-Identifier: Apache-2.0
#
# Text tests: a tool's output for an input, checked by FileCheck. ctest runs them (cmake/KilnLit.cmake) and passes the
# paths of the tools and of the output folder.
import os

import lit.formats

config.name = "kiln"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = lit_config.params["output"]
config.environment["PATH"] = lit_config.params["path"] + ":" + os.environ["PATH"]
config.substitutions.append(("%{source}", lit_config.params["source"]))
