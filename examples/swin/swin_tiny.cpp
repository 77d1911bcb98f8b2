// SPDX-License-Identifier: Apache-2.0
#include "swin.h"
#include <kiln/generator.h>

KILN_MODEL(swin_tiny, swin::Swin<swin::tiny>)
