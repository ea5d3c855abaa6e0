#include "common/host/board_service.h"

#include <optional>
#include <utility>
#include <variant>

#include "common/base/error.h"

namespace dtf::host {

BoardService::BoardService(net::Loop& loop, BoardExchanges& exchanges,
                           std::shared_ptr<const MappedMemory> requests)
    : loop_(loop),
      exchanges_(exchanges),
      board_(std::make_shared<wire::ReplyBoard>(std::move(requests))),
      is_polled_(loop_.addPolled(*this)) {}

BoardService::~BoardService() noexcept(false) {
  if (is_polled_) loop_.removePolled(*this);
}

bool BoardService::poll() {
  board_->setPolled(true);
  return serve();
}

bool BoardService::beforeSleep() {
  board_->setPolled(false);
  return serve();
}

bool BoardService::serve() {
  const std::optional<wire::BoardRequest> request = board_->take();
  if (!request) return false;
  // `exchanges_` lives as long as this does, which owns the board with its answers.
  const auto reply = [this, board = std::weak_ptr(board_),
                      number = board_->taken()](replication::PushAnswer answer) {
    const auto there = board.lock();
    if (there == nullptr || !there->awaits(number)) return;
    const auto* const pushed = std::get_if<replication::PushReply>(&answer);
    there->answer(number, pushed != nullptr ? exchanges_.replyOf(*pushed)
                                            : wire::BoardReply{.by_call = true});
  };
  try {
    exchanges_.push(*request, reply);
  } catch (const Error&) {  // the worker gets it when it calls
    board_->answer(board_->taken(), {.by_call = true});
  }
  return true;
}

}  // namespace dtf::host
