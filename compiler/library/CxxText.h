// SPDX-License-Identifier: Apache-2.0
//
// Declarations that the files that write NAME.hpp share.
#pragma once

#include "compiler/library/Headers.h"

namespace kiln {

/// The text that every generated header contains, under one guard.
extern const char *const cxxViewText;

/// A method while it is assembled. All texts but `checks` begin with a separator.
struct MethodText {
  std::string parameters, forwarded, values, members, memberValues;
  std::string checks;
};

/// Returns the method of Model for an entry that is not batched.
MethodText entryText(const ModelInterface &model, const EntryInterface &entry);

/// Returns the class Session, which owns an arena.
std::string sessionClass(const ModelInterface &model);

} // namespace kiln
