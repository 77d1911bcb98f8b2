// SPDX-License-Identifier: Apache-2.0
//
// Many to many: predicts the character after each character of "hell". One to many: starts with "h", uses each
// prediction as the next input, and carries the state from call to call.
#include "hello_rnn.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

const std::string vocabulary = "helo";

class Speller {
public:
  Speller() : arena(std::aligned_alloc(KILN_ARENA_ALIGNMENT, round(HELLO_RNN_FORWARD_ARENA_BYTES(1)))) {
    check(model.bind(HELLO_RNN_DATA "/hello_rnn.safetensors", &error));
  }
  ~Speller() { std::free(arena); }
  Speller(const Speller &) = delete;
  Speller &operator=(const Speller &) = delete;

  /// Returns the most likely next character for each character of the text; continues from the last call.
  std::string next(const std::string &text) {
    std::vector<std::int32_t> characters;
    for (char c : text)
      characters.push_back(static_cast<std::int32_t>(vocabulary.find(c)));
    std::vector<float> scores(text.size() * vocabulary.size()), after(state.size());
    const kiln_call_t call{arena, round(HELLO_RNN_FORWARD_ARENA_BYTES(1)), nullptr, &error};
    check(hello_rnn_forward(model.get(), &call, static_cast<std::int64_t>(text.size()), characters.data(), state.data(),
                            scores.data(), after.data()));
    state = after;
    std::string result;
    for (auto row = scores.begin(); row != scores.end(); row += static_cast<std::ptrdiff_t>(vocabulary.size()))
      result += vocabulary[static_cast<std::size_t>(
          std::max_element(row, row + static_cast<std::ptrdiff_t>(vocabulary.size())) - row)];
    return result;
  }

private:
  static std::size_t round(std::size_t bytes) {
    return (bytes + KILN_ARENA_ALIGNMENT - 1) / KILN_ARENA_ALIGNMENT * KILN_ARENA_ALIGNMENT;
  }
  void check(kiln_status_t status) {
    if (status == KILN_OK)
      return;
    std::fprintf(stderr, "error: %s\n", error.message);
    std::exit(1);
  }

  kiln_error_t error{};
  hello_rnn::Model model;
  void *arena;
  std::vector<float> state = {0, 0, 0};
};

} // namespace

int main() {
  Speller reader, writer;
  const std::string read = reader.next("hell");
  std::printf("hell -> %s\n", read.c_str());
  std::string written = "h";
  while (written.size() < 5)
    written += writer.next(written.substr(written.size() - 1));
  std::printf("h -> %s\n", written.c_str());
  return read == "ello" && written == "hello" ? 0 : 1;
}
