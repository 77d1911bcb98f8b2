// SPDX-License-Identifier: Apache-2.0
//
// Relocatable objects linked into this process (LLVM's JITLink), without a thread of its own. What is linked may crash
// or never return, so it is for child processes.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <utility>

namespace kiln {

class LinkedObjects {
public:
  /// Links the objects beside `symbols`, names and addresses, and what this process exports (libc, libm).
  static llvm::Expected<LinkedObjects> link(llvm::ArrayRef<llvm::StringRef> objects,
                                            llvm::ArrayRef<std::pair<llvm::StringRef, void *>> symbols = {});
  LinkedObjects(LinkedObjects &&);
  ~LinkedObjects();

  /// The address of a global symbol, a hidden one as well. Fails if it, or a symbol that it needs, is nowhere.
  llvm::Expected<void *> lookup(llvm::StringRef symbol);

private:
  struct Session;
  explicit LinkedObjects(std::unique_ptr<Session> session);
  std::unique_ptr<Session> session;
};

} // namespace kiln
