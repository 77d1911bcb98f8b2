// SPDX-License-Identifier: Apache-2.0
//
// Bank conflicts of shared memory. There are 32 banks; word n of four bytes is in bank n % 32. A warp's access is split
// into groups of lanes that access 128 bytes, and each group takes one more wavefront for each further word of the same
// bank.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace kiln::ptx {

class BankCount {
public:
  /// Starts an access of this many bytes per lane.
  explicit BankCount(unsigned bytes) : bytes(bytes), lanesAtOnce(std::min(32U, 128 / std::max(bytes, 4U))) {}

  /// Adds the next lane's address.
  void add(std::uint64_t address) {
    for (std::uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word)
      words[count++] = static_cast<std::uint32_t>(word);
    if (++lanes % lanesAtOnce == 0)
      finish();
  }
  /// Returns the wavefronts beyond the first one of each group, over all lanes that were added.
  std::uint64_t conflicts() {
    finish();
    return found;
  }

private:
  void finish() {
    if (hasConflicts())
      found += wavefronts() - 1;
    count = 0;
  }

  /// Whether different words are in one bank.
  bool hasConflicts() const {
    std::array<std::uint32_t, 32> ofBank; // of the banks in `used`
    std::uint32_t used = 0;
    for (unsigned i = 0; i < count; ++i) {
      const std::uint32_t word = words[i], bank = word % 32;
      if (used >> bank & 1 && ofBank[bank] != word)
        return true;
      used |= 1U << bank;
      ofBank[bank] = word;
    }
    return false;
  }

  unsigned wavefronts() {
    std::sort(words.begin(), words.begin() + count);
    std::array<unsigned, 32> ofBank = {};
    for (unsigned i = 0; i < count; ++i)
      ofBank[words[i] % 32] += i == 0 || words[i] != words[i - 1];
    return *std::max_element(ofBank.begin(), ofBank.end());
  }

  unsigned bytes, lanesAtOnce, lanes = 0, count = 0;
  std::uint64_t found = 0;
  std::array<std::uint32_t, 64> words; // of one group of lanes; unaligned accesses have one more word each
};

} // namespace kiln::ptx
