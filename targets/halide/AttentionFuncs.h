// SPDX-License-Identifier: Apache-2.0
//
// The Funcs of an attention kernel by blocks of queries and of keys, unscheduled. Their dimensions are those named
// here, innermost first, and then the outer ones of the scores (heads, batch) under the translator's names.
#pragma once

#include "targets/halide/AttentionMatch.h"
#include "targets/halide/Translate.h"

namespace kiln::halide {

struct AttentionSizes {
  int blockQueries = 0;        // queries of a block, which a loop over keys is limited by
  int blockKeys = 0;           // keys of a block, if there are several
  bool hasKeyBlocks = false;   // whether the keys are in several blocks
  bool hasEmptyBlocks = false; // whether there may be blocks behind the last query
  bool packsKeys = false;      // whether keys are copied to rows that follow each other
  bool packsValues = false;    // whether values are, to rows of padded length
  int transposed = 0;          // queries are packed by transposing squares of that size, a power of 2; 0: one by one
  int keyLanes = 0;            // lanes are keys, so many, and queries are computed one by one; 0: lanes are queries
  bool isOneQuery = false;     // whether there is but one
};

/// A number for each query, reduced over the keys of a block. If lanes are keys, each lane reduces its own first.
struct KeyReduction {
  Halide::Func ofLane; // lane, query, block
  Halide::Func func;   // query, block
  Halide::RDom keys, lanes;
};

/// Rows of keys or values lie pages apart, where no hardware prefetcher follows: whoever reads vectors of them asks for
/// those so many rows ahead.
void askForRows(Translator &translator, const Contraction &of, unsigned rowLoop, int64_t rowsAhead);

class AttentionFuncs {
public:
  AttentionFuncs(AttentionMatch match, AttentionSizes sizes, Translator &translator);

  /// Once, when the first of the two ops that they replace is reached. False after a diagnostic.
  bool build();

  const AttentionMatch match;
  const AttentionSizes sizes;
  unsigned rank; // of the scores
  Halide::Var channel{"channel"}, query{"query"}, key{"key"}, block{"key_block"}, depth{"depth"};

  /// Before packedQuery: rows of a square as they are (lane, row, square of depths, square of queries), and then with
  /// the halves of their number interleaved once, twice and so on (twice as many lanes, half as many rows).
  std::vector<Halide::Func> turns;
  Halide::Var lane{"lane"}, row{"row"}, depthSquare{"depth_square"}, querySquare{"query_square"};
  Halide::Func packedQuery; // query, depth
  Halide::Func packedKeys;  // depth, key
  Halide::Func scoreTile;   // query, key, block
  Halide::Func scores;      // query, key, block: masked
  KeyReduction maxima;
  Halide::Func weights;      // query, key, block
  KeyReduction sums;         // of the weights
  Halide::Func packedValues; // channel, key
  Halide::Func productTile;  // channel, query, block
  Halide::Func partial;      // channel, query, block: the product
  Halide::Func statistics;   // query, block: maximum and sum
  Halide::Func maximum;      // query
  Halide::Func factor;       // query, block
  Halide::Func sum;          // as the op has it: d0 the query
  Halide::Func product;      // as the op has it: d0 the channel, d1 the query
  Halide::RDom depthDomain, productDomain, mergedMaxDomain, mergedSumDomain, mergedProductDomain;

private:
  std::vector<Halide::Var> vars(std::vector<Halide::Var> inner, unsigned firstOuter = 2) const;
  Exprs at(Exprs inner, unsigned firstOuter = 2) const;
  Halide::Func start(const char *name, const std::vector<Halide::Var> &vars, const Halide::Expr &value);
  Halide::Expr domainUpTo(Halide::RDom &domain, const Halide::Expr &count, const Halide::Expr &extent,
                          const char *name);
  Halide::Expr neededKeys(Halide::Expr query, unsigned firstOuter);
  Halide::Expr smallestLimit(const Halide::Expr &query, unsigned firstOuter);
  Halide::Expr weight(const Halide::Expr &score, const Halide::Expr &maximum);
  Halide::Expr decoded(const Contraction &of, const Exprs &loops);
  void reduceKeys(KeyReduction &reduction, const std::string &name, float initial,
                  llvm::function_ref<Halide::Expr(Halide::Expr sofar, Halide::Expr next)> combine, Halide::Func values);
  void buildQueries();
  bool buildScores();
  bool buildWeights();
  bool buildProducts();
  bool buildMerge();

  Translator &translator;
  Halide::Expr queryCount, keyCount, blockCount, blockExtent, productIndex;
};

} // namespace kiln::halide
