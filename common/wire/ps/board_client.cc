#include "common/wire/ps/board_client.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/net/error_bridge.h"

namespace dtf::wire {

BoardClient::BoardClient(net::Loop& loop, std::unique_ptr<RequestBoard> board)
    : loop_(loop), board_(std::move(board)), is_polled_(loop_.addPolled(*this)) {}

BoardClient::~BoardClient() noexcept(false) {
  if (is_polled_) loop_.removePolled(*this);
  if (waiting_.get() != nullptr)
    waiting_->reject(
        net::toKj(net::asio::error::not_connected, "the connection of the shared memory ended"));
}

bool BoardClient::isReady() {
  if (!is_polled_ || !board_->isPolled()) return false;
  if (left_out_ == 0) return true;
  --left_out_;
  return false;
}

kj::Promise<std::optional<BoardReply>> BoardClient::exchange(const BoardRequest& request) {
  DTF_CHECK(waiting_.get() == nullptr);
  auto pair = kj::newPromiseAndFulfiller<std::optional<BoardReply>>();
  waiting_ = kj::mv(pair.fulfiller);
  board_->post(request);
  return kj::mv(pair.promise);
}

bool BoardClient::poll() {
  if (waiting_.get() == nullptr) return false;
  std::optional<BoardReply> reply;
  try {
    reply = board_->takeReply();
  } catch (const Error& error) {
    std::exchange(waiting_, nullptr)->reject(net::toKj(error));
    return true;
  }
  if (!reply) return false;
  if (reply->by_call)
    missed();
  else
    misses_ = 0;
  std::exchange(waiting_, nullptr)->fulfill(std::optional<BoardReply>(reply));
  return true;
}

void BoardClient::missed() {
  misses_ = std::min(misses_ + 1, kMissesMax);
  left_out_ = (uint32_t{1} << misses_) - 1;
}

bool BoardClient::beforeSleep() {
  if (waiting_.get() == nullptr) return false;
  if (poll()) return true;
  missed();
  std::exchange(waiting_, nullptr)->fulfill(std::nullopt);
  return true;
}

}  // namespace dtf::wire
