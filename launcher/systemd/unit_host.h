#pragma once

// A host of a job of units, as dtf-launch sees it: it is asked one thing at a time, and answers
// later.

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/net/asio.h"
#include "launcher/ssh/agent_link.h"
#include "launcher/systemd/host_units.h"
#include "launcher/systemd/unit_questions.h"

namespace dtf::launcher {

// Threads: thread-compatible.
class UnitHost {
 public:
  virtual ~UnitHost() = default;
  // As the cluster file has it; empty: this one.
  virtual const std::string& name() const = 0;
  // What it said when it was met; there once it has answered anything.
  virtual const HostFacts& facts() const = 0;
  // Whether a question waits for its answer.
  virtual bool isAsked() const = 0;
  // `within`: for the answer. Errors: those of questionJson(), and nothing is asked then.
  virtual void ask(const UnitQuestion& question, Duration within) = 0;
  // To be called often while it is asked; nullopt: there is no answer yet.
  // Errors: the host's own, or why there is no answer, each beginning with its name.
  virtual std::optional<UnitAnswer> answered() = 0;
};

// Owns: what it was answered last, and what its HostUnits does.
// Threads: thread-compatible.
// Blocks: in ask(), on systemctl, a minute at most for each call of it, and on the disk.
// Errors: answered() throws those of HostUnits, as they were thrown.
class LocalUnitHost : public UnitHost {
 public:
  LocalUnitHost(MeetQuestion meet, std::function<Binaries()> find_binaries);
  const std::string& name() const override { return name_; }
  const HostFacts& facts() const override;
  bool isAsked() const override { return answer_ || error_; }
  void ask(const UnitQuestion& question, Duration within) override;
  std::optional<UnitAnswer> answered() override;

 private:
  const std::string name_;
  const MeetQuestion meet_;
  HostUnits units_;
  std::optional<HostFacts> facts_;
  std::optional<UnitAnswer> answer_;
  std::exception_ptr error_;
};

// Over ssh, by the agent there. Connects when it is asked and there is no connection; what happens
// to one that is idle is seen at the next question.
// Owns: the connection.
// Borrows: `io`, `clock` (must outlive this); the caller runs the loop.
// Threads: loop-thread only.
// Blocks: in ask(), until the ssh client has called exec.
// Errors: answered() throws the host's own, kUnavailable for a host that can't be reached or whose
// connection is lost, kDeadline for an answer that is late, kBadConfig for another version.
class FarUnitHost : public UnitHost {
 public:
  // After a connection that came to nothing the next one is not tried before this.
  static constexpr Duration kAgainAfter = std::chrono::seconds(2);
  static constexpr Duration kConnectWithin = std::chrono::seconds(20);

  // `link`: host, command and explain; `on_file` takes what was asked for.
  FarUnitHost(MeetQuestion meet, AgentLinkOptions link, boost::asio::io_context& io,
              const Clock& clock, std::function<void(const FilePiece&)> on_file);
  ~FarUnitHost() override;
  const std::string& name() const override { return options_.host; }
  const HostFacts& facts() const override;
  bool isAsked() const override { return question_.has_value(); }
  void ask(const UnitQuestion& question, Duration within) override;
  std::optional<UnitAnswer> answered() override;
  // The connection that is there: another one knows nothing of what this one was asked. 0: none.
  uint64_t connection() const { return link_ && !link_->failure() ? connections_ : 0; }
  // To be called often, while others are asked: it is held by signs of life.
  void keepUp();
  // Nobody waits for the answer any more; the connection ends.
  void abandon();

 private:
  void connect();
  void onReport(const UnitsReport& report);
  [[noreturn]] void fail(Error error);

  const MeetQuestion meet_;
  const AgentLinkOptions options_;
  boost::asio::io_context& io_;
  const Clock& clock_;
  NoTaskEvents no_tasks_;  // an agent that is asked about units runs none
  std::unique_ptr<AgentLink> link_;
  uint64_t connections_ = 0;
  bool is_met_ = false;                  // of this connection
  uint64_t number_ = 0;                  // of the order that was sent last
  std::optional<std::string> question_;  // that waits for its answer, as JSON
  bool is_sent_ = false;
  std::optional<UnitAnswer> answer_;
  std::optional<HostFacts> facts_;
  std::optional<Error> error_;  // why the last connection came to nothing
  TimePoint failed_{}, deadline_{};
};

}  // namespace dtf::launcher
