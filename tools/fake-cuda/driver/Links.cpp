// SPDX-License-Identifier: Apache-2.0
//
// The linker: it takes one PTX text, and its "cubin" is this text after a header.
#include <cstring>

#include "Images.h"

using namespace kiln::fake;

CUresult cuLinkCreate_v2(unsigned count, CUjit_option *options, void **values, CUlinkState *state) {
  return enter("cuLinkCreate_v2", Needs::context, [&](Call &call) -> CUresult {
    auto link = std::make_shared<Link>();
    if (!state)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = readOptions(count, options, values, link->options))
      return error;
    link->context = call.context;
    *state = call.driver.links.add(std::move(link));
    return CUDA_SUCCESS;
  });
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, std::size_t size, const char *,
                          unsigned count, CUjit_option *options, void **values) {
  return enter("cuLinkAddData_v2", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Link> link;
    JitOptions ignored;
    if (const CUresult error = call.find(call.driver.links, state, link))
      return error;
    if (!data || !size)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = readOptions(count, options, values, ignored))
      return error;
    if (type != inputPtx || !link->text.empty()) // only one text is modelled
      return CUDA_ERROR_NOT_SUPPORTED;
    link->text.assign(static_cast<const char *>(data), size);
    link->text.resize(std::strlen(link->text.c_str())); // the size may include the terminating NUL
    const Loading loading = parsePtx(call.driver, call.device(), link->text);
    link->options.write(true, loading.words);
    if (loading.code)
      link->text.clear();
    return loading.code;
  });
}

CUresult cuLinkComplete(CUlinkState state, void **cubin, std::size_t *size) {
  return enter("cuLinkComplete", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Link> link;
    if (const CUresult error = call.find(call.driver.links, state, link))
      return error;
    if (!cubin || link->text.empty())
      return CUDA_ERROR_INVALID_VALUE;
    link->cubin = makeCubin(call.device(), link->text);
    link->options.write(false, "info : interpreted, not compiled");
    *cubin = link->cubin.data();
    if (size)
      *size = link->cubin.size();
    return CUDA_SUCCESS;
  });
}

CUresult cuLinkDestroy(CUlinkState state) {
  return enter("cuLinkDestroy", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<Link> link;
    if (const CUresult error = call.find(call.driver.links, state, link))
      return error;
    call.driver.links.remove(state);
    return CUDA_SUCCESS;
  });
}
