// SPDX-License-Identifier: Apache-2.0
//
// A tuning file to which a run adds: read at the beginning, and replaced after each measurement, so that a run that is
// killed loses none.
#pragma once

#include "compiler/schedule/TuningFile.h"

namespace kiln {

class SavedDatabase {
public:
  /// Opens the database with the contents of the file; empty if there is none yet.
  static llvm::Expected<SavedDatabase> open(const std::string &path);

  TuningDatabase &database() { return records; }
  const std::string &path() const { return file; }

  /// Replaces the file. Returns false on failure, after which further measurements are useless.
  bool save();
  /// Returns the reason why saving failed; empty if it did not.
  const std::string &problem() const { return words; }

private:
  explicit SavedDatabase(const std::string &path) : file(path) {}

  std::string file, words;
  TuningDatabase records;
};

} // namespace kiln
