// SPDX-License-Identifier: Apache-2.0
//
// A program for another CPU with a model called "fuzzed", which executes the requests that it receives (Messages.h).
#include "../TaskOrder.h"
#include "Messages.h"

// The functions of a library have the model's name as a prefix.
#define kiln_create_on fuzzed_create_on
#define kiln_bind_weights_from_memory fuzzed_bind_weights_from_memory
#define kiln_run fuzzed_run
#define kiln_pool_create fuzzed_pool_create
#define kiln_pool_executor fuzzed_pool_executor
#define kiln_pool_destroy fuzzed_pool_destroy
#include "runtime/src/core/model.h"

#include <algorithm>
#include <string>

#if defined(_WIN32)
#include <fcntl.h>
#include <io.h>
#endif

using namespace kiln::fuzz;

namespace {

using Bytes = std::vector<char>;

/// A buffer that ends at a multiple of an arena's alignment, with poisoned margins on both sides.
class Buffer {
public:
  Buffer(std::size_t bytes, char poison) : all(bytes + 4 * alignment, poison), bytes(bytes), poison(poison) {
    char *end = all.data() + all.size() - alignment;
    begin = end - reinterpret_cast<std::uintptr_t>(end) % alignment - bytes;
  }

  char *data() const { return begin; }
  Bytes contents() const { return Bytes(begin, begin + bytes); }
  bool isIntact() const {
    const auto isPoison = [this](char byte) { return byte == poison; };
    return std::all_of(all.data(), static_cast<const char *>(begin), isPoison) &&
           std::all_of(static_cast<const char *>(begin) + bytes, all.data() + all.size(), isPoison);
  }

private:
  static constexpr std::size_t alignment = KILN_ARENA_ALIGNMENT;
  Bytes all;
  std::size_t bytes;
  char poison;
  char *begin;
};

class Program {
public:
  int run() {
    for (;;) {
      const auto message = static_cast<Message>(messages.number());
      if (!messages.isAlive())
        return 0;
      switch (message) {
      case Message::Bind:
        bind();
        break;
      case Message::Call:
        call();
        break;
      }
      messages.send();
    }
  }

private:
  void say(const std::string &words) { messages.put(Bytes(words.begin(), words.end())); }

  void bind() {
    const Bytes image = messages.bytes();
    kiln_error_t error{};
    const kiln_options_t options{};
    if (kiln_create_on(&options, &model, &error) == KILN_OK)
      kiln_bind_weights_from_memory(model, image.data(), image.size(), &error);
    say(error.message);
  }

  void call() {
    const auto entry = static_cast<uint32_t>(messages.number());
    const auto order = static_cast<TaskOrder>(messages.number());
    const auto workers = static_cast<uint32_t>(messages.number());
    const auto poison = static_cast<char>(messages.number());
    const auto arenaBytes = static_cast<std::size_t>(messages.number());
    const Bytes states = messages.bytes();
    std::vector<int64_t> extents(static_cast<std::size_t>(messages.number()));
    for (int64_t &extent : extents)
      extent = static_cast<int64_t>(messages.number());

    std::vector<Buffer> buffers;
    std::vector<Bytes> inputs;
    std::vector<void *> arguments;
    for (std::uint64_t count = messages.number(); count > 0; --count) {
      if (messages.number() == 0) {
        const Bytes &given = inputs.emplace_back(messages.bytes());
        std::copy(given.begin(), given.end(), buffers.emplace_back(given.size(), poison).data());
      } else {
        buffers.emplace_back(static_cast<std::size_t>(messages.number()), poison);
      }
      arguments.push_back(buffers.back().data());
    }

    Buffer &arena = buffers.emplace_back(arenaBytes, poison);
    std::copy(states.begin(), states.end(), arena.data());
    kiln_error_t error{};
    kiln_call_t call{};
    call.arena = arena.data();
    call.arena_bytes = arenaBytes;
    call.error = &error;
    ShuffledExecutor shuffled(workers, 1 + entry);
    kiln_pool_t *pool = nullptr;
    if (order == TaskOrder::Shuffled)
      call.executor = &shuffled.executor;
    else if (order == TaskOrder::Threads && kiln_pool_create(workers, &pool, &error) == KILN_OK)
      call.executor = kiln_pool_executor(pool);
    std::string words;
    if (kiln_run(model, &call, entry, extents.data(), arguments.data()) != KILN_OK)
      words = error.message;
    kiln_pool_destroy(pool);

    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i] != buffers[i].contents())
        words += "an input was written to";
    for (const Buffer &buffer : buffers)
      if (!buffer.isIntact())
        words += "memory next to a tensor or the arena was written";
    say(words);
    if (!words.empty())
      return;
    messages.put(Bytes(arena.data(), arena.data() + states.size()));
    for (std::size_t i = inputs.size(); i + 1 < buffers.size(); ++i)
      messages.put(buffers[i].contents());
  }

  kiln::Messages messages{stdin, stdout};
  kiln_model_t *model = nullptr;
};

} // namespace

int main() {
#if defined(_WIN32)
  _setmode(_fileno(stdin), _O_BINARY);
  _setmode(_fileno(stdout), _O_BINARY);
#endif
  return Program().run();
}
