// SPDX-License-Identifier: Apache-2.0
//
// The model of ranked_models.h in grids of ranks, replicas and stages, whose processes are threads; and a process that
// is lost.
#pragma once

#include "ranked_models.h"

namespace kiln_test {

/// The number of processes in each dimension, or the position of a process.
struct Grid {
  uint32_t Ranks, Replicas, Stages;
};
inline void PrintTo(const Grid &grid, std::ostream *out) {
  *out << grid.Ranks << " ranks, " << grid.Replicas << " replicas, " << grid.Stages << " stages";
}

/// A process of the grid, with its communicators.
struct GridProcess {
  Grid Own, Of;
  kiln::test::ThreadRanks &OfRanks, &OfReplicas, &OfStages;
  kiln_communicator_t Ranks, Replicas, Stages;

  bool isFirst() const { return Own.Ranks + Own.Replicas + Own.Stages == 0; }
  Member member() const {
    const bool isReplica = Of.Replicas > 1, isStage = Of.Stages > 1;
    return {isReplica ? Own.Replicas : 0, isReplica ? Of.Replicas : 0, isStage ? Own.Stages : 0,
            isStage ? Of.Stages : 0};
  }
  kiln_status_t save(RankedModel &model, const char *path, bool isTraining) const {
    return model.save(Ranks, path, isTraining, Of.Replicas > 1 ? &Replicas : nullptr,
                      Of.Stages > 1 ? &Stages : nullptr);
  }
  /// Removes the process from its groups; the others get an error.
  void lose() const {
    OfRanks.lose(Own.Ranks);
    OfReplicas.lose(Own.Replicas);
    OfStages.lose(Own.Stages);
  }
};

/// Calls `work` for each process of the grid, with its model, whose values are a function of the seed.
inline void asGrid(const Grid &of, Kind kind, uint32_t seed,
                   const std::function<void(RankedModel &, GridProcess &)> &work) {
  std::deque<kiln::test::ThreadRanks> ranks, replicas, stages; // by the indices of the two other dimensions
  for (uint32_t i = 0; i < of.Replicas * of.Stages; ++i)
    ranks.emplace_back(of.Ranks);
  for (uint32_t i = 0; i < of.Ranks * of.Stages; ++i)
    replicas.emplace_back(of.Replicas);
  for (uint32_t i = 0; i < of.Ranks * of.Replicas; ++i)
    stages.emplace_back(of.Stages);
  kiln::test::ThreadRanks(of.Ranks * of.Replicas * of.Stages).run([&](uint32_t process) {
    const Grid own = {process % of.Ranks, process / of.Ranks % of.Replicas, process / of.Ranks / of.Replicas};
    auto &ofRanks = ranks[own.Replicas * of.Stages + own.Stages],
         &ofReplicas = replicas[own.Ranks * of.Stages + own.Stages],
         &ofStages = stages[own.Ranks * of.Replicas + own.Replicas];
    GridProcess here = {own,
                        of,
                        ofRanks,
                        ofReplicas,
                        ofStages,
                        ofRanks.communicator(own.Ranks),
                        ofReplicas.communicator(own.Replicas),
                        ofStages.communicator(own.Stages)};
    RankedModel model(own.Ranks, of.Ranks, kind, here.member());
    ASSERT_NO_FATAL_FAILURE(model.fill(seed));
    work(model, here);
  });
}

/// A process that is lost after `Left` more collectives.
struct Losing {
  kiln::test::ThreadRanks *Ranks;
  kiln_communicator_t Own;
  int Left;
  kiln_communicator_t get() {
    return {this, Own.rank, Own.size,
            [](void *self, const kiln_collective_t *collective, kiln_error_t *error) {
              auto *own = static_cast<Losing *>(self);
              return own->Left-- > 0 ? own->Own.begin(own->Own.self, collective, error)
                                     : own->Ranks->lose(own->Own.rank, error);
            },
            [](void *self, kiln_error_t *error) {
              auto *own = static_cast<Losing *>(self);
              return own->Own.finish(own->Own.self, error);
            }};
  }
};

} // namespace kiln_test
