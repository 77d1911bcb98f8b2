// SPDX-License-Identifier: Apache-2.0
//
// Modules, and the functions that a client gets from them.
#include <cstring>

#include "Images.h"
#include "Queue.h"

using namespace kiln::fake;

namespace {

CUresult load(Call &call, CUmodule *handle, const void *image, const JitOptions &options) {
  if (!handle || !image)
    return CUDA_ERROR_INVALID_VALUE;
  *handle = nullptr;
  if (const CUresult error = call.allowUnsafe())
    return error;
  std::string_view text;
  Loading loading;
  if (std::strncmp(static_cast<const char *>(image), "\177ELF", 4) == 0)
    loading.code = CUDA_ERROR_NO_BINARY_FOR_GPU, loading.words = "code for a real GPU";
  else if (isCubin(image))
    loading = openCubin(call.device(), image, text);
  else
    text = static_cast<const char *>(image);
  if (!loading.code)
    loading = parsePtx(call.driver, call.device(), text);
  options.write(false, loading.code ? "" : "info : interpreted, not compiled");
  options.write(true, loading.words);
  if (loading.code)
    return loading.code;
  auto module = std::make_shared<LoadedImage>();
  module->context = call.context;
  module->code.emplace(*loading.module, call.context->memory);
  module->target = loading.head.target;
  *handle = call.driver.modules.add(std::move(module));
  return CUDA_SUCCESS;
}

} // namespace

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  return enter("cuModuleLoadData", Needs::context, [&](Call &call) { return load(call, module, image, {}); });
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options, void **values) {
  return enter("cuModuleLoadDataEx", Needs::context, [&](Call &call) -> CUresult {
    JitOptions read;
    if (const CUresult error = readOptions(count, options, values, read))
      return error;
    return load(call, module, image, read);
  });
}

CUresult cuModuleUnload(CUmodule handle) {
  return enter("cuModuleUnload", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<LoadedImage> module;
    if (const CUresult error = call.find(call.driver.modules, handle, module))
      return error;
    if (const CUresult error = call.allowUnsafe())
      return error;
    if (const CUresult error = waitFor(call.driver, *call.context))
      return error;
    module->unloaded = true; // a graph may still refer to it
    call.driver.functions.removeIf([&](const Function &function) { return function.module == module; });
    call.driver.modules.remove(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name) {
  return enter("cuModuleGetFunction", Needs::context, [&](Call &call) -> CUresult {
    std::shared_ptr<LoadedImage> module;
    if (!function || !name)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = call.find(call.driver.modules, handle, module))
      return error;
    const kiln::ptx::Entry *entry = module->code->module().find(name);
    if (!entry)
      return CUDA_ERROR_NOT_FOUND;
    CUfunction &known = module->functions[name]; // attributes belong to the function, not to the handle
    if (!known) {
      auto made = std::make_shared<Function>();
      made->context = call.context;
      made->module = module;
      made->entry = entry;
      made->maxDynamicShared = 49152 - std::min(49152U, entry->staticShared);
      known = call.driver.functions.add(std::move(made));
    }
    *function = known;
    return CUDA_SUCCESS;
  });
}
