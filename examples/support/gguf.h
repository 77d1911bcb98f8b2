// SPDX-License-Identifier: Apache-2.0
//
// What a GGUF file says of itself beside its tensors, as a JSON object of its names: "llama.block_count": 22.
#pragma once

#include "config.h"
#include "tokenizer.h"

namespace support {

/// Whether a path is that of a GGUF file, by its ending.
bool is_gguf(const std::string &path);
/// The metadata of the file, or an error that names it. Numbers of f32 are the shortest that round to them.
Config gguf_metadata(const std::string &path);
/// Whether the metadata have a tokenizer that is read, and that.
bool has_tokenizer(const Config &metadata);
Tokenizer tokenizer_of_gguf(const Config &metadata);

} // namespace support
