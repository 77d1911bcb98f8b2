// SPDX-License-Identifier: Apache-2.0
//
// A folder of compiled kernels that outlives a build. Entries are found by a hash of everything that they depend on, so
// they are never wrong, only no longer asked for; those that were used least recently go when the folder is too large.
// Several builds may use one folder at the same time. Nothing that goes wrong with it fails a build.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace kiln {

class ObjectCache {
public:
  static constexpr uint64_t defaultBytes = 512 << 20;

  /// Entries in `folder`, which is made when the first is stored; a cache without a folder is always empty.
  explicit ObjectCache(std::string folder, uint64_t maxBytes = defaultBytes);

  /// $KILN_CACHE_DIR, else $XDG_CACHE_HOME/kiln, else $HOME/.cache/kiln; empty if none is set.
  static std::string defaultFolder();

  /// The bytes stored under `key`, which may be any text. An entry that is damaged is as one that is not there.
  std::optional<std::string> find(llvm::StringRef key) const;

  /// Stores an entry for all builds that come; nothing happens if the folder cannot be written.
  void store(llvm::StringRef key, llvm::StringRef bytes);

  /// Removes the entries that were used least recently until the rest fits, if any was stored.
  void trim();

private:
  std::string pathOf(llvm::StringRef key) const;

  std::string folder;
  uint64_t maxBytes;
  bool isChanged = false;
};

/// Identifies the code of this process but for its main program: the compiler's library, Halide, LLVM. Another compiler
/// has another text.
const std::string &compilerFingerprint();

} // namespace kiln
