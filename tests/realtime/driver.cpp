// SPDX-License-Identifier: Apache-2.0
//
// driver [--calls N] [--seed S] [--most MB]: calls the entries of the library that it is linked with, N times with
// random extents (by default each entry once with its smallest and once with larger extents). Each call is made twice,
// with different initial bytes in the arena and the outputs and different numbers of workers, and must give the same
// results. Exits with 77 if the library has more than MB megabytes of weights.
#include "../seed.h"
#include "call.h"

#include <cstdio>
#include <cstdlib>
#include <map>

namespace kiln::realtime {

/// Returns an empty string, or the error message.
static std::string tryCall(Call &call, Random &random) {
  const Call::Result first = call.run(0xff, 1), second = call.run(0x41, static_cast<uint32_t>(2 + random() % 2));
  for (const Call::Result *result : {&first, &second})
    if (!result->mistake.empty())
      return result->mistake;
  const auto place = std::mismatch(first.bytes.begin(), first.bytes.end(), second.bytes.begin()).first;
  if (place == first.bytes.end())
    return "";
  return "byte " + std::to_string(place - first.bytes.begin()) + " of outputs and states follows from what was there";
}

/// Draws how far extents exceed their minimum: often a little, sometimes up to their maximum.
static int64_t drawSpan(Random &random) {
  static constexpr int64_t spans[] = {0, 1, 4, 17, 40, 40, 130, 1 << 20};
  return spans[random() % std::size(spans)];
}

static int run(uint64_t calls, uint64_t seed) {
  Random random(seed);
  const uint32_t entries = library.descriptor.entry_count;
  int status = EXIT_SUCCESS;
  for (Guard guard : {Guard::front, Guard::back}) {
    Model model(guard);
    const uint64_t share = calls ? (calls + (guard == Guard::front)) / 2 : entries;
    for (uint64_t i = 0; i < share; ++i) {
      Call call(model, i % entries, guard, calls ? drawSpan(random) : guard == Guard::front ? 0 : 40, random);
      const std::string mistake = tryCall(call, random);
      if (mistake.empty())
        continue;
      std::fprintf(stderr, "%s: %s: %s\n", library.descriptor.name, call.words().c_str(), mistake.c_str());
      status = EXIT_FAILURE;
    }
    if (!model.isIntact()) {
      std::fprintf(stderr, "%s: something was written outside of the weights\n", library.descriptor.name);
      status = EXIT_FAILURE;
    }
  }
  std::printf("%s: %llu calls of %u entries, seed %llu%s\n", library.descriptor.name,
              static_cast<unsigned long long>(calls ? calls : 2 * entries), entries,
              static_cast<unsigned long long>(seed), KILN_IS_WATCHED ? "" : ", without RealtimeSanitizer");
  return status;
}

} // namespace kiln::realtime

int main(int count, char **arguments) {
  using namespace kiln::realtime;
  std::map<std::string, uint64_t> options = {
      {"--calls", 0}, {"--seed", kiln::testing::testSeed()}, {"--most", UINT64_MAX}};
  for (int i = 1; i < count; i += 2) {
    auto option = options.find(arguments[i]);
    if (option == options.end() || i + 1 == count) {
      std::fprintf(stderr, "%s: wrong argument; expected --calls, --seed or --most and a number, got \"%s\"\n",
                   arguments[0], arguments[i]);
      return 2;
    }
    option->second = std::strtoull(arguments[i + 1], nullptr, 10);
  }
  if (const uint64_t megabytes = bytesOfWeights(library.descriptor) / 1000000; megabytes > options["--most"]) {
    std::printf("skipped: %s has %llu MB of weights, and KILN_REALTIME_WEIGHTS_MB is %llu\n", library.descriptor.name,
                static_cast<unsigned long long>(megabytes), static_cast<unsigned long long>(options["--most"]));
    return 77;
  }
  return run(options["--calls"], options["--seed"]);
}
