#pragma once

// The world of the tasks in fuzz_serve.cc: queues that run when the program allows it, a loop with
// connections that end at these tasks or at a hostile one, and an honest client.

#include <kj/async.h>

#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/engine/device_queue.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/kernel.h"
#include "common/serving/part_server.h"
#include "common/wire/connection_set.h"
#include "common/wire/session/session_calls.h"
#include "tests/fuzz/fuzz_loop.h"
#include "tests/fuzz/memory_stream.h"

namespace dtf::fuzz {

inline constexpr size_t kServing = 2;  // worker/0 and worker/1; worker/2 is hostile
inline constexpr TaskId servingTask(size_t which) {
  return {JobKind::kWorker, static_cast<uint32_t>(which)};
}
inline constexpr TaskId kHostile = servingTask(kServing);
Incarnation incarnationOf(TaskId task);

// Limits of each serving task: small, so that a program reaches them.
serving::ServeLimits serveLimits();

// All queues of both tasks.
// Owns: the posted jobs that have not run. Outlives the queues.
// Threads: one.
class HeldQueues {
 public:
  std::unique_ptr<engine::DeviceQueue> make();
  void hold(bool held) { held_ = held; }
  bool areHeld() const { return held_; }
  // Returns false if there was nothing to run, or the queues are held.
  bool run();
  // Runs one job of queue `which`, even if the queues are held.
  void runOne(size_t which);

 private:
  class Queue;
  std::list<Queue*> queues_;
  bool held_ = false;
};

// The loop of both tasks, their clients and the hostile task.
// Owns: connections to the hostile task. Borrows: `reactor`, the servers of tell().
// Threads: one.
class ServeLoop final : public FuzzLoop {
 public:
  // The behaviour of the hostile task towards the senders of tensors.
  enum class Manner : uint8_t {
    kTakes,
    kOver,
    kRefuses,
    kNeverAnswers,
    kNeverGreets,
    kOtherProcess,
    kRefusesHello,
    kHoldsNothing,
    kFrozen,      // its host accepts, and nothing is read
    kNobodyThere  // no listener
  };
  static constexpr uint8_t kManners = 10;

  using FuzzLoop::FuzzLoop;
  ~ServeLoop() noexcept override;

  void tell(size_t which, serving::PartServer* server) { servers_[which] = server; }
  Manner& manner() { return manner_; }
  // A new connection to a task.
  kj::Own<net::MessageStream> streamTo(size_t which);
  kj::Promise<kj::Own<net::MessageStream>> connect(std::string host, uint16_t port,
                                                   net::ConnectOptions options,
                                                   const net::Limits& limits,
                                                   std::shared_ptr<net::BufferPool> pool) override;
  // Ends its connections; to be called before the reactor goes.
  void close();

 private:
  std::array<serving::PartServer*, kServing> servers_{};
  Manner manner_ = Manner::kTakes;
  std::unique_ptr<wire::ConnectionSet> hostile_;
  std::vector<kj::Own<net::MessageStream>> frozen_;
};

// Options of a serving task on `queues`, which must outlive it.
serving::PartServerOptions serveOptions(size_t which, HeldQueues& queues);
cluster::Address serveAddress(size_t which);

// A session over both tasks: its step reads variables of both, adds to one, and sends a tensor from
// one to the other.
// Owns: its connections. Borrows: `loop`.
// Threads: one.
class HonestClient {
 public:
  static constexpr uint64_t kSession = 0x60d;  // its number, which any client may know

  // `settle` runs everything that can run.
  HonestClient(ServeLoop& loop, std::function<void()> settle);

  // Runs a step, which is answered at once. Returns true for the right values, false if a task has
  // no room. Anything else ends the program.
  bool step();

 private:
  template <class T>
  std::optional<T> await(kj::Promise<T> promise);
  void check(const engine::StepResult& result, float x);

  const std::function<void()> settle_;
  wire::SessionCalls calls_;
  uint64_t steps_ = 0, well_ = 0;
};

}  // namespace dtf::fuzz
