// SPDX-License-Identifier: Apache-2.0
#include "manifest_scale.h"

void kiln_fuzz::predict(const kiln::Inspection &) {}
