// SPDX-License-Identifier: Apache-2.0
//
// The metadata of a GGUF file as a JSON object with its names: "llama.block_count": 22.
#pragma once

#include "config.h"
#include "tokenizer.h"

namespace support {

/// Whether a path is that of a GGUF file, by its suffix.
bool is_gguf(const std::string &path);
/// Returns the metadata of the file; errors name it. f32 numbers are the shortest decimals that round to them.
Config gguf_metadata(const std::string &path);
/// Whether the metadata have a supported tokenizer; tokenizer_of_gguf returns it.
bool has_tokenizer(const Config &metadata);
Tokenizer tokenizer_of_gguf(const Config &metadata);

} // namespace support
