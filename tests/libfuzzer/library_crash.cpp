// SPDX-License-Identifier: Apache-2.0
// An input is sent to the child as its size and its bytes; the child returns a byte when the work on it is done. The
// child's signal handler examines the innermost frame outside the C library, which raises the signals of abort().
#include "library_crash.h"
#include "require.h"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <iterator>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln_fuzz {
namespace {

constexpr int crashedInLibrary = 77; // exit statuses of the child
constexpr int crashedElsewhere = 78;
constexpr unsigned mostSeconds = 10;

/// Returns the file that contains an address of code, or null.
const char *fileOf(const void *address) {
  Dl_info info;
  return dladdr(address, &info) ? info.dli_fname : nullptr;
}

void judge(int) {
  const char *own = fileOf(reinterpret_cast<const void *>(&judge));
  void *frames[64];
  const int count = backtrace(frames, std::size(frames));
  bool isBelowHandler = false; // the handler's frames come first, then the kernel's frame
  for (int i = 0; i < count; ++i) {
    const char *file = fileOf(frames[i]);
    const bool isOwn = file && std::strcmp(file, own) == 0;
    const bool isSystem = !file || std::strstr(file, "/libc.so") || std::strstr(file, "/libpthread");
    if (!isBelowHandler)
      isBelowHandler = !isOwn;
    else if (!isSystem)
      _exit(isOwn ? crashedElsewhere : crashedInLibrary);
  }
  _exit(crashedElsewhere);
}

bool give(std::FILE *to, const void *bytes, size_t size) { return std::fwrite(bytes, 1, size, to) == size; }

bool take(std::FILE *from, void *bytes, size_t size) { return std::fread(bytes, 1, size, from) == size; }

[[noreturn]] void serve(std::FILE *inputs, std::FILE *answers, const LibraryProbe::Work &work) {
  struct sigaction action = {};
  action.sa_handler = judge;
  action.sa_flags = SA_ONSTACK; // a stack overflow leaves no room for the handler
  for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP, SIGALRM})
    sigaction(signal, &action, nullptr);
  size_t size = 0;
  while (take(inputs, &size, sizeof size)) {
    std::string input(size, 0);
    if (!take(inputs, input.data(), size))
      break;
    alarm(mostSeconds);
    work(input);
    alarm(0);
    give(answers, ".", 1);
    std::fflush(answers);
  }
  _exit(0);
}

} // namespace

bool LibraryProbe::crashes(const std::string &input) {
  if (child < 0)
    start();
  const size_t size = input.size();
  char answer;
  if (give(inputs, &size, sizeof size) && give(inputs, input.data(), size) && std::fflush(inputs) == 0 &&
      take(answers, &answer, 1))
    return false;
  const int status = stop();
  return WIFEXITED(status) && WEXITSTATUS(status) == crashedInLibrary;
}

void LibraryProbe::start() {
  std::signal(SIGPIPE, SIG_IGN); // a dead child is recognised by failing writes
  void *frame;
  backtrace(&frame, 1); // loads a library, which a handler must not do
  int in[2], out[2];
  require(pipe(in) == 0 && pipe(out) == 0, "pipes");
  child = fork();
  require(child >= 0, "a child process");
  if (child == 0) {
    close(in[1]);
    close(out[0]);
    serve(fdopen(in[0], "r"), fdopen(out[1], "w"), work);
  }
  close(in[0]);
  close(out[1]);
  inputs = fdopen(in[1], "w");
  answers = fdopen(out[0], "r");
}

/// Stops the child. Returns its status for waitpid().
int LibraryProbe::stop() {
  int status = 0;
  if (child < 0)
    return status;
  std::fclose(inputs);
  std::fclose(answers);
  waitpid(child, &status, 0);
  child = -1;
  return status;
}

} // namespace kiln_fuzz
