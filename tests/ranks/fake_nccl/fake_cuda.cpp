// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "fake_cuda.h"
#include "fake_nccl.h"

struct CUstream_st {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> work; // the first one is running
  bool isOver = false;
  cudaStreamCaptureStatus captured = cudaStreamCaptureStatusNone;
  std::thread thread{[this] { run(); }};

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return isOver || !work.empty(); });
      if (work.empty())
        return;
      const std::function<void()> first = work.front();
      lock.unlock();
      first();
      lock.lock();
      work.pop_front();
      changed.notify_all();
    }
  }
};

struct CUevent_st {
  std::atomic<unsigned> recorded = 0;
  std::shared_ptr<std::atomic<unsigned>> done = std::make_shared<std::atomic<unsigned>>(0); // outlives the event
};

namespace {

thread_local cudaError_t lastError = cudaSuccess;
std::atomic<cudaError_t> broken = cudaSuccess;
std::mutex memoryMutex;
std::map<const char *, size_t> blocks; // of the device's memory

cudaError_t keep(cudaError_t error) {
  if (error)
    lastError = error;
  return error;
}

} // namespace

namespace kiln::test {

void breakEvents(cudaError_t error) { broken = error; }

void capture(cudaStream_t stream) { stream->captured = cudaStreamCaptureStatusActive; }

void enqueue(cudaStream_t stream, std::function<void()> work) {
  const std::lock_guard lock(stream->mutex);
  stream->work.push_back(std::move(work));
  stream->changed.notify_all();
}

bool isOnDevice(const void *memory, size_t bytes) {
  const std::lock_guard lock(memoryMutex);
  const auto next = blocks.upper_bound(static_cast<const char *>(memory));
  if (next == blocks.begin())
    return false;
  const auto &[begin, length] = *std::prev(next);
  return static_cast<const char *>(memory) + bytes <= begin + length;
}

} // namespace kiln::test

cudaError_t cudaGetLastError(void) { return std::exchange(lastError, cudaSuccess); }
const char *cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorLaunchFailure ? "unspecified launch failure" : "another error";
}
cudaError_t cudaGetDeviceCount(int *count) {
  *count = 3;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return keep(device < 3 ? cudaSuccess : cudaErrorInvalidValue); }
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  kiln::test::enqueue(stream, [=] { cudaMemcpy(to, from, bytes, kind); });
  return cudaSuccess;
}
cudaError_t cudaMalloc(void **memory, size_t bytes) {
  const std::lock_guard lock(memoryMutex);
  *memory = ::operator new(bytes);
  blocks[static_cast<char *>(*memory)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void *memory) {
  const std::lock_guard lock(memoryMutex);
  blocks.erase(static_cast<char *>(memory));
  ::operator delete(memory);
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  {
    const std::lock_guard lock(stream->mutex);
    stream->isOver = true;
    stream->changed.notify_all();
  }
  stream->thread.join();
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
  *status = stream->captured;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(stream->mutex);
  return keep(stream->work.empty() ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  std::unique_lock lock(stream->mutex);
  stream->changed.wait(lock, [&] { return stream->work.empty(); });
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *context) {
  kiln::test::enqueue(stream, [=] { function(context); });
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
  *event = new CUevent_st;
  return keep(flags == cudaEventDisableTiming ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const unsigned number = ++event->recorded;
  kiln::test::enqueue(stream, [number, done = event->done] { *done = number; });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (broken)
    return keep(broken);
  return keep(*event->done == event->recorded ? cudaSuccess : cudaErrorNotReady);
}
