// Peers that request a daemon's status again and again and read no answer: their cost to the
// daemon, and to the workers.

#include <capnp/message.h>
#include <capnp/rpc.capnp.h>
#include <capnp/serialize.h>
#include <poll.h>

#include <algorithm>
#include <memory>

#include "common/wire/ps.capnp.h"
#include "common/wire/ps/ps_link.h"
#include "common/wire/worker.capnp.h"
#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/raw_connection.h"

namespace dtf::testing {

using capnp::rpc::Message;
using std::chrono::seconds;

namespace {

struct Method {
  uint64_t interface_id;
  uint16_t number;
};
const Method kHello{capnp::typeId<schema::PsGate>(), 0};
const Method kPsStatus{capnp::typeId<schema::PsGate>(), 2};
const Method kWorkerStatus{capnp::typeId<schema::WorkerGate>(), 0};

constexpr long kGrowthKbMax = 16 << 10;  // without a bound: tens of MiB a second
// Most bytes a daemon reads from a peer that does not read its answers: it stops when 256 KiB of
// them wait. The kernels' buffers for questions and answers come on top. Without a bound it would
// read as long as the peer sends.
constexpr size_t kTakenMax = 24 << 20;

std::string frameOf(capnp::MessageBuilder& message) {
  const auto words = capnp::messageToFlatArray(message);
  return {words.asChars().begin(), words.asChars().size()};
}

// Asks for the bootstrap capability; the calls go to the answer of this question.
std::string bootstrapQuestion() {
  capnp::MallocMessageBuilder message;
  message.initRoot<Message>().initBootstrap().setQuestionId(0);
  return frameOf(message);
}

capnp::rpc::Call::Builder initCall(capnp::MessageBuilder& message, uint32_t question,
                                   const Method& method) {
  auto call = message.initRoot<Message>().initCall();
  call.setQuestionId(question);
  call.initTarget().initPromisedAnswer().setQuestionId(0);
  call.setInterfaceId(method.interface_id);
  call.setMethodId(method.number);
  call.initParams();
  return call;
}

// Owns: its connection.
// Threads: one. Blocks: while it connects.
class Asker {
 public:
  Asker(int port, const Method& status) : status_(status), connection_(port) {
    connection_.send(preamble() + bootstrapQuestion());
  }

  void sayHello(const wire::LinkOptions& options, TaskId callee) {
    capnp::MallocMessageBuilder message;
    auto call = initCall(message, next_++, kHello);
    auto params = call.getParams().initContent().initAs<schema::PsGate::HelloParams>();
    wire::encodeHello(options, callee, params.initHello(), 0);
    connection_.send(frameOf(message));
  }

  // Sends as many questions as the kernel takes at once.
  void ask() {
    while (!connection_.closed()) {
      while (unsent_.size() < 65536) {
        capnp::MallocMessageBuilder message;
        initCall(message, next_++, status_);
        unsent_ += frameOf(message);
      }
      const size_t sent = connection_.sendSome(unsent_);
      if (sent == 0) return;
      unsent_.erase(0, sent);
      taken_ += sent;
    }
  }

  bool closed() const { return connection_.closed(); }
  // Bytes of questions that were taken, by the kernels between or by the daemon.
  size_t taken() const { return taken_; }

 private:
  const Method status_;
  const RawConnection connection_;
  uint32_t next_ = 1;
  std::string unsent_;
  size_t taken_ = 0;
};

}  // namespace

// A job of one ps and two workers by hand.
class UnreadAnswersTest : public ClusterTest {
 protected:
  UnreadAnswersTest() {
    options_.ps = 1;
    options_.steps = 100'000'000;
    options_.ports = freePorts(3);
    const std::string file = writeCluster(options_);
    tasks_.push_back(startTask(file, "ps", 0));
    for (int i = 0; i < 2; ++i) tasks_.push_back(startTask(file, "worker", i));
  }

  void SetUp() override {
    ASSERT_TRUE(tasks_[1].waitForOutput("step=", seconds(30))) << tasks_[1].err();
  }

  // Lets `asker` send until its connection is closed or the time is over; returns the largest
  // growth of the memory of `asked` meanwhile.
  static long growthKb(Asker& asker, const Process& asked, seconds time) {
    const long before = residentKb(asked.pid());
    long most = before;
    const auto end = std::chrono::steady_clock::now() + time;
    while (!asker.closed() && std::chrono::steady_clock::now() < end) {
      asker.ask();
      ::poll(nullptr, 0, 1);
      most = std::max(most, residentKb(asked.pid()));
    }
    EXPECT_LT(asker.taken(), kTakenMax) << "questions were answered on and on";
    return most - before;
  }

  // The newest step that the chief has logged.
  long lastStep() const {
    const std::string said = tasks_[1].err();
    const size_t at = said.rfind(" event=progress step=");
    return at == said.npos ? -1 : std::stol(said.substr(at + 21));
  }

  // Strangers flood `asked`, one after the other, until one was sent away and the chief has logged
  // two more reports, or the time is over. Returns the steps between those two reports. Answers are
  // the cost of a flood, so they are bounded; the speed of steps beside it depends on the machine.
  long stepsInAFlood(const Method& status, int port, seconds time) {
    auto asker = std::make_unique<Asker>(port, status);
    const long before = lastStep();
    long first = before, now = before;
    const auto end = std::chrono::steady_clock::now() + time;
    int sent_away = 0;
    while ((now == first || sent_away == 0) && std::chrono::steady_clock::now() < end) {
      if (asker->closed()) {
        asker = std::make_unique<Asker>(port, status);
        ++sent_away;
      }
      asker->ask();
      if (asker->taken() >= kTakenMax) {
        ADD_FAILURE() << "questions were answered on and on";
        return 0;
      }
      ::poll(nullptr, 0, 1);
      now = lastStep();
      if (first == before) first = now;
    }
    return now - first;
  }

  // Whether the chief logs more steps from now on.
  bool trainsOn() {
    const auto lines = [this] {
      const std::string said = tasks_[1].err();
      size_t steps = 0;
      for (size_t at = said.find(" step="); at != said.npos; at = said.find(" step=", at + 1))
        ++steps;
      return steps;
    };
    const size_t before = lines();
    const auto end = std::chrono::steady_clock::now() + Process::kSlowest * seconds(30);
    while (tasks_[1].running() && std::chrono::steady_clock::now() < end) {
      if (lines() > before + 1) return true;
      ::poll(nullptr, 0, 20);
    }
    return false;
  }

  ClusterOptions options_;
  std::vector<Process> tasks_;  // ps/0, worker/0, worker/1
};

TEST_F(UnreadAnswersTest, TakeLittleOfAPsAndTheVisitorIsSentAway) {
  Asker asker(options_.ports[0], kPsStatus);
  EXPECT_LT(growthKb(asker, tasks_[0], seconds(20)), kGrowthKbMax);
  EXPECT_TRUE(asker.closed()) << "a visitor may not stay";
  EXPECT_EQ(tasks_[0].err().find("connection_refused"), std::string::npos) << tasks_[0].err();
  EXPECT_TRUE(trainsOn()) << tasks_[1].err();
  for (Process& task : tasks_) EXPECT_TRUE(task.running()) << task.err();
}

TEST_F(UnreadAnswersTest, TakeLittleOfAWorkerAndTheVisitorIsSentAway) {
  Asker asker(options_.ports[2], kWorkerStatus);
  EXPECT_LT(growthKb(asker, tasks_[2], seconds(20)), kGrowthKbMax);
  EXPECT_TRUE(asker.closed()) << "a visitor may not stay";
  EXPECT_EQ(tasks_[2].err().find("connection_refused"), std::string::npos) << tasks_[2].err();
  EXPECT_TRUE(trainsOn()) << tasks_[1].err();
  for (Process& task : tasks_) EXPECT_TRUE(task.running()) << task.err();
}

TEST_F(UnreadAnswersTest, HoldUpNoStepWhileStrangersAskOn) {
  EXPECT_GT(stepsInAFlood(kPsStatus, options_.ports[0], seconds(30)), 0) << tasks_[1].err();
  EXPECT_GT(stepsInAFlood(kWorkerStatus, options_.ports[1], seconds(30)), 0) << tasks_[1].err();
  for (Process& task : tasks_) {
    EXPECT_TRUE(task.running()) << task.err();
    EXPECT_EQ(task.err().find("connection_refused"), std::string::npos)
        << "who is turned away is no flood\n"
        << task.err();
  }
}

// A later process of worker/1, as the ps sees it: its connection may stay.
TEST_F(UnreadAnswersTest, TakeLittleOfAPsThoughTheCallerIsAWorker) {
  wire::LinkOptions worker;
  worker.job = "job";
  worker.self = {JobKind::kWorker, 1};
  worker.incarnation = Incarnation::ofNow();
  for (const size_t task : {1, 2})
    worker.workers.push_back({"localhost", static_cast<uint16_t>(options_.ports[task])});
  Asker asker(options_.ports[0], kPsStatus);
  asker.sayHello(worker, {JobKind::kPs, 0});
  EXPECT_EQ(tasks_[2].wait(seconds(20)).exit_code, 69) << "its rank is another process's";
  EXPECT_LT(growthKb(asker, tasks_[0], seconds(7)), kGrowthKbMax);
  EXPECT_FALSE(asker.closed()) << "it has said hello";
  EXPECT_TRUE(trainsOn()) << tasks_[1].err();
  EXPECT_TRUE(tasks_[0].running()) << tasks_[0].err();
}

}  // namespace dtf::testing
