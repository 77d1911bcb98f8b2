// SPDX-License-Identifier: Apache-2.0
// Without a convolution: patches, a ViT encoder, a Transformer decoder.
#include "captions.h"
#include <kiln/generator.h>

using FromPixels = captions::Transformer<captions::Patched, 3, 4>;
KILN_MODEL(captions_from_pixels, FromPixels)
