// SPDX-License-Identifier: Apache-2.0
// host MODE PLUGIN WIDTH...: opens plug-ins in that order, RTLD_LOCAL or RTLD_GLOBAL, then calls the host's own model,
// if it has one, and that of each plug-in, twice. Exits with 1 if a result is that of another library.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <vector>

#ifdef WIDTH
extern "C" double host_sum();
#endif

static bool check(const char *who, double got, int width) {
  const double expected = 64.0 * width * width;
  if (got != expected)
    std::fprintf(stderr, "%s: another library's result; expected %.0f, got %.0f\n", who, expected, got);
  return got == expected;
}

int main(int count, char **words) {
  const int mode = std::strcmp(words[1], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
  std::vector<double (*)()> sums;
  for (int i = 2; i < count; i += 2) {
    void *plugin = dlopen(words[i], RTLD_NOW | mode);
    auto *sum = plugin ? reinterpret_cast<double (*)()>(dlsym(plugin, "plugin_sum")) : nullptr;
    if (!sum) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    sums.push_back(sum);
  }
  bool isGood = true;
  for (int turn = 0; turn < 2; ++turn) {
#ifdef WIDTH
    isGood &= check("host", host_sum(), WIDTH);
#endif
    for (std::size_t i = 0; i < sums.size(); ++i)
      isGood &= check(words[2 + 2 * i], sums[i](), std::atoi(words[3 + 2 * i]));
  }
  return isGood ? 0 : 1;
}
