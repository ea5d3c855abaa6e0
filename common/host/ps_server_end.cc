// Second part of PsServer: the end of the job on this host.

#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"
#include "common/host/ps_server.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/wire/ps/ps_link.h"

namespace dtf::host {

namespace {

// Time for the last replies to leave, and for the workers to close their connections first.
constexpr Duration kLingerMax = std::chrono::seconds(2);
constexpr Duration kLingerAfterSignal = std::chrono::milliseconds(200);

}  // namespace

void PsServer::end(std::optional<Error> error, int code, Duration open) {
  DTF_CHECK(on_ended_ != nullptr && (!error || code == 0));  // an error has its own code
  if (ending_) return on_ended_();  // a second signal does not wait for anyone
  ending_ = true;
  error_ = std::move(error);
  exit_code_ = code;
  const bool by_signal = code > 128;
  std::optional<Error> reason = error_;
  if (by_signal && !reason)
    reason = Error(ErrorCode::kUnavailable,
                   fmt::format("{} was ended by signal {}", options_.name(), code - 128));
  if (reason) {
    failing_->reject(net::toKj(*reason));
    host_.failAll(*reason);
  }
  const Duration linger = by_signal ? kLingerAfterSignal : kLingerMax;
  if (open == Duration{0}) return leave(linger);
  leaving_ = control_.timer()
                 .afterDelay(net::toKj(open))
                 .then([this, linger] { leave(linger); })
                 .eagerlyEvaluate(nullptr);
}

void PsServer::leaveWith(const Error& error) {
  DTF_CHECK(on_ended_ != nullptr);
  if (ending_) return;
  ending_ = true;
  error_ = error;
  failing_->reject(net::toKj(wire::processLeft(error)));
  leave(kLingerMax);
}

// Waits until the workers have read the last replies and closed their connections, for `linger` at
// most.
void PsServer::leave(Duration linger) {
  DTF_CHECK(ending_ && on_ending_ != nullptr);
  on_ending_();
  const TimePoint until = clock_.now() + linger;
  struct Linger {
    static kj::Promise<void> run(PsServer& server, TimePoint until) {
      if (server.connections_.size() == 0 || server.clock_.now() >= until) {
        server.on_ended_();
        return kj::READY_NOW;
      }
      return server.control_.timer().afterDelay(5 * kj::MILLISECONDS).then([&server, until] {
        return run(server, until);
      });
    }
  };
  lingering_ = Linger::run(*this, until).eagerlyEvaluate(nullptr);
}

}  // namespace dtf::host
