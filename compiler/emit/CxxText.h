// SPDX-License-Identifier: Apache-2.0
//
// What the files that write NAME.hpp share.
#pragma once

#include "compiler/emit/Headers.h"

namespace kiln {

/// Shared by every generated header, under one guard.
extern const char *const cxxViewText;

/// A method as it is put together: all texts but `checks` begin with a separator.
struct MethodText {
  std::string parameters, forwarded, values, members, memberValues;
  std::string checks;
};

/// The method of Model for an entry that is not batched.
MethodText entryText(const ModelInterface &model, const EntryInterface &entry);

/// The class Session, which owns an arena.
std::string sessionClass(const ModelInterface &model);

} // namespace kiln
