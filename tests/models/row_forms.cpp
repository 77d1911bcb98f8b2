// SPDX-License-Identifier: Apache-2.0
#include "specs/row_forms.h"
#include <kiln/generator.h>

KILN_MODEL(row_forms, specs::RowForms)
