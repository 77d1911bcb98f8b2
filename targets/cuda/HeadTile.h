// SPDX-License-Identifier: Apache-2.0
//
// Queries, keys or values of a head as they go to shared memory: so many lines, each of all channels with zeros behind
// them, for the threads that share them.
#pragma once

#include "targets/cuda/Reader.h"

namespace kiln::cuda {

/// Of shared memory: lines x width elements, `pitch` from line to line. Of swizzled lines chunks of 16 bytes change
/// places within 128 bytes. In blocks: all lines' first 128 bytes, then the next ones.
struct LineShape {
  int64_t lines, width, pitch;
  int64_t bytes = 4; // of an element
  bool isSwizzled = false, isInBlocks = false;

  int64_t size() const { return lines * (isInBlocks ? width : pitch) * bytes / 4; } // in f32
  /// Where an element is, in elements from the start.
  tile::Value place(tile::Builder &b, tile::Value line, tile::Value channel) const;
};

/// Of elements of so many bytes, so that the same 16 bytes of eight lines in a row lie in different banks: lines of
/// multiples of 128 bytes are swizzled, others are longer.
LineShape matrixLines(int64_t lines, int64_t width, int64_t bytes);
/// Of 16-bit elements, multiples of 128 bytes: as wgmma reads them.
LineShape blockLines(int64_t lines, int64_t width);

/// Rounds f32 to tf32 where they lie; which of the threads that do so this is.
void roundToTf32(tile::Builder &b, const LineShape &lines, tile::Value at, tile::Value thread, int64_t threads);

class HeadTile {
public:
  /// The op's loops at a line, but for that of the channels.
  using LoopsOfLine = std::function<tile::Values(tile::Value line)>;

  /// Operand `number` of the op, of which a loop counts the channels and lines are counted by another one or, without
  /// that, by several. `element`: in shared memory; f32, or what the operand has.
  HeadTile(tile::Builder &b, Reader &reader, const Placement &placement, mlir::linalg::GenericOp op, unsigned number,
           std::optional<unsigned> lineLoop, unsigned channelLoop, tile::Type element, const LineShape &shape);

  /// Before the first fetch: which of the threads this is; the op's loops but for those two.
  void begin(tile::Value thread, int64_t threads, const tile::Values &loops);
  /// The same of lines that several loops count.
  void begin(tile::Value thread, int64_t threads, tile::Value lineCount, LoopsOfLine loopsOfLine);
  /// Copies lines from `first` on, zeros for those beyond the end: behind the threads' backs if they are of the same
  /// type in memory and more than 16 bits are copied at a time, as a part of the thread's next group of copies.
  void fetch(tile::Value first, tile::Value to);
  /// Whether a diagnostic has been emitted.
  bool isBroken() const { return broken; }

private:
  /// Elements that a thread takes at a time.
  struct Unit {
    tile::Value place, line, channel; // in the tile
    tile::Value isOfTile;             // null: it is
  };
  /// `together`: a multiple of which the number of turns is.
  Unit unitOf(int64_t unitWidth, tile::Value turn, int64_t together = 1);
  void ifOfTile(const Unit &unit, llvm::function_ref<void()> body);
  int64_t turns(int64_t unitWidth) const;
  void copyUnits(int64_t unitWidth, tile::Value first, tile::Value to);
  void copy(const Unit &unit, int64_t unitWidth, tile::Value first, tile::Value to);
  void readAll(tile::Value first, tile::Value to);
  void readUnits(tile::Value first, tile::Value to);
  tile::Values at(const Unit &unit, tile::Value line) const;
  tile::Value addressOf(tile::Value start, tile::Value offset) { return b.addressOf(element, start, offset); }
  tile::Value isInside(const Unit &unit, tile::Value line);

  tile::Builder &b;
  Reader &reader;
  mlir::linalg::GenericOp op;
  unsigned number, channelLoop;
  std::optional<unsigned> lineLoop;
  tile::Type element;
  LineShape shape;
  int64_t unitElements; // that lie side by side in 16 bytes
  bool isPlain;         // elements as they lie in memory
  bool isWidened;       // of 16 bits there, f32 here
  bool isInUnits;       // one of these, and 16 bytes of channels start at multiples of as many
  bool isSureAligned;   // and the address is such a multiple: else that depends
  bool isAlongChannels; // channels lie side by side, not lines
  int64_t threads = 0;
  tile::Value thread, lineCount, channelCount, address, isAligned;
  LoopsOfLine loopsOfLine;
  bool broken = false;
};

} // namespace kiln::cuda
