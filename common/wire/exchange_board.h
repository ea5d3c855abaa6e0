#pragma once

// An exchange without a message, for a worker and a shard's host on one machine whose arenas are in
// shared memory anyway: the worker writes the request into a page of its own, the host its reply
// into another, and each looks at the other's while its loop polls (net/polled.h). Waking a
// sleeping thread takes a message: a worker sends its exchange as a call if the host doesn't poll,
// and if no reply comes while it polls itself. That is the repeat that any exchange allows, so
// neither page needs a rule of its own for what is lost.
//
// A page is written by one process alone. Its first word counts what was written, doubled; it is
// odd meanwhile, so a reader sees a whole record or none (a sequence lock).

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
// Arenas that a reply may say are gone. Others wait for the next reply.
inline constexpr size_t kBoardGoneMax = 4;

// The names and numbers that come with a gradient. Value type.
struct Exchange {
  uint64_t step = 0;
  uint32_t batch = 0;
  float loss = 0;
  uint64_t epoch = 0;               // of the parameters that it was computed from
  uint64_t progress = 0;            // bounded: of the worker, as ps/0 has said it last
  replication::PhaseTimes times{};  // of the step before; without own time: not sent
};

// The fields of PsData.exchange that a gradient in shared memory needs.
struct BoardRequest {
  Exchange exchange{};
  uint64_t gradient_key = 0;
  uint64_t in_use = 0;
};

// Those of its reply.
struct BoardReply {
  bool by_call = false;  // the page has no room for this reply, or it is an error: call
  replication::StepState state{};
  uint64_t key = 0;                            // 0: the reply has no parameters
  std::array<uint64_t, kBoardGoneMax> gone{};  // 0: none
};

namespace board {

using Words = std::array<uint64_t, kBoardWords>;

// Owns: the page, which another process reads.
// Threads: thread-compatible.
class Writer {
 public:
  // Errors: kUnavailable with the kernel's reason.
  Writer();
  const SharedMemory& memory() const { return *memory_; }
  void write(uint64_t number, const Words& words);
  // A word beside the records.
  void setFlag(bool flag);

 private:
  std::unique_ptr<SharedMemory> memory_;
};

// Owns: the mapping of another process's page.
// Threads: thread-compatible.
class Reader {
 public:
  // `memory`: of kBoardBytes at least.
  explicit Reader(std::shared_ptr<const MappedMemory> memory);
  // The number of the record that is there; 0: none yet.
  uint64_t number() const;
  // Fills `words` and returns its number; 0: none, or it is being written.
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

  // After setReplies(): whether the host's loop looks for requests.
  bool isPolled() const { return replies_->flag(); }
  void post(const BoardRequest& request);
  // The reply to the last request; nullopt: none yet.
  // Errors: kBadData for an outcome that is none.
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

  // Tells the worker whether this side looks. After setPolled(false) look once more.
  void setPolled(bool polled);
  // nullopt: no new one.
  std::optional<BoardRequest> take();
  // Neither takes nor answers the requests written so far: they have come as calls.
  void skip();
  // Returns the number of the request that was taken last.
  uint64_t taken() const { return taken_; }
  // Whether that request was taken, and neither answered nor skipped since.
  bool awaits(uint64_t number) const { return !answered_ && number == taken_; }
  // Has no effect if it isn't awaited.
  void answer(uint64_t number, const BoardReply& reply);

 private:
  const board::Reader requests_;
  board::Writer replies_;
  bool polled_ = false;
  uint64_t taken_ = 0;
  bool answered_ = true;
};

}  // namespace dtf::wire
