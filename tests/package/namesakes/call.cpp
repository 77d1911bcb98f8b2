// SPDX-License-Identifier: Apache-2.0
// Calls a library of the model "net" through its C and C++ headers, and sums the results: with inputs and weights of 1
// the sum is 64 * WIDTH * WIDTH. A host exports it as `host_sum`, a plug-in as `plugin_sum`.
#include "net.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

static std::vector<std::byte> ones() {
  const std::string bytes = std::to_string(4 * WIDTH * WIDTH), width = std::to_string(WIDTH);
  std::string head =
      "{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[" + width + "," + width + "],\"data_offsets\":[0," + bytes + "]}}";
  head.resize((head.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = head.size();
  const std::vector<float> values(WIDTH * WIDTH, 1.0f);
  std::vector<std::byte> file(8 + length + 4 * values.size());
  std::memcpy(file.data(), &length, 8);
  std::memcpy(file.data() + 8, head.data(), length);
  std::memcpy(file.data() + 8 + length, values.data(), 4 * values.size());
  return file;
}

extern "C" double SUM() {
  kiln_error_t error{};
  const std::unique_ptr<net::Model> model = std::make_unique<net::Model>(); // a template of the model's type
  if (model->bind(ones(), &error) != KILN_OK)
    return -1;
  alignas(KILN_ARENA_ALIGNMENT) static char arena[std::max(NET_FORWARD_ARENA_BYTES(1), NET_EACH_ARENA_BYTES(1))];
  const kiln_call_t call{arena, sizeof arena, nullptr, &error};
  std::vector<float> x(64 * WIDTH, 1.0f), y(64 * WIDTH), again(64 * WIDTH);
  if (model->forward(call, x.data(), y.data()) != KILN_OK ||
      net_forward(model->get(), &call, x.data(), again.data()) != KILN_OK)
    return -2;
  // Vectors of a dynamic dimension instantiate templates of net.hpp.
  std::vector<float> rows(y.size());
  net::Session session;
  if (session.begin(*model, call) != KILN_OK || session.each(x, rows) != KILN_OK || rows != y)
    return -3;
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i)
    sum += y[i] == again[i] ? y[i] : -1e9;
  return sum;
}
