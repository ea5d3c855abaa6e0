#include "common/net/call_observer.h"

#include <capnp/message.h>
#include <capnp/rpc.capnp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace dtf::net {

namespace {

using capnp::rpc::Message;

// A message in its form on the network, on its way out and on its way in.
struct Outgoing {
  capnp::MallocMessageBuilder builder;
  Message::Builder message = builder.initRoot<Message>();
  capnp::AnyPointer::Builder getBody() { return builder.getRoot<capnp::AnyPointer>(); }
};
struct Incoming : Outgoing {
  capnp::AnyPointer::Reader getBody() { return Outgoing::getBody().asReader(); }
};

void receiveCall(CallObserver& observer, uint32_t question, uint16_t method) {
  Incoming call;
  auto body = call.message.initCall();
  body.setQuestionId(question);
  body.setInterfaceId(0xabcd);
  body.setMethodId(method);
  observer.received(call);
}

capnp::rpc::Return::Builder answerTo(Outgoing& out, uint32_t question) {
  auto answer = out.message.initReturn();
  answer.setAnswerId(question);
  return answer;
}

// A message whose root points beyond its segment.
class Broken {
 public:
  capnp::AnyPointer::Reader getBody() { return reader_.getRoot<capnp::AnyPointer>(); }

 private:
  // A struct pointer: its offset in words, one word of data, one pointer.
  static constexpr uint64_t kRoot = 1000 << 2 | uint64_t{1} << 32 | uint64_t{1} << 48;
  static_assert(sizeof(kRoot) == sizeof(capnp::word));
  const kj::ArrayPtr<const capnp::word> segment_{reinterpret_cast<const capnp::word*>(&kRoot), 1};
  capnp::SegmentArrayMessageReader reader_{kj::arrayPtr(&segment_, 1)};
};

void serve() {
  CallObserver observer;
  Broken broken;
  observer.received(broken);
  receiveCall(observer, 1, 0);
  receiveCall(observer, 2, 1);
  receiveCall(observer, 3, 2);
  Outgoing refused, good, cancelled, unknown, nothing;
  answerTo(refused, 2).initException().setReason("remote exception: dtf(bad_config): no such job");
  answerTo(good, 1).initResults();
  answerTo(cancelled, 3).setCanceled();
  answerTo(unknown, 77).initResults();
  nothing.message.initFinish();
  for (Outgoing* out : {&refused, &good, &cancelled, &unknown, &nothing}) observer.sent(*out);
}

}  // namespace

TEST(CallObserver, LogsHowEachServedCallEnded) {
#ifndef DTF_FAILPOINTS_COMPILED_IN
  GTEST_SKIP() << "this build has no call log";
#endif
  // In a process of its own: the log's file is read from the environment only once.
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  // That process runs these lines again and keeps the file's name.
  const std::string own =
      std::filesystem::temp_directory_path() / ("dtf-call-observer-" + std::to_string(::getpid()));
  ::setenv("DTF_CALL_OBSERVER_TEST", own.c_str(), 0);
  const std::string file = std::getenv("DTF_CALL_OBSERVER_TEST");
  const char* before = std::getenv("DTF_CALL_LOG");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("DTF_CALL_LOG", file.c_str(), 1);
  EXPECT_EXIT(
      {
        serve();
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "");
  before == nullptr ? ::unsetenv("DTF_CALL_LOG") : ::setenv("DTF_CALL_LOG", kept.c_str(), 1);
  std::ifstream in(file);
  const std::string written{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(file);
  EXPECT_EQ(written, "call 0xabcd 1 bad_config\ncall 0xabcd 0 ok\n");
}

}  // namespace dtf::net
