#pragma once

// Serves the exchanges that a worker on this machine writes into a page of shared memory, see
// wire/exchange_board.h.

#include <cstdint>
#include <memory>

#include "common/net/loop.h"
#include "common/net/polled.h"
#include "common/replication/answer.h"
#include "common/wire/exchange_board.h"

namespace dtf::host {

// The shard's side of an exchange: it takes the gradient, and returns the parameters.
class BoardExchanges {
 public:
  virtual ~BoardExchanges() = default;
  // Starts the exchange of `request`. Calls `reply` before it returns, or later.
  // Errors: throws kBadData for a gradient arena that the worker has not given. The shard's errors
  // come as the answer.
  virtual void push(const wire::BoardRequest& request, replication::PushCallback reply) = 0;
  // Returns the record for the worker's page. `by_call` is set if the parameters must be sent.
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

  // Returns the page of replies; null if this loop doesn't poll, and would never read a request.
  const SharedMemory* replies() const { return is_polled_ ? &board_->memory() : nullptr; }
  // Drops the requests written so far: the worker has made a call instead.
  void skip() { board_->skip(); }

  bool poll() override;
  bool beforeSleep() override;

 private:
  bool serve();

  net::Loop& loop_;
  BoardExchanges& exchanges_;
  const std::shared_ptr<wire::ReplyBoard> board_;  // pending replies hold it weakly
  const bool is_polled_;
};

}  // namespace dtf::host
