#pragma once

// The exchanges that a worker on this machine writes into a page of shared memory: see
// wire/exchange_board.h.

#include <cstdint>
#include <memory>

#include "common/net/loop.h"
#include "common/net/polled.h"
#include "common/replication/answer.h"
#include "common/wire/exchange_board.h"

namespace dtf::host {

// The effects of an exchange, by call or by page.
class BoardExchanges {
 public:
  virtual ~BoardExchanges() = default;
  // Errors: throws for a gradient that was not given; an answer for those of the shard.
  virtual void push(const wire::BoardRequest& request, replication::PushCallback reply) = 0;
  // The reply that names the parameters; by_call if they have to travel.
  virtual wire::BoardReply replyOf(const replication::PushReply& reply) = 0;
};

// Serves the page of one worker's session.
// Owns: the board.
// Borrows: `loop`, `exchanges` (must outlive this).
// Threads: loop-thread only.
class BoardService final : public net::Polled {
 public:
  // `requests`: the worker's page.
  // Errors: kUnavailable with the kernel's reason.
  BoardService(net::Loop& loop, BoardExchanges& exchanges,
               std::shared_ptr<const MappedMemory> requests);
  ~BoardService() noexcept(false) override;
  BoardService(const BoardService&) = delete;
  BoardService& operator=(const BoardService&) = delete;

  // The page for the replies; null: this loop doesn't poll, so no request would be seen.
  const SharedMemory* replies() const { return is_polled_ ? &board_->memory() : nullptr; }
  // A call of the worker has come: what it had written before comes that way.
  void skip() { board_->skip(); }

  bool poll() override;
  bool beforeSleep() override;

 private:
  bool serve();

  net::Loop& loop_;
  BoardExchanges& exchanges_;
  const std::shared_ptr<wire::ReplyBoard>
      board_;  // answers that come later ask whether it is there
  const bool is_polled_;
};

}  // namespace dtf::host
