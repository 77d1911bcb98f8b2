// SPDX-License-Identifier: Apache-2.0
#include "models.h"

#include "models/gpt2/gpt2.h"
#include "models/vit/vit.h"
#include "specs/cnn.h"
#include "swin/swin.h"

namespace detr_spec {
#include "detr/spec.cpp"
}
namespace gpt2_tiny_spec {
#include "../models/gpt2_tiny.cpp"
}
namespace mvit_spec {
#include "mvit/spec.cpp"
}
namespace small_cnn_spec {
#include "../models/small_cnn.cpp"
}
namespace vit_tiny_spec {
#include "../models/vit_tiny.cpp"
}
namespace swin_spec {
#include "swin/swin_two_stages.cpp"
}
