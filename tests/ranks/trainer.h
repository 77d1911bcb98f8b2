// SPDX-License-Identifier: Apache-2.0
//
// The functions of a library that tests of training use, as members of a struct that is their template argument.
#pragma once

#define KILN_TRAINER(name, NAME)                                                                                       \
  using Model = name##_t;                                                                                              \
  static constexpr auto create = name##_create_on;                                                                     \
  static constexpr auto destroy = name##_destroy;                                                                      \
  static constexpr auto bind = name##_bind_weights_from_memory;                                                        \
  [[maybe_unused]] static constexpr auto train = name##_train;                                                         \
  [[maybe_unused]] static constexpr auto evaluate = name##_evaluate;                                                   \
  static constexpr size_t trainingBytes = NAME##_TRAINING_BYTES
