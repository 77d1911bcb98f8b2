// SPDX-License-Identifier: Apache-2.0
#include "compiler/tuner/LinkedObjects.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"
#include "llvm/Support/MemoryBuffer.h"

namespace kiln {

using namespace llvm::orc;

struct LinkedObjects::Session {
  explicit Session(std::unique_ptr<ExecutorProcessControl> control) : session(std::move(control)), layer(session) {}
  ~Session() { llvm::consumeError(session.endSession()); }

  ExecutionSession session;
  ObjectLinkingLayer layer;
  JITDylib *code = nullptr;
};

LinkedObjects::LinkedObjects(std::unique_ptr<Session> session) : session(std::move(session)) {}
LinkedObjects::LinkedObjects(LinkedObjects &&) = default;
LinkedObjects::~LinkedObjects() = default;

llvm::Expected<LinkedObjects> LinkedObjects::link(llvm::ArrayRef<llvm::StringRef> objects,
                                                  llvm::ArrayRef<std::pair<llvm::StringRef, void *>> symbols) {
  // In-place dispatch: linking must not start a thread, which would share a measured CPU.
  auto control = SelfExecutorProcessControl::Create(nullptr, std::make_unique<InPlaceTaskDispatcher>());
  if (!control)
    return control.takeError();
  auto session = std::make_unique<Session>(std::move(*control));
  JITDylib &code = session->session.createBareJITDylib("objects");
  session->code = &code;
  SymbolMap known;
  for (auto [name, address] : symbols)
    known[session->session.intern(name)] = {ExecutorAddr::fromPtr(address),
                                            llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  if (llvm::Error error = code.define(absoluteSymbols(std::move(known))))
    return error;
  auto process = DynamicLibrarySearchGenerator::GetForCurrentProcess('\0'); // memset, memcpy
  if (!process)
    return process.takeError();
  code.addGenerator(std::move(*process));
  for (auto [number, object] : llvm::enumerate(objects)) {
    const std::string name = std::to_string(number) + ".o"; // its initialisers are registered by this name
    if (llvm::Error error = session->layer.add(code, llvm::MemoryBuffer::getMemBufferCopy(object, name)))
      return error;
  }
  return LinkedObjects(std::move(session));
}

llvm::Expected<void *> LinkedObjects::lookup(llvm::StringRef symbol) {
  auto found =
      session->session.lookup({{session->code, JITDylibLookupFlags::MatchAllSymbols}}, session->session.intern(symbol));
  if (!found)
    return found.takeError();
  return found->getAddress().toPtr<void *>();
}

} // namespace kiln
