// SPDX-License-Identifier: Apache-2.0
//
// A folder of compiled kernels that persists between builds. Entries are found by a hash of everything that they depend
// on, so an entry is never wrong, only unused. The least recently used entries are removed when the folder is too
// large. Several builds may use one folder at the same time. An error in the cache does not fail a build.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace kiln {

class ObjectCache {
public:
  static constexpr uint64_t defaultBytes = 512 << 20;

  /// Uses `folder`, which is created when the first entry is stored. A cache without a folder is always empty.
  explicit ObjectCache(std::string folder, uint64_t maxBytes = defaultBytes);

  /// Returns $KILN_CACHE_DIR, else $XDG_CACHE_HOME/kiln, else $HOME/.cache/kiln; empty if none is set.
  static std::string defaultFolder();

  /// Returns the bytes stored under `key`, which may be any text. A damaged entry counts as missing.
  std::optional<std::string> find(llvm::StringRef key) const;

  /// Stores an entry for later builds; does nothing if the folder cannot be written.
  void store(llvm::StringRef key, llvm::StringRef bytes);

  /// Removes the least recently used entries until the rest fits, if any entry was stored.
  void trim();

private:
  std::string pathOf(llvm::StringRef key) const;

  std::string folder;
  uint64_t maxBytes;
  bool isChanged = false;
};

/// Returns a text that identifies the code of this process except for its main program: the compiler's library, Halide,
/// LLVM. A different compiler has a different text.
const std::string &compilerFingerprint();

} // namespace kiln
