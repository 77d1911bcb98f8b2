// SPDX-License-Identifier: Apache-2.0
//
// Graphs that a capture has made. Executable graphs share their nodes.
#include "Queue.h"

using namespace kiln::fake;

CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph handle, unsigned long long flags) {
  return enter("cuGraphInstantiateWithFlags", Needs::context, [&](Call &call) -> CUresult {
    if (!executable || flags & ~11ULL) // device-side launches (4) are not modelled
      return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Graph> graph = call.driver.graphs.find(handle);
    if (!graph)
      return CUDA_ERROR_INVALID_HANDLE;
    *executable = call.driver.executables.add(std::make_shared<Graph>(*graph));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream streamHandle) {
  return enter("cuGraphLaunch", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Stream> stream;
    if (const CUresult error = call.find(streamHandle, stream))
      return error;
    const std::shared_ptr<Graph> graph = call.driver.executables.find(handle);
    if (!graph || graph->context != stream->context)
      return CUDA_ERROR_INVALID_HANDLE;
    std::vector<Point> after;
    if (graph->launched)
      after.push_back(*graph->launched);
    if (const CUresult error = submit(call, stream, Work{Work::Kind::graph, nullptr, graph->nodes}, std::move(after)))
      return error;
    if (!stream->capture)
      graph->launched = Point{stream, stream->submitted};
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphDestroy(CUgraph graph) {
  return enter("cuGraphDestroy", Needs::context,
               [&](Call &call) { return call.driver.graphs.remove(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; });
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
  return enter("cuGraphExecDestroy", Needs::context, [&](Call &call) {
    return call.driver.executables.remove(executable) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, std::size_t *count) {
  return enter("cuGraphGetNodes", Needs::context, [&](Call &call) -> CUresult {
    const std::shared_ptr<Graph> graph = call.driver.graphs.find(handle);
    if (!count)
      return CUDA_ERROR_INVALID_VALUE;
    if (!graph)
      return CUDA_ERROR_INVALID_HANDLE;
    // No function takes a node, so that a number is enough of a handle.
    for (std::size_t i = 0; nodes && i < *count; ++i)
      nodes[i] = i < graph->nodes->size() ? reinterpret_cast<CUgraphNode>(i + 1) : nullptr;
    *count = graph->nodes->size();
    return CUDA_SUCCESS;
  });
}
