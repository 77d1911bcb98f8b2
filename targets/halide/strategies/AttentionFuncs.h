// SPDX-License-Identifier: Apache-2.0
//
// The unscheduled Funcs of an attention kernel that is blocked over queries and keys. A Func has the dimensions named
// here, innermost first, followed by the outer dimensions of the scores (heads, batch) under the translator's names.
#pragma once

#include "targets/halide/strategies/AttentionMatch.h"
#include "targets/halide/translate/Translator.h"

namespace kiln::halide {

struct AttentionSizes {
  int blockQueries = 0;        // queries of a block, which share the bound of a loop over keys
  int blockKeys = 0;           // keys of a block, if there are several blocks
  bool hasKeyBlocks = false;   // whether the keys are in several blocks
  bool hasEmptyBlocks = false; // whether there may be blocks after the last query
  bool packsKeys = false;      // whether keys are packed into contiguous rows
  bool packsValues = false;    // whether values are packed into rows of padded length
  int transposed = 0; // size of the squares, a power of 2, by whose transposition queries are packed; 0: one by one
  int keyLanes = 0;   // number of lanes if lanes are keys and queries are computed one by one; 0: lanes are queries
  bool isOneQuery = false; // whether there is only one query
};

/// A value per query, reduced over the keys of a block. If lanes are keys, each lane first reduces its own keys.
struct KeyReduction {
  Halide::Func ofLane; // lane, query, block
  Halide::Func func;   // query, block
  Halide::RDom keys, lanes;
};

/// Prefetches rows of keys or values `rowsAhead` rows before they are read as vectors. The rows are stored pages apart,
/// where no hardware prefetcher follows.
void askForRows(Translator &translator, const Contraction &of, unsigned rowLoop, int64_t rowsAhead);

class AttentionFuncs {
public:
  AttentionFuncs(AttentionMatch match, AttentionSizes sizes, Translator &translator);

  /// Builds the Funcs when the first of the two ops that they replace is reached; later calls do nothing. Returns false
  /// after a diagnostic.
  bool build();

  const AttentionMatch match;
  const AttentionSizes sizes;
  unsigned rank; // rank of the scores
  Halide::Var channel{"channel"}, query{"query"}, key{"key"}, block{"key_block"}, depth{"depth"};

  /// The stages of the transposition before packedQuery: the rows of a square in their original order (lane, row,
  /// square of depths, square of queries), then after one, two, ... interleavings of their halves (twice as many lanes,
  /// half as many rows).
  std::vector<Halide::Func> turns;
  Halide::Var lane{"lane"}, row{"row"}, depthSquare{"depth_square"}, querySquare{"query_square"};
  Halide::Func packedQuery; // query, depth
  Halide::Func packedKeys;  // depth, key
  Halide::Func scoreTile;   // query, key, block
  Halide::Func scores;      // query, key, block: masked
  KeyReduction maxima;
  Halide::Func weights;      // query, key, block
  KeyReduction sums;         // sums of the weights
  Halide::Func packedValues; // channel, key
  Halide::Func productTile;  // channel, query, block
  Halide::Func partial;      // channel, query, block: the products
  Halide::Func statistics;   // query, block: maximum and sum
  Halide::Func maximum;      // query
  Halide::Func factor;       // query, block
  Halide::Func largest;      // the maximum of all blocks; indexed like the op's result: d0 is the query
  Halide::Func sum;          // indexed like the op's result: d0 is the query
  Halide::Func product;      // indexed like the op's result: d0 is the channel, d1 the query
  Halide::RDom depthDomain, productDomain, mergedMaxDomain, mergedSumDomain, mergedProductDomain;

private:
  std::vector<Halide::Var> vars(std::vector<Halide::Var> inner, unsigned firstOuter = 2) const;
  Exprs at(Exprs inner, unsigned firstOuter = 2) const;
  Halide::Func start(const char *name, const std::vector<Halide::Var> &vars, const Halide::Expr &value);
  Halide::Expr domainUpTo(Halide::RDom &domain, const Halide::Expr &count, const Halide::Expr &extent, const char *name,
                          const Halide::Expr &first = 0);
  Halide::Expr firstQuery(const Halide::Expr &query) const;
  Halide::Expr neededKeys(const Halide::Expr &query, unsigned firstOuter);
  Halide::Expr firstBlock(const Halide::Expr &query, unsigned firstOuter);
  Exprs limitsOf(llvm::ArrayRef<mlir::Value> wanted, const Halide::Expr &query, unsigned firstOuter);
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
