#pragma once

// A worker's exchanges with one shard over a page of shared memory: see wire/exchange_board.h.

#include <kj/async.h>

#include <memory>
#include <optional>

#include "common/net/loop.h"
#include "common/net/polled.h"
#include "common/wire/exchange_board.h"

namespace dtf::wire {

// Makes exchanges over a board.
// Owns: the board.
// Borrows: `loop` (must outlive this).
// Threads: loop-thread only.
class BoardClient final : public net::Polled {
 public:
  BoardClient(net::Loop& loop, std::unique_ptr<RequestBoard> board);
  // Rejects an exchange under way, with the error of a broken connection.
  ~BoardClient() noexcept(false) override;
  BoardClient(const BoardClient&) = delete;
  BoardClient& operator=(const BoardClient&) = delete;

  // Returns whether to use the board: the host reads exchanges now. After an exchange that is made
  // twice, without a reply in time or with one that asks for a call, it also returns false for some
  // of the next ones.
  bool isReady();
  // Makes one exchange at a time. nullopt: the caller must make the call.
  // Errors: as a promise: kBadData for an invalid reply.
  kj::Promise<std::optional<BoardReply>> exchange(const BoardRequest& request);

  bool poll() override;
  bool beforeSleep() override;

 private:
  void missed();

  static constexpr uint32_t kMissesMax = 6;  // then one exchange in 64 uses the board

  net::Loop& loop_;
  const std::unique_ptr<RequestBoard> board_;
  const bool is_polled_;                                              // this loop polls
  kj::Own<kj::PromiseFulfiller<std::optional<BoardReply>>> waiting_;  // null: no exchange
  uint32_t misses_ = 0;    // exchanges that were made twice, one after the other
  uint32_t left_out_ = 0;  // the next exchanges that are made by call
};

}  // namespace dtf::wire
