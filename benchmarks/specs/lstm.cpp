// SPDX-License-Identifier: Apache-2.0
#include "tests/models/specs/lstm.h"
#include <kiln/generator.h>

KILN_MODEL(lstm, specs::Lstm256)
