// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/SavedDatabase.h"

#include "llvm/Support/FileSystem.h"

namespace kiln {

llvm::Expected<SavedDatabase> SavedDatabase::open(const std::string &path) {
  SavedDatabase saved(path);
  if (!llvm::sys::fs::exists(path))
    return saved;
  llvm::Expected<TuningDatabase> loaded = TuningDatabase::load(path);
  if (!loaded)
    return loaded.takeError();
  saved.records = std::move(*loaded);
  return saved;
}

bool SavedDatabase::save() {
  if (llvm::Error error = records.save(file))
    words = llvm::toString(std::move(error));
  return words.empty();
}

} // namespace kiln
