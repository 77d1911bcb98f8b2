// SPDX-License-Identifier: Apache-2.0
//
// Shared by the fuzz targets of weight files: small models, each of which stores its only weight in another way, and
// files in memory. The link wraps the run time's functions that map files: an image is a block of exactly its bytes, so
// that the address sanitizer detects every access outside of it.
#pragma once

#include "core/instance.h"
#include "published/published.h"
#include "readers/files.h"
#include "require.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace kiln_fuzz {

/// The files that kiln_file_map finds, by the last component of a path.
inline std::map<std::string, std::string, std::less<>> files;

/// One of the models, created for a run, with the message of its last error.
class Model {
public:
  explicit Model(uint8_t which);
  ~Model();
  Model(const Model &) = delete;
  Model &operator=(const Model &) = delete;
  /// Checks the result of a bind: a status with a message; all weights can be read, or the model has none.
  void check(kiln_status_t status);

  kiln_model_t *handle = nullptr;
  kiln_error_t error = {};
};

/// Reads each number of each tensor, all of which must be within the image.
void readAll(const kiln_tensors_t &table, std::string_view image);

/// Separates the parts of an input; takePart returns the first part and removes it.
constexpr std::string_view separator = "\n----\n";
std::string_view takePart(std::string_view &input);

} // namespace kiln_fuzz
