// SPDX-License-Identifier: Apache-2.0
//
// A hand-written library, each entry of which makes a mistake that the driver must find (check_driver.sh).
#include "library.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace kiln::realtime {
namespace {

/// Returns the description of a tensor of four numbers.
constexpr kiln_argument_t tensor(const char *name, bool isOutput) {
  kiln_argument_t made{};
  made.name = name;
  made.rank = 1;
  made.extents[0] = {4, 0, 0, {-1, -1, -1, -1}};
  made.is_output = isOutput;
  return made;
}
constexpr kiln_argument_t arguments[] = {tensor("input", false), tensor("output", true)};
constexpr kiln_entry_t entry(const char *name) {
  kiln_entry_t made{};
  made.name = name;
  made.arguments = arguments;
  made.argument_count = 2;
  return made;
}
constexpr kiln_entry_t entries[] = {entry("obeys"), entry("forgets"), entry("spoils"), entry("oversteps"),
                                    entry("allocates")};
constexpr kiln_body_t bodies[std::size(entries)] = {};
constexpr kiln_variant_t variant = [] {
  kiln_variant_t made{};
  made.target = "none";
  made.bodies = bodies;
  return made;
}();
constexpr kiln_descriptor_t descriptor = [] {
  kiln_descriptor_t made{};
  made.name = "faulty";
  made.entry_count = std::size(entries);
  made.entries = entries;
  made.variant_count = 1;
  made.variants = &variant;
  return made;
}();

float *input(const Values &values) { return static_cast<float *>(values.tensors[0]); }
float *output(const Values &values) { return static_cast<float *>(values.tensors[1]); }

kiln_status_t obey(const void *, const kiln_call_t *, const Values &values) {
  std::copy_n(input(values), 4, output(values));
  return KILN_OK;
}
kiln_status_t forget(const void *, const kiln_call_t *, const Values &values) {
  std::copy_n(input(values), 2, output(values));
  output(values)[3] = input(values)[3];
  return KILN_OK;
}
kiln_status_t spoil(const void *model, const kiln_call_t *call, const Values &values) {
  input(values)[1] = 2;
  return obey(model, call, values);
}
kiln_status_t overstep(const void *model, const kiln_call_t *call, const Values &values) {
  output(values)[4] = 0;
  return obey(model, call, values);
}
kiln_status_t allocate(const void *model, const kiln_call_t *call, const Values &values) {
  void *volatile memory = std::malloc(1);
  std::free(memory);
  return obey(model, call, values);
}

} // namespace

const Library library = {descriptor,
                         [](const kiln_options_t *, void **, kiln_error_t *) { return KILN_OK; },
                         [](void *, const void *, size_t, kiln_error_t *) { return KILN_OK; },
                         [](const void *) { return variant.target; },
                         [](void *) {},
                         {obey, forget, spoil, overstep, allocate}};

} // namespace kiln::realtime
