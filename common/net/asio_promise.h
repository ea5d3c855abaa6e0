#pragma once

// Any Asio operation as a kj promise.

#include <kj/async.h>

#include <memory>
#include <string>
#include <utility>

#include "common/net/asio.h"
#include "common/net/error_bridge.h"
#include "common/net/event_port.h"

namespace dtf::net {

// `start` begins the operation; its argument is a completion handler (error_code, T). A dropped
// promise only detaches: the operation goes on, so its memory must be owned by the handler that
// `start` passes to Asio.
template <class T>
class AsioOperation {
 public:
  template <class Start>
  AsioOperation(kj::PromiseFulfiller<T>& fulfiller, AsioEventPort& port, std::string what,
                Start&& start)
      : fulfiller_(fulfiller), self_(std::make_shared<AsioOperation*>(this)) {
    start([self = self_, &port, what = std::move(what)](const error_code& ec, T value) {
      if (*self == nullptr) return;
      AsioEventPort::Io io(port);
      if (ec) return (*self)->fulfiller_.reject(toKj(ec, what));
      (*self)->fulfiller_.fulfill(std::move(value));
    });
  }
  ~AsioOperation() { *self_ = nullptr; }
  AsioOperation(const AsioOperation&) = delete;
  AsioOperation& operator=(const AsioOperation&) = delete;

 private:
  kj::PromiseFulfiller<T>& fulfiller_;
  const std::shared_ptr<AsioOperation*> self_;
};

template <class T, class Start>
kj::Promise<T> fromAsio(AsioEventPort& port, std::string what, Start&& start) {
  return kj::newAdaptedPromise<T, AsioOperation<T>>(port, std::move(what),
                                                    std::forward<Start>(start));
}

}  // namespace dtf::net
