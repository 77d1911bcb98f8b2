// SPDX-License-Identifier: Apache-2.0
//
// Copies queries, keys or values of a head to shared memory: a number of lines, each with all channels, padded with
// zeros. The threads that share the lines copy them together.
#pragma once

#include "targets/cuda/ptx/ElementEmitter.h"

namespace kiln::cuda {

/// A layout in shared memory: lines x width elements, with `pitch` elements from line to line. In swizzled lines,
/// chunks of 16 bytes are permuted within 128 bytes. `isInBlocks`: the first 128 bytes of all lines come first, then
/// the next 128 bytes of all lines.
struct LineShape {
  int64_t lines, width, pitch;
  int64_t bytes = 4; // element size
  bool isSwizzled = false, isInBlocks = false;

  int64_t size() const { return lines * (isInBlocks ? width : pitch) * bytes / 4; } // in units of f32
  /// Returns the offset of an element, in elements.
  tile::Value place(tile::Builder &b, tile::Value line, tile::Value channel) const;
};

/// Returns a layout in which the same 16 bytes of eight consecutive lines are in different banks: lines of multiples
/// of 128 bytes are swizzled, others are padded. `bytes`: the element size.
LineShape matrixLines(int64_t lines, int64_t width, int64_t bytes);
/// Returns the layout that wgmma reads, for 16-bit elements and lines of multiples of 128 bytes.
LineShape blockLines(int64_t lines, int64_t width);

/// Rounds f32 to tf32 in place. `thread`: the index of the thread among the `threads` that do so.
void roundToTf32(tile::Builder &b, const LineShape &lines, tile::Value at, tile::Value thread, int64_t threads);

class HeadTile {
public:
  /// Returns the op's loops at a line, without that of the channels.
  using LoopsOfLine = std::function<tile::Values(tile::Value line)>;

  /// Copies operand `number` of the op. `channelLoop` iterates over channels and `lineLoop` over lines; without
  /// `lineLoop` several loops iterate over lines. `element`: the type in shared memory, f32 or the operand's.
  HeadTile(tile::Builder &b, ElementEmitter &emitter, const Placement &placement, mlir::linalg::GenericOp op,
           unsigned number, std::optional<unsigned> lineLoop, unsigned channelLoop, tile::Type element,
           const LineShape &shape);

  /// Must be called before the first fetch. `thread`: the index among the `threads` that share the tile; `loops`: the
  /// op's loops without those two.
  void begin(tile::Value thread, int64_t threads, const tile::Values &loops);
  /// Like the other begin(), for lines over several loops.
  void begin(tile::Value thread, int64_t threads, tile::Value lineCount, LoopsOfLine loopsOfLine);
  /// Copies lines from `first` on, with zeros after the last line. The copy is asynchronous, as a part of the thread's
  /// next commit group, if the type in memory is the same and more than 16 bits are copied at a time.
  void fetch(tile::Value first, tile::Value to);
  /// Whether a diagnostic has been emitted.
  bool isBroken() const { return broken; }

private:
  /// The elements that a thread copies at a time.
  struct Unit {
    tile::Value place, line, channel; // position in the tile
    tile::Value isOfTile;             // null: always true
  };
  /// `together`: the number of iterations is a multiple of this.
  Unit unitOf(int64_t unitWidth, tile::Value iteration, int64_t together = 1);
  void ifOfTile(const Unit &unit, llvm::function_ref<void()> body);
  int64_t iterations(int64_t unitWidth) const;
  void copyUnits(int64_t unitWidth, tile::Value first, tile::Value to);
  void copy(const Unit &unit, int64_t unitWidth, tile::Value first, tile::Value to);
  void readAll(tile::Value first, tile::Value to);
  void readUnits(tile::Value first, tile::Value to);
  tile::Values at(const Unit &unit, tile::Value line) const;
  tile::Value addressOf(tile::Value start, tile::Value offset) { return b.addressOf(element, start, offset); }
  tile::Value isInside(const Unit &unit, tile::Value line);

  tile::Builder &b;
  ElementEmitter &emitter;
  mlir::linalg::GenericOp op;
  unsigned number, channelLoop;
  std::optional<unsigned> lineLoop;
  tile::Type element;
  LineShape shape;
  int64_t unitElements; // elements in 16 bytes
  bool isPlain;         // in memory, with the element size of shared memory
  bool isWidened;       // 16-bit in memory, f32 in shared memory
  bool isInUnits;       // plain or widened, and 16-byte vectors of channels start at multiples of their size
  bool isSureAligned;   // the address is known to be such a multiple: else it is checked at run time
  bool isAlongChannels; // channels are contiguous in memory, not lines
  int64_t threads = 0;
  tile::Value thread, lineCount, channelCount, address, isAligned;
  LoopsOfLine loopsOfLine;
  bool broken = false;
};

} // namespace kiln::cuda
