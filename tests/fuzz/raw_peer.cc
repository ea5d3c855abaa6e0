#include "tests/fuzz/raw_peer.h"

#include <capnp/capability.h>
#include <capnp/message.h>
#include <capnp/rpc.capnp.h>
#include <kj/debug.h>

#include "tests/fuzz/rpc_messages.h"

namespace dtf::fuzz {

namespace {

using capnp::rpc::Message;

constexpr uint64_t kPsInterfaces[] = {
    capnp::typeId<schema::PsGate>(),       capnp::typeId<schema::PsDataGate>(),
    capnp::typeId<schema::PsControl>(),    capnp::typeId<schema::PsData>(),
    capnp::typeId<schema::PsCheckpoint>(), capnp::typeId<schema::PsStaying>(),
    capnp::typeId<schema::SyncLeader>(),   capnp::typeId<schema::SyncFollower>()};

// Ids are small, so that they often name something.
uint32_t id(Arguments& arguments) {
  const uint8_t small = arguments.byte();
  return small < 250 ? small % 8 : arguments.number<uint32_t>();
}

void fillTarget(Arguments& arguments, capnp::rpc::MessageTarget::Builder target) {
  const uint8_t kind = arguments.byte();
  if (kind % 4 == 0) return target.setImportedCap(id(arguments));
  auto answer = target.initPromisedAnswer();
  answer.setQuestionId(id(arguments));
  if (kind % 4 == 1) return;  // the bootstrap capability
  auto steps = answer.initTransform(kind % 4 == 2 ? 1 : arguments.byte() % 4);
  for (auto step : steps) {
    if (kind < 240) step.setGetPointerField(arguments.byte() % 3);
  }
}

void fillPayload(Arguments& arguments, uint32_t ps_task, capnp::rpc::Payload::Builder payload) {
  const uint8_t kind = arguments.byte();
  auto content = payload.initContent();
  switch (kind % 7) {
    case 0:
      fillHello(arguments, ps_task, kind % 2 == 1, cluster::Durability::kCheckpoint,
                content.initAs<schema::PsGate::HelloParams>().initHello());
      break;
    case 1:
      fillModel(arguments, ps_task, false, content.initAs<schema::PsControl::DeclareParams>());
      break;
    case 2: {
      auto params = content.initAs<schema::PsData::ExchangeParams>();
      params.setStep(arguments.count());
      fillArena(arguments, [&](uint32_t chunks) { return params.initGradient(chunks); });
      fillRows(arguments, [&](uint32_t slices) { return params.initRows(slices); });
      break;
    }
    case 3: {
      AnyMessage any(arguments.take(8 * size_t{arguments.byte()}));
      content.set(any.root<capnp::AnyPointer>());
      break;
    }
    case 4:
      fillParameters(arguments, content.initAs<schema::PsData::PullResults>());
      break;
    case 5: {  // a session with the capability described below
      capnp::BuilderCapabilityTable capabilities;
      capabilities.imbue(content).initAs<schema::PsGate::HelloResults>().setControl(
          schema::PsControl::Client(KJ_EXCEPTION(FAILED, "a pointer")));
      break;
    }
    default:
      break;
  }
  for (auto cap : payload.initCapTable((arguments.byte() + (kind % 7 == 5)) % 3)) {
    const uint8_t which = arguments.byte();
    if (which % 4 == 0) cap.setSenderHosted(id(arguments));
    if (which % 4 == 1) cap.setSenderPromise(id(arguments));
    if (which % 4 == 2) cap.setReceiverHosted(id(arguments));
  }
}

// The other side of the conversation.
struct Conversation {
  uint32_t ps_task = 0;
  std::span<const uint64_t> interfaces;
};

void fillCall(Arguments& arguments, const Conversation& with, capnp::rpc::Call::Builder call) {
  call.setQuestionId(id(arguments));
  fillTarget(arguments, call.initTarget());
  const uint8_t interface = arguments.byte();
  call.setInterfaceId(interface < 250 ? with.interfaces[interface % with.interfaces.size()]
                                      : arguments.number<uint64_t>());
  call.setMethodId(arguments.byte() % 8);
  fillPayload(arguments, with.ps_task, call.initParams());
  if (arguments.byte() == 1) call.getSendResultsTo().setYourself();
}

void fillReturn(Arguments& arguments, uint32_t ps_task, capnp::rpc::Return::Builder answer) {
  answer.setAnswerId(id(arguments));
  answer.setReleaseParamCaps(arguments.byte() % 2 == 1);
  switch (arguments.byte() % 5) {
    case 0:
      return fillPayload(arguments, ps_task, answer.initResults());
    case 1:
      return answer.initException().setReason(arguments.text());
    case 2:
      return answer.setCanceled();
    case 3:
      return answer.setTakeFromOtherQuestion(id(arguments));
    default:
      return answer.setResultsSentElsewhere();
  }
}

void fillRest(Arguments& arguments, uint8_t kind, Message::Builder message) {
  switch (kind % 7) {
    case 0:
      return message.initAbort().setReason(arguments.text());
    case 1: {
      auto release = message.initRelease();
      release.setId(id(arguments));
      release.setReferenceCount(id(arguments));
      return;
    }
    case 2: {
      auto resolve = message.initResolve();
      resolve.setPromiseId(id(arguments));
      if (arguments.byte() % 2 == 0)
        resolve.initException().setReason(arguments.text());
      else
        resolve.initCap().setSenderHosted(id(arguments));
      return;
    }
    case 3: {
      auto disembargo = message.initDisembargo();
      fillTarget(arguments, disembargo.initTarget());
      if (arguments.byte() % 2 == 0)
        disembargo.getContext().setSenderLoopback(id(arguments));
      else
        disembargo.getContext().setReceiverLoopback(id(arguments));
      return;
    }
    case 4:
      message.initUnimplemented().initBootstrap().setQuestionId(id(arguments));
      return;
    case 5:
      return message.initProvide().setQuestionId(id(arguments));
    default:
      return message.initJoin().setQuestionId(id(arguments));
  }
}

void fillMessage(Arguments& arguments, const Conversation& with, Message::Builder message) {
  const uint8_t kind = arguments.byte();
  switch (kind % 6) {
    case 0:
      return message.initBootstrap().setQuestionId(id(arguments));
    case 1:
    case 2:
      return fillCall(arguments, with, message.initCall());
    case 3: {
      auto finish = message.initFinish();
      finish.setQuestionId(id(arguments));
      finish.setReleaseResultCaps(arguments.byte() % 2 == 1);
      return;
    }
    case 4:
      return fillReturn(arguments, with.ps_task, message.initReturn());
    default:
      return fillRest(arguments, kind / 6, message);
  }
}

}  // namespace

RawPeer::RawPeer(kj::Own<net::MessageStream> stream, uint32_t ps_task,
                 std::span<const uint64_t> interfaces)
    : stream_(kj::mv(stream)),
      ps_task_(ps_task),
      interfaces_(interfaces.empty() ? std::span<const uint64_t>(kPsInterfaces) : interfaces),
      reading_(readAll().eagerlyEvaluate([](kj::Exception&&) {})),
      writing_(kj::READY_NOW) {}

// Reads and ignores the answers; unread ones would block the other side.
kj::Promise<void> RawPeer::readAll() {
  return stream_->tryReadMessage(nullptr, capnp::ReaderOptions(), nullptr)
      .then([this](kj::Maybe<capnp::MessageReaderAndFds>&& message) -> kj::Promise<void> {
        if (message == nullptr) return kj::READY_NOW;
        return readAll();
      });
}

void RawPeer::send(Arguments& arguments) {
  auto message = kj::heap<capnp::MallocMessageBuilder>(256);
  kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments;
  if (arguments.byte() % 8 == 7) {  // arbitrary bytes
    auto words = kj::heap<AnyMessage>(arguments.rest());
    segments = words->segments();
    message = message.attach(kj::mv(words));
  } else {
    // A message that can't be built, such as one with bytes that name a capability, is not sent.
    const auto unbuildable = kj::runCatchingExceptions([&] {
      fillMessage(arguments, {ps_task_, interfaces_}, message->initRoot<Message>());
    });
    if (unbuildable != nullptr) return;
    segments = message->getSegmentsForOutput();
  }
  // One message at a time.
  writing_ = writing_.then([this, segments] { return stream_->writeMessage(nullptr, segments); })
                 .attach(kj::mv(message))
                 .eagerlyEvaluate([](kj::Exception&&) {});
}

}  // namespace dtf::fuzz
