// SPDX-License-Identifier: Apache-2.0
//
// Links relocatable objects into this process (with LLVM's JITLink), without starting a thread. The linked code may
// crash or hang, so it must only be used in child processes.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <utility>

namespace kiln {

class LinkedObjects {
public:
  /// Links the objects against `symbols`, names with addresses, and the exports of this process (libc, libm).
  static llvm::Expected<LinkedObjects> link(llvm::ArrayRef<llvm::StringRef> objects,
                                            llvm::ArrayRef<std::pair<llvm::StringRef, void *>> symbols = {});
  LinkedObjects(LinkedObjects &&);
  ~LinkedObjects();

  /// Returns the address of a global symbol, including hidden ones. Fails if it, or a symbol on which it depends, is
  /// undefined.
  llvm::Expected<void *> lookup(llvm::StringRef symbol);

private:
  struct Session;
  explicit LinkedObjects(std::unique_ptr<Session> session);
  std::unique_ptr<Session> session;
};

} // namespace kiln
