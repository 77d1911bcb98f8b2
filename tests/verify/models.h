// SPDX-License-Identifier: Apache-2.0
//
// The specs of other tests and of the examples in one program: the macro that makes a generator's `main` elsewhere adds
// the model to a list here. A spec is included in a separate namespace, after all headers that it needs.
#pragma once

#include <kiln/generator.h>
#include <kiln/windows.h>

#include <ostream>
#include <string>
#include <vector>

namespace kiln::testing {

struct TracedModel {
  std::string name;
  Graph (*trace)();
};

/// Without it the name of a test has the bytes of its parameter, among them addresses.
inline void PrintTo(const TracedModel &model, std::ostream *out) { *out << model.name; }

std::vector<TracedModel> &models();
std::vector<TracedModel> modelsByName();
bool addModel(const char *name, Graph (*trace)());

} // namespace kiln::testing

#undef KILN_MODEL
#define KILN_MODEL(name, ...)                                                                                          \
  [[maybe_unused]] static const bool name##_is_there =                                                                 \
      ::kiln::testing::addModel(#name, [] { return ::kiln::trace<__VA_ARGS__>(); });
