// SPDX-License-Identifier: Apache-2.0
//
// Whether accesses to shared memory are ordered. Each warp has a vector clock, which barriers join; each byte has its
// last write and the last read of each warp. Lanes of a warp are ordered only by a barrier, including bar.warp.sync. A
// race is an access that is not ordered after an earlier one of another thread, where at least one of the two is a
// write. Atomics do not race with each other. (C. Flanagan, S. Freund, FastTrack, PLDI 2009, with one read for each
// warp instead of the adaptive form.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::ptx {

/// The latest known time of each actor. Actors are the warps of a cluster, and the asynchronous copies that an mbarrier
/// tracks.
class VectorClock {
public:
  std::uint32_t of(unsigned actor) const { return actor < times.size() ? times[actor] : 0; }
  void advance(unsigned actor) {
    reach(actor);
    ++times[actor];
  }
  void join(const VectorClock &other);
  void clear() { times.clear(); }

private:
  void reach(unsigned actor) {
    if (actor >= times.size())
      times.resize(actor + 1);
  }
  std::vector<std::uint32_t> times;
};

/// The thread and the location of an access.
struct Accessor {
  unsigned actor;
  const VectorClock *clock;
  unsigned lane; ///< or wholeWarp
  unsigned line;
};
/// The lanes of a warp together, as ldmatrix reads.
constexpr unsigned wholeWarp = 255;

class Races {
public:
  /// For a block's shared memory, whose start address is for messages. The actors are the cluster's warps, then its
  /// asynchronous copies.
  Races(std::uint32_t start, std::uint32_t bytes, unsigned warpsOfBlock, unsigned warpsOfCluster)
      : start(start), warpsOfBlock(warpsOfBlock), warpsOfCluster(warpsOfCluster), writes(bytes), atomics(bytes),
        size(bytes) {}

  /// Each throws Fault. `same`: the bytes already have the written values.
  void read(std::uint32_t offset, std::uint32_t bytes, const Accessor &who);
  void write(std::uint32_t offset, std::uint32_t bytes, const Accessor &who, bool same = false);
  void atomic(std::uint32_t offset, std::uint32_t bytes, const Accessor &who);
  /// Records a write by an asynchronous copy, which `issuer` started and `copier` completes.
  void copied(std::uint32_t offset, std::uint32_t bytes, const Accessor &issuer, const Accessor &copier);

  /// Returns "warp 2 of the cluster's block 1", "an asynchronous copy".
  std::string nameOf(unsigned actor, unsigned lane = wholeWarp) const;

private:
  struct Entry {
    std::uint32_t time = 0; ///< zero: none
    std::uint32_t line = 0;
    std::uint16_t actor = 0;
    std::uint8_t lane = 0;
    bool operator==(const Entry &) const = default;
  };

  /// The last access to each byte. Blocks use only a part of their maximum, so that it is allocated in pieces.
  class History {
  public:
    explicit History(std::uint32_t bytes) : pieces((bytes + pieceBytes - 1) / pieceBytes) {}
    /// Returns an entry of time zero if there is none.
    Entry get(std::uint32_t offset) const {
      const std::vector<Entry> &piece = pieces[offset / pieceBytes].entries;
      return piece.empty() ? Entry() : piece[offset % pieceBytes];
    }
    /// Calls `record` with the entry of each byte. The entries' times become `time`.
    template <class Record> void change(std::uint32_t offset, std::uint32_t bytes, std::uint32_t time, Record record) {
      for (std::uint32_t end = offset + bytes; offset < end;) {
        Piece &piece = pieces[offset / pieceBytes];
        if (piece.entries.empty())
          piece.entries.resize(pieceBytes);
        piece.latest = std::max(piece.latest, time);
        Entry *entry = piece.entries.data() + offset % pieceBytes;
        for (const std::uint32_t next = endOfPiece(offset, end); offset < next; ++offset)
          record(*entry++);
      }
    }
    void set(std::uint32_t offset, std::uint32_t bytes, const Entry &entry) {
      change(offset, bytes, entry.time, [&](Entry &of) { of = entry; });
    }
    /// Whether `holds` is true of the entry of each byte that has one. Neighbours with equal entries are tried once.
    template <class Holds> bool allOf(std::uint32_t offset, std::uint32_t bytes, Holds holds) const {
      Entry last;
      for (const std::uint32_t end = offset + bytes; offset < end;) {
        const Piece &piece = pieces[offset / pieceBytes];
        const std::uint32_t next = endOfPiece(offset, end);
        for (; !piece.entries.empty() && offset < next; ++offset) {
          const Entry &entry = piece.entries[offset % pieceBytes];
          if (entry.time == 0 || entry == last)
            continue;
          if (!holds(entry))
            return false;
          last = entry;
        }
        offset = next;
      }
      return true;
    }
    /// Returns the time of the latest access to the bytes or to others close to them.
    std::uint32_t latest(std::uint32_t offset, std::uint32_t bytes) const {
      std::uint32_t time = 0;
      for (std::uint32_t piece = offset / pieceBytes; piece * pieceBytes < offset + bytes; ++piece)
        time = std::max(time, pieces[piece].latest);
      return time;
    }

  private:
    static constexpr std::uint32_t pieceBytes = 256;
    static std::uint32_t endOfPiece(std::uint32_t offset, std::uint32_t end) {
      return std::min(end, (offset / pieceBytes + 1) * pieceBytes);
    }
    struct Piece {
      std::vector<Entry> entries;
      std::uint32_t latest = 0;
    };
    std::vector<Piece> pieces;
  };

  static Entry entryOf(const Accessor &who);
  static bool ordered(const Entry &before, const Accessor &who);
  static bool allOrdered(const History &history, std::uint32_t offset, std::uint32_t bytes, const Accessor &who) {
    return history.allOf(offset, bytes, [&](const Entry &before) { return ordered(before, who); });
  }
  bool readsAreOrdered(std::uint32_t offset, std::uint32_t bytes, const Accessor &who) const;
  void checkReads(std::uint32_t offset, const Accessor &who) const;
  void checkAtomics(std::uint32_t offset, const char *is, const Accessor &who) const;
  [[noreturn]] void report(const Entry &before, const char *was, const char *is, std::uint32_t offset,
                           const Accessor &who) const;

  std::uint32_t start;
  unsigned warpsOfBlock, warpsOfCluster;
  History writes, atomics;
  std::vector<History> reads; ///< of each actor
  std::uint32_t size;         ///< in bytes
};

} // namespace kiln::ptx
