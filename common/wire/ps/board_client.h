#pragma once

// A worker's exchanges with one shard by its board: see wire/exchange_board.h.

#include <kj/async.h>

#include <memory>
#include <optional>

#include "common/net/loop.h"
#include "common/net/polled.h"
#include "common/wire/exchange_board.h"

namespace dtf::wire {

// Owns: the board.
// Borrows: `loop` (must outlive this).
// Threads: loop-thread only.
class BoardClient final : public net::Polled {
 public:
  BoardClient(net::Loop& loop, std::unique_ptr<RequestBoard> board);
  // An exchange under way is rejected as one whose connection broke.
  ~BoardClient() noexcept(false) override;
  BoardClient(const BoardClient&) = delete;
  BoardClient& operator=(const BoardClient&) = delete;

  // Whether an exchange would be seen now. False now and then for a host that hasn't answered in
  // time: each such exchange is made twice.
  bool isReady();
  // One at a time. nullopt: make the call.
  // Errors: as a promise, kBadData for a reply that is none.
  kj::Promise<std::optional<BoardReply>> exchange(const BoardRequest& request);

  bool poll() override;
  bool beforeSleep() override;

 private:
  static constexpr uint32_t kMissesMax = 6;  // then one exchange of 64 tries

  net::Loop& loop_;
  const std::unique_ptr<RequestBoard> board_;
  const bool is_polled_;                                              // this loop polls
  kj::Own<kj::PromiseFulfiller<std::optional<BoardReply>>> waiting_;  // null: no exchange
  uint32_t misses_ = 0;    // exchanges without a reply in time, one after the other
  uint32_t left_out_ = 0;  // exchanges that are still to be made by call
};

}  // namespace dtf::wire
