// SPDX-License-Identifier: Apache-2.0
#include "recurrent.h"
#include <kiln/generator.h>

KILN_MODEL(names_recurrent, names::Recurrent)
