// SPDX-License-Identifier: Apache-2.0
#include "swin.h"
#include <kiln/generator.h>

KILN_MODEL(swin_two_stages, swin::Swin<swin::two_stages>)
