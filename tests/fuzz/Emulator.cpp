// SPDX-License-Identifier: Apache-2.0
#include "Emulator.h"

#include "CompiledModel.h"

namespace kiln::fuzz {

llvm::Expected<std::unique_ptr<Emulator>> Emulator::start(const std::string &script,
                                                          llvm::ArrayRef<ObjectFile> objects) {
  llvm::Expected<TemporaryFolder> folder = TemporaryFolder::make();
  if (!folder)
    return folder.takeError();
  llvm::Expected<std::unique_ptr<Runner>> runner = Runner::start(script, folder->path(), objects);
  if (!runner)
    return runner.takeError();
  return std::unique_ptr<Emulator>(new Emulator(std::move(*folder), std::move(*runner)));
}

llvm::Error Emulator::answer() {
  messages().send();
  const std::vector<char> words = messages().bytes();
  if (llvm::Error error = runner->check()) {
    const std::string said = llvm::toString(std::move(error));
    isBroken = said.find("qemu-") != said.npos && said.find(": Assertion `") != said.npos;
    return llvm::createStringError(said);
  }
  return words.empty() ? llvm::Error::success() : llvm::createStringError(std::string(words.begin(), words.end()));
}

llvm::Expected<CompiledModel::Buffers>
CompiledModel::Session::callEmulated(size_t entry, const interpreter::Extents &extents, const Buffers &inputs) {
  const EntryInterface &interface = model.report.model.entries[entry];
  const ArenaBytes sizes = arenaBytes(model.report.variants, entry);
  Messages &messages = model.emulator->messages();
  put(messages, Message::Call);
  messages.put(entry);
  messages.put(static_cast<std::uint64_t>(style.order));
  messages.put(style.workers);
  messages.put(style.poison);
  messages.put(sizes.fixed + style.workers * sizes.perWorker);
  std::vector<char> &states = held.front();
  messages.put(std::vector<char>(states.begin(), states.begin() + static_cast<std::ptrdiff_t>(interface.stateBytes)));
  messages.put(interface.symbols.size());
  for (const Symbol &symbol : interface.symbols)
    messages.put(static_cast<std::uint64_t>(extents.at(symbol.name)));
  messages.put(interface.arguments.size());
  for (const auto &[number, argument] : llvm::enumerate(interface.arguments)) {
    messages.put(static_cast<std::uint64_t>(argument.isOutput));
    if (argument.isOutput)
      messages.put(
          stored_bytes(argument.element, interpreter::elementCount(interpreter::evaluate(argument.shape, extents))));
    else
      messages.put(inputs[number]);
  }
  if (llvm::Error error = model.emulator->answer())
    return error;
  const std::vector<char> after = messages.bytes();
  std::copy(after.begin(), after.end(), states.begin());
  Buffers outputs;
  for (size_t i = inputs.size(); i < interface.arguments.size(); ++i)
    outputs.push_back(messages.bytes());
  if (!messages.isAlive())
    return llvm::createStringError("emulated program: truncated output");
  return outputs;
}

} // namespace kiln::fuzz
