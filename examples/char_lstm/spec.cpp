// SPDX-License-Identifier: Apache-2.0
#include "char_lstm.h"
#include <kiln/generator.h>

KILN_MODEL(char_lstm, char_lstm::Trained)
