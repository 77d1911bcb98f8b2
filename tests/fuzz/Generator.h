// SPDX-License-Identifier: Apache-2.0
//
// Generates a random model: draws an operation, then looks for suitable operands among the visible values, and creates
// new ones if there are none. A recipe returns the number of a node, or -1 if it found none this time.
#pragma once

#include <functional>

#include "tests/fuzz/Builder.h"
#include "tests/fuzz/Random.h"

namespace kiln::fuzz {

class Generator {
public:
  Generator(std::uint64_t seed, const Options &options);
  RandomModel run();

private:
  using Recipe = int (Generator::*)(Op);
  struct Choice {
    Op op;
    Recipe recipe;
  };
  /// A state: the facts of its elements and its uses.
  struct Kept {
    Facts facts;
    int scope;
    bool isRead = false, isAppended = false, isStored = false; // in this entry
  };

  // Generator.cpp: the model, entries.
  void drawExtents();
  void forwardEntry(const char *name, int operations);
  bool similarEntry(const char *name);
  std::vector<int> results();
  int operation();
  static const std::vector<Choice> &choices();

  // Operands.cpp: extents, values.
  Dim fixedExtent();
  Dim namedExtent();
  Dim extent();
  Extents shape(int leastRank, int mostRank, bool fixed = false);
  int rank(int least, int most);
  /// Returns a visible value that suits, with a preference for late and unused ones; -1 if there is none.
  int choose(const std::function<bool(int)> &suits);
  int fresh(const Type &type, bool isPositive = false);
  int freshInteger(const Extents &shape, double low, double high);
  int constant(const Type &type, double low, double high);
  int number(double value, ElementType element);
  int parameter(const Type &type, bool isPositive = false);
  /// Returns a value of exactly this type.
  int ofType(const Type &type);
  /// Return a floating-point value, integers, or conditions, of a rank within bounds.
  int floats(int leastRank = 0, int mostRank = 8);
  int integers(int leastRank = 0, int mostRank = 3);
  int condition(const Extents &like);
  int anything(int leastRank = 0, int mostRank = 8);
  /// Returns a value that broadcasts with this shape; unless `mayGrow`, the result has this shape.
  int besides(const Type &type, bool mayGrow = true);
  /// Returns i32 indices of an axis, of the shape of `like` if that is given.
  int indices(const Dim &extent, const Extents *like = nullptr);
  int drawnIndices(const Dim &extent, const Extents &shape);
  /// Returns integers in [0, most], for use as lengths.
  int lengths(const Extents &shape, const Dim &most);
  /// Returns `value`, or a value derived from it that is not larger than `most`.
  int tamed(int value, double most = 30);
  int positive(int value);
  int scaled(int value, double by);
  /// Returns a value of this type that depends on `value`.
  int converted(int value, const Type &type);
  /// As `converted`, with elements in the bounds of `facts`.
  int bounded(int value, const Type &type, const Facts &facts);
  int reshapedTo(int value, const Extents &shape);
  int transposed(int value, std::vector<int> permutation);
  int make(Op op, std::vector<int> operands, Attributes attributes = {}, Type stated = {}) {
    return b.make(op, std::move(operands), std::move(attributes), std::move(stated));
  }
  const Extents &shapeOf(int id) const { return b.shape(id); }
  Type floatType(Extents shape) const { return {options.element, std::move(shape)}; }
  static Attributes alongAxis(int axis);

  // RandomOpsPointwise.cpp
  int unary(Op);
  int dropout(Op);
  int binary(Op);
  int comparison(Op);
  int logic(Op);
  int cast(Op);
  int where(Op);
  int softmax(Op);
  int norm(Op);
  int reduction(Op);
  // RandomOpsSources.cpp
  int sourceOf(Op);
  int embedding(Op);
  int positions(Op);
  int countedUp(Op);
  Attributes randomPairs(int pairs, const Extents &positions);
  int sinusoidal(Op);
  // RandomOpsContraction.cpp
  int linear(Op);
  int groupedLinear(Op);
  int matmul(Op);
  int attention(Op);
  int attentionOf(Op, int queries, int keys, int values, int heads, int keyHeads);
  int writtenOutAttention(Op);
  int splitIntoHeads(int x, int heads, bool isTransposed);
  int writtenOutScores(int queries, int keys, bool isSplit);
  int selfAttention(Op);
  int tiedLogits(Op);
  // RandomOpsMasks.cpp
  int distances(int queries, int keys);
  int maskByHead(int mask, int queries);
  int alibi(int queries, int keys, int heads);
  int distanceBias(int queries, int keys, int heads);
  int documentsMask(int queries, int keys);
  /// Returns a mask that follows from positions, or -1.
  int maskByPosition(int queries, int keys, int heads);
  // RandomOpsSplit.cpp
  int splittable();
  bool hasRowsOfRanks(const Extents &extents) const;
  int projected();
  int dense(int x, std::int64_t width);
  int dense(int x, std::int64_t width, const Attributes &attributes, bool hasBias);
  int normedHeads(int x, std::int64_t count);
  int perceptron();
  int perceptronOf(int x);
  int cachedAttention();
  int vocabulary();
  // RandomOpsImage.cpp
  int image(int leastExtent);
  Window window(const Extents &image, bool isPool);
  int conv2d(Op);
  int pool(Op);
  int resize(Op);
  // RandomOpsMovement.cpp
  int reshape(Op);
  int expand(Op);
  int transpose(Op);
  int concat(Op);
  int slice(Op);
  int gather(Op);
  int argsort(Op);
  int indexAdd(Op);
  // RandomOpsLoops.cpp
  int stack(Op);
  int pattern(Op);
  int patternPart(int x, std::int64_t run, std::int64_t first, int parent);
  struct Loop;
  int scan(Op);
  void drawSequences(Loop &scan);
  void drawSequence(Loop &loop);
  int initialState(const Loop &scan);
  void drawStates(Loop &scan);
  bool addState(Loop &loop, int initial);
  void addArguments(Loop &scan);
  void drawNextStates(Loop &scan);
  void drawOutputs(Loop &scan, int outputs);
  int addLoop(Op op, const Loop &scan, int region);
  void body(int operations);
  int readState(Op);
  int append(Op);
  Dim rowsWith(const Dim &rows);
  int appended(int x, const Dim &all);
  int store(Op);
  int stateFor(Op, const Extents &shape, ElementType element);

  Options options;
  Random random;
  Builder b;
  std::vector<Symbol> symbols;
  Extents palette;        // preferred extents of the model, so that shapes match
  std::vector<Kept> kept; // by state
  int operationsLeft = 0;
  bool hasStack = false; // in the current entry
};

} // namespace kiln::fuzz
