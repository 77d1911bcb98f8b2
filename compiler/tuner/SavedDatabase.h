// SPDX-License-Identifier: Apache-2.0
//
// A tuning file that a run adds to: read at the beginning, replaced after each measurement, so that a run that is
// killed loses none.
#pragma once

#include "compiler/schedule/TuningFile.h"

namespace kiln {

class SavedDatabase {
public:
  /// With what the file holds; empty if there is none yet.
  static llvm::Expected<SavedDatabase> open(const std::string &path);

  TuningDatabase &database() { return records; }
  const std::string &path() const { return file; }

  /// Replaces the file. False if that fails; then the run has no use for further measurements.
  bool save();
  /// Why saving failed; empty if it did not.
  const std::string &problem() const { return words; }

private:
  explicit SavedDatabase(const std::string &path) : file(path) {}

  std::string file, words;
  TuningDatabase records;
};

} // namespace kiln
