#pragma once

// An exchange without a message, for a worker and a shard's host on one machine that share the
// memory of their arenas. The worker writes the request into a page of its own, and the host writes
// the reply into another. Each reads the other's page while its loop polls (net/polled.h). Only a
// message wakes a sleeping thread: the worker sends the exchange as a call if the host doesn't
// poll, or if no reply comes while it polls itself. Any exchange may be repeated in this way, so
// the pages need no rule for lost requests and replies.
//
// One process alone writes a page. The first word is twice the number of the last record, and odd
// while a record is being written, so a reader sees a whole record or none (a sequence lock).

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/shared_memory.h"
#include "common/replication/phase_times.h"
#include "common/replication/step_state.h"

namespace dtf::wire {

inline constexpr size_t kBoardBytes = 4096;
inline constexpr size_t kBoardWords = 20;  // of a record, at most
// The most freed arenas that a reply names. Others wait for the next reply.
inline constexpr size_t kBoardGoneMax = 4;

// The names and numbers that come with a gradient. Value type.
struct Exchange {
  uint64_t step = 0;
  uint32_t batch = 0;
  float loss = 0;
  uint64_t epoch = 0;               // of the parameters that it was computed from
  uint64_t progress = 0;            // bounded: the worker's clock, as last assigned by ps/0
  replication::PhaseTimes times{};  // of the step before; without own time: not sent
};

// The fields of PsData.exchange that a gradient in shared memory needs.
struct BoardRequest {
  Exchange exchange{};
  uint64_t gradient_key = 0;
  uint64_t in_use = 0;
};

// The fields of the reply.
struct BoardReply {
  bool by_call = false;  // the page has no room for this reply, or it is an error: call
  replication::StepState state{};
  uint64_t key = 0;                            // 0: the reply has no parameters
  std::array<uint64_t, kBoardGoneMax> gone{};  // 0: none
};

namespace board {

using Words = std::array<uint64_t, kBoardWords>;

// The writing end of a page.
// Owns: the page, which another process reads.
// Threads: thread-compatible.
class Writer {
 public:
  // Errors: kUnavailable with the kernel's reason.
  Writer();
  const SharedMemory& memory() const { return *memory_; }
  void write(uint64_t number, const Words& words);
  // Sets a word of the page that is no part of the records.
  void setFlag(bool flag);

 private:
  std::unique_ptr<SharedMemory> memory_;
};

// The reading end of a page.
// Owns: the mapping of another process's page.
// Threads: thread-compatible.
class Reader {
 public:
  // `memory`: of kBoardBytes at least.
  explicit Reader(std::shared_ptr<const MappedMemory> memory);
  // Returns the number of the last complete record; 0: none yet.
  uint64_t number() const;
  // Copies the record to `words` and returns its number; 0: there is none, or it is being written.
  uint64_t read(Words& words) const;
  bool flag() const;

 private:
  std::shared_ptr<const MappedMemory> memory_;
};

}  // namespace board

// The worker's end.
// Owns: its page, the mapping of the host's.
// Threads: thread-compatible.
class RequestBoard {
 public:
  // Errors: kUnavailable with the kernel's reason.
  RequestBoard() = default;
  const SharedMemory& memory() const { return requests_.memory(); }
  void setReplies(std::shared_ptr<const MappedMemory> memory) {
    replies_.emplace(std::move(memory));
  }

  // After setReplies(): returns whether the host's loop reads requests.
  bool isPolled() const { return replies_->flag(); }
  void post(const BoardRequest& request);
  // Returns the reply to the last request; nullopt: none yet.
  // Errors: kBadData for an unknown outcome.
  std::optional<BoardReply> takeReply() const;

 private:
  board::Writer requests_;
  std::optional<board::Reader> replies_;
  uint64_t number_ = 0;  // of the last request
};

// The host's end. It takes a request once, one at a time.
// Owns: its page, the mapping of the worker's.
// Threads: thread-compatible.
class ReplyBoard {
 public:
  // Errors: kUnavailable with the kernel's reason.
  explicit ReplyBoard(std::shared_ptr<const MappedMemory> requests)
      : requests_(std::move(requests)) {}
  const SharedMemory& memory() const { return replies_.memory(); }

  // Shows the worker whether this process reads requests. After setPolled(false), call take() once
  // more: a request may have come before the worker saw the change.
  void setPolled(bool polled);
  // Returns the next request; nullopt: there is no new one, or the last one has no reply yet.
  std::optional<BoardRequest> take();
  // Drops the requests written so far, taken or not: the worker has made a call instead.
  void skip();
  // Returns the number of the request that was taken last.
  uint64_t taken() const { return taken_; }
  // Returns whether request `number` was taken, and neither answered nor skipped since.
  bool awaits(uint64_t number) const { return !answered_ && number == taken_; }
  // Writes the reply to request `number`; no effect unless awaits(number).
  void answer(uint64_t number, const BoardReply& reply);

 private:
  const board::Reader requests_;
  board::Writer replies_;
  bool polled_ = false;
  uint64_t taken_ = 0;
  bool answered_ = true;
};

}  // namespace dtf::wire
