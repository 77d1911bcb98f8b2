# SPDX-License-Identifier: Apache-2.0
#
# cmake -D MANIFEST=NAME.manifest.json -D OUTPUT=FILE.cpp -P write_library.cmake: writes the library's functions and all
# of its entries as a kiln::realtime::Library.
file(READ "${MANIFEST}" manifest)
string(JSON name GET "${manifest}" name)
string(JSON count LENGTH "${manifest}" entries)
math(EXPR last "${count} - 1")
set(entries "")
foreach(i RANGE ${last})
  string(JSON entry GET "${manifest}" entries ${i} name)
  string(APPEND entries "\n     EntryOf<${name}_${entry}>::call,")
endforeach()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
// Generated from @name@.manifest.json.
#include "library.h"

#include "@name@.h"

extern "C" const kiln_descriptor_t @name@_descriptor;

namespace kiln::realtime {

const Library library = {
    @name@_descriptor,
    [](const kiln_options_t *options, void **model, kiln_error_t *error) {
      @name@_t *made = nullptr;
      const kiln_status_t status = @name@_create_on(options, &made, error);
      *model = made;
      return status;
    },
    [](void *model, const void *image, size_t bytes, kiln_error_t *error) {
      return @name@_bind_weights_from_memory(static_cast<@name@_t *>(model), image, bytes, error);
    },
    [](const void *model) { return @name@_target(static_cast<const @name@_t *>(model)); },
    [](void *model) { @name@_destroy(static_cast<@name@_t *>(model)); },
    {@entries@}};

} // namespace kiln::realtime
]])
