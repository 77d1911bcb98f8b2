// SPDX-License-Identifier: Apache-2.0
//
// The protocol between kiln_fuzz and a program with a model for another CPU:
//
//   Bind   the image of a weight file                                 -> words
//   Call   entry, order, workers, poison, bytes of the arena, states, -> words, states, outputs
//          number of extents, extents, number of arguments,
//          and for each 0 and an input, or 1 and the bytes of an output
//
// The words are an error message, which is empty on success; otherwise nothing follows it.
#pragma once

#include "compiler/tuner/Messages.h"

namespace kiln::fuzz {

enum class Message : std::uint64_t { Bind, Call };

inline void put(Messages &messages, Message message) { messages.put(static_cast<std::uint64_t>(message)); }

} // namespace kiln::fuzz
