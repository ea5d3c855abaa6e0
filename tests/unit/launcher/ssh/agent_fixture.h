#pragma once

// An agent in a process of its own; the test is its launcher, over two pipes. Its tasks are scripts
// (fake_task.cc).

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "launcher/ssh/agent.h"
#include "tests/unit/launcher/job_fixture.h"

namespace dtf::launcher {

constexpr int kPatienceMs = 20000;

class AgentTest : public JobFixture {
 protected:
  AgentTest() { ::signal(SIGPIPE, SIG_IGN); }
  ~AgentTest() override {
    if (agent_ > 1) {
      ::kill(agent_, SIGKILL);
      ::waitpid(agent_, nullptr, 0);
    }
  }

  void startAgent() {
    frames_.clear();
    reader_ = std::make_unique<FrameReader>(true, [this](FrameKind kind, std::string_view payload) {
      frames_.emplace_back(kind, std::string(payload));
    });
    std::array<int, 2> in{}, out{};
    ASSERT_EQ(::pipe2(in.data(), O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(out.data(), O_CLOEXEC), 0);
    const Binaries binaries = options_.plan.binaries;
    agent_ = ::fork();
    ASSERT_GE(agent_, 0);
    if (agent_ == 0) {
      ::close(in[1]);
      ::close(out[0]);
      ::dup2(::open((folder_ / "said").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
      ::_exit(Agent(Fd(in[0]), Fd(out[1]), [this, binaries] {
                ::poll(nullptr, 0, open_takes_ms_);
                return binaries;
              }).run());
    }
    to_ = Fd(in[1]);
    from_ = Fd(out[0]);
    ::close(in[0]);
    ::close(out[1]);
    ASSERT_EQ(next().second, agentGreeting());
  }

  void say(std::string_view bytes) {
    ASSERT_EQ(::write(to_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  void order(const AgentOrder& order) { say(messageFrame(orderJson(order))); }

  // Returns the next frame; nullopt for its kind once the agent has closed its end.
  std::pair<std::optional<FrameKind>, std::string> next() {
    while (frames_.empty()) {
      pollfd waiting{from_.get(), POLLIN, 0};
      if (::poll(&waiting, 1, kPatienceMs) <= 0) {
        ADD_FAILURE() << "the agent says nothing";
        return {};
      }
      std::array<char, 4096> buffer{};
      const ssize_t n = ::read(from_.get(), buffer.data(), buffer.size());
      if (n <= 0) return {};
      reader_->feed({buffer.data(), static_cast<size_t>(n)});
    }
    auto frame = frames_.front();
    frames_.pop_front();
    return frame;
  }

  template <class T>
  T nextReport() {
    for (;;) {
      const auto [kind, payload] = next();
      if (!kind) {
        ADD_FAILURE() << "the agent has ended";
        return {};
      }
      if (*kind == FrameKind::kOutput) output_ += readTaskBytes(payload).bytes;
      if (*kind == FrameKind::kNotices) notices_ += readTaskBytes(payload).bytes;
      if (*kind != FrameKind::kMessage) continue;
      const AgentReport report = parseReport(payload);
      if (const T* wanted = std::get_if<T>(&report)) return *wanted;
      if (const auto* failed = std::get_if<FailedReport>(&report)) ADD_FAILURE() << failed->message;
    }
  }

  OpenOrder openOrder() const {
    OpenOrder open;
    open.job = "agent-test";
    open.launch = "a1";
    open.run_dir = folder_ / "run";
    open.lease_seconds = 60;
    open.tasks[kPs].address = {"127.0.0.1", 0};
    open.files["/no/such/folder/c.yaml"] = "job: x\n";
    return open;
  }

  StartOrder startOrder(const std::string& script) const {
    StartOrder start{5, {}};
    start.command.id = kPs;
    start.command.argv = {"psd", "--task", "0"};
    start.command.env = {{"DTF_FAKE", script}, {"DTF_TEST_FOLDER", folder_.string()}};
    start.command.folder = "/no/such/folder";
    return start;
  }

  int exitOfAgent() {
    const ExitStatus status = await(agent_);
    agent_ = -1;
    return status.shellCode();
  }

  static constexpr TaskId kPs{JobKind::kPs, 0};
  int open_takes_ms_ = 0;  // simulates a slow disk of the agent
  pid_t agent_ = -1;
  Fd to_, from_;
  std::deque<std::pair<std::optional<FrameKind>, std::string>> frames_;
  std::unique_ptr<FrameReader> reader_;
  std::string output_, notices_;
};

}  // namespace dtf::launcher
