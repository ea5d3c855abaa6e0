#include "common/net/call_observer.h"

#ifdef DTF_FAILPOINTS_COMPILED_IN

#include <capnp/rpc.capnp.h>
#include <fmt/format.h>

#include <string>

#include "common/net/error_bridge.h"

namespace dtf::net {

namespace {

using capnp::rpc::Message;

// Returns "ok", the code of an error, or "" if the caller no longer waits for the reply.
std::string outcomeOf(capnp::rpc::Return::Reader answer) {
  if (answer.isResults() || answer.isTakeFromOtherQuestion()) return "ok";
  if (!answer.isException()) return "";
  const auto exception = answer.getException();
  const kj::Exception same(static_cast<kj::Exception::Type>(exception.getType()), __FILE__,
                           __LINE__, kj::heapString(exception.getReason()));
  return std::string(errorCodeName(toError(same).code()));
}

}  // namespace

void CallObserver::receivedBody(capnp::AnyPointer::Reader body) {
  if (!body.isStruct()) return;
  const auto message = body.getAs<Message>();
  if (!message.isCall()) return;
  const auto call = message.getCall();
  served_[call.getQuestionId()] = {call.getInterfaceId(), call.getMethodId()};
}

void CallObserver::sentBody(capnp::AnyPointer::Reader body) {
  if (!body.isStruct()) return;
  const auto message = body.getAs<Message>();
  if (!message.isReturn()) return;
  const auto call = served_.find(message.getReturn().getAnswerId());
  if (call == served_.end()) return;
  const std::string outcome = outcomeOf(message.getReturn());
  if (!outcome.empty())
    logCall(fmt::format("call {:#x} {} {}", call->second.first, call->second.second, outcome));
  served_.erase(call);
}

}  // namespace dtf::net

#endif
