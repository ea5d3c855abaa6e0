#include "launcher/ssh/agent_link.h"

#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/cluster/address.h"
#include "launcher/ssh/ssh_command.h"

namespace dtf::launcher {

namespace {

constexpr size_t kSaidBytesMax = 16384;  // of ssh's stderr
// From one sign of the connection's end, the client's exit or that of its stream, to the other.
constexpr Duration kBothWithin = std::chrono::seconds(1);

}  // namespace

AgentLink::AgentLink(boost::asio::io_context& io, const Clock& clock, TaskEvents& events,
                     AgentLinkOptions options)
    : io_(io), clock_(clock), events_(events), options_(std::move(options)) {
  DTF_CHECK(!options_.command.empty() && options_.explain && !options_.open.tasks.empty());
  DTF_CHECK(options_.on_file && options_.kept_files);
}

AgentLink::~AgentLink() {
  if (!process_) return;
  // connect() may have failed half way.
  if (process_->exited) process_->exited->close();
  spawner_.reap(process_->pid);
}

void AgentLink::connect(const std::string& mark) {
  options_.open.mark = mark;
  connect();
}

void AgentLink::connect() {
  DTF_CHECK_MSG(state_ == State::kIdle && !process_, options_.host);
  state_ = State::kConnecting;
  is_stale_ = false;
  since_ = heard_ = clock_.now();
  closed_ = {};
  said_.clear();
  reason_.reset();
  SpawnedProgram program;
  try {
    program = spawner_.run(options_.command);
  } catch (const Error& error) {
    return lose(error);
  }
  process_ = std::make_unique<Process>();
  process_->pid = program.pid;
  process_->errors = std::make_unique<PipeReader>(
      io_, std::move(program.err), [this](std::string_view bytes) { onSaid(bytes); });
  process_->exited =
      std::make_unique<FdWatch>(io_, std::move(program.exited), [this] { onClientExit(); });
  process_->link = std::make_unique<FrameLink>(
      io_, std::move(program.out), std::move(program.in), true,
      [lease = fromSeconds(options_.open.lease_seconds)] { return lease; },
      FrameLink::Handlers{
          [this](FrameKind kind, std::string_view payload) { onFrame(kind, payload); },
          [this](const std::string& why) { onClosed(why); }});
}

void AgentLink::onFrame(FrameKind kind, std::string_view payload) {
  heard_ = clock_.now();
  try {
    if (kind == FrameKind::kGreeting) {
      const std::string wrong = wrongGreeting(payload);
      if (!wrong.empty()) throw Error(ErrorCode::kBadConfig, wrong);
      options_.open.kept = options_.kept_files();
      send(options_.open);
      options_.open.is_first = false;
    } else if (kind == FrameKind::kMessage) {
      std::visit([this](const auto& report) { onReport(report); }, parseReport(payload));
    } else if (kind == FrameKind::kFile) {
      options_.on_file(readFilePiece(payload));
    } else {
      const TaskBytes said = readTaskBytes(payload);
      if (!running_.contains(said.task))
        throw Error(ErrorCode::kBadData, "words of a task that doesn't run there");
      if (kind == FrameKind::kOutput)
        events_.onOutput(said.task, said.bytes);
      else
        events_.onNotices(said.task, said.bytes);
    }
  } catch (const Error& error) {
    reason_ = ofHost(error);
    onClosed("");
  }
}

// Somebody else's words, on their way to a terminal; each line stays one.
Error AgentLink::ofHost(const Error& error) const {
  std::string text;
  for (const std::string& line : split(error.message(), '\n'))
    text += (text.empty() ? options_.host + ": " : "\n") + printable(line);
  return {error.code(), text};
}

void AgentLink::onReport(const ListeningReport& report) {
  if (state_ != State::kConnecting) throw Error(ErrorCode::kBadData, "its agent listens twice");
  for (const auto& [id, port] : report.ports) {
    const auto task = options_.open.tasks.find(id);
    if (task == options_.open.tasks.end())
      throw Error(ErrorCode::kBadData, "a port of " + id.name());
    ports_[id] = port;
    task->second.address.port = port;  // another process of it has the same
  }
  for (const auto& [id, task] : options_.open.tasks)
    if (task.address.port == 0) throw Error(ErrorCode::kBadData, "no port for " + id.name());
  programs_ = report.programs;
  state_ = State::kOpen;
  if (std::exchange(is_stale_, false)) send(ReplaceOrder{options_.open.files});
  for (const auto& [task, command] : asked_) send(StartOrder{task, command});
}

void AgentLink::onReport(const FailedReport& report) {
  const Error error(report.code, report.message);
  if (!report.task) throw error;
  if (asked_.erase(*report.task) > 0) events_.onStartFailed(*report.task, ofHost(error));
}

void AgentLink::onReport(const StartedReport& report) {
  if (asked_.erase(report.task) == 0)
    throw Error(ErrorCode::kBadData, "a task that was not to start");
  running_.insert(report.task);
  events_.onStarted(report.task, 0);
}

void AgentLink::onReport(const ExitedReport& report) {
  suspended_.erase(report.task);
  if (running_.erase(report.task) == 0)
    throw Error(ErrorCode::kBadData, "a task ended that did not run");
  events_.onExited(report.task, report.status);
}

void AgentLink::onReport(const AliveReport& report) {
  suspended_ = {report.suspended.begin(), report.suspended.end()};
}

void AgentLink::send(const AgentOrder& order) {
  if (process_) process_->link->send(messageFrame(orderJson(order)));
}

void AgentLink::start(size_t task, const TaskCommand& command) {
  DTF_CHECK_MSG(!running_.contains(task) && !asked_.contains(task), command.id.name());
  asked_[task] = command;
  was_used_ = true;
  if (state_ == State::kOpen) return send(StartOrder{task, command});
  if (state_ == State::kIdle) connect();
}

// Whom the agent does not run it does not know.
void AgentLink::signal(size_t task, int signal) {
  if (running_.contains(task)) send(SendSignalOrder{task, signal});
}

void AgentLink::release(size_t task, TaskId id) {
  options_.open.tasks.erase(id);
  if (state_ == State::kOpen) send(ReleaseOrder{task, id});
}

void AgentLink::replaceFiles(const SentFiles& files) {
  for (const auto& [file, text] : files) options_.open.files.at(file) = text;
  if (state_ == State::kOpen) return send(ReplaceOrder{files});
  // Between the first order and its answer; what it was is what the agent has.
  is_stale_ = state_ == State::kConnecting;
}

void AgentLink::onSaid(std::string_view bytes) {
  said_ += bytes;
  if (said_.size() > kSaidBytesMax) said_.erase(0, said_.size() - kSaidBytesMax);
}

// The stream has ended, or this end wants no more of it. The client's exit code says why; it is
// given a moment to end by itself.
void AgentLink::onClosed(const std::string& why) {
  if (!why.empty() && !reason_) reason_ = ofHost(Error(ErrorCode::kUnavailable, why));
  if (process_->link) process_->link->close();
  if (closed_ == TimePoint{}) closed_ = clock_.now();
  if (reason_) spawner_.signal(process_->pid, SIGKILL);
}

// Its last words may still be in the pipes: where they end, onClosed() is called.
void AgentLink::onClientExit() {
  process_->exited->close();
  process_->errors->drain();
  const ExitStatus status = spawner_.reap(process_->pid);
  if (process_->link) process_->link->drain();
  const Error error = reason_ ? *reason_ : options_.explain(status, said_);
  lose(error);
}

void AgentLink::look() {
  if (!process_) return;
  const TimePoint now = clock_.now();
  const double lease = options_.open.lease_seconds;
  if (closed_ != TimePoint{}) {
    if (now > closed_ + kBothWithin) spawner_.signal(process_->pid, SIGKILL);
    return;
  }
  if (state_ == State::kConnecting && now > since_ + options_.connect_within) {
    const std::string last = lastLine(said_);
    reason_ =
        Error(ErrorCode::kDeadline, fmt::format("{}: no dtf-agent has answered within {:g} s{}",
                                                options_.host, toSeconds(options_.connect_within),
                                                last.empty() ? "" : "\n  ssh says: " + last));
    return onClosed("");
  }
  if (state_ != State::kOpen) return;
  // Longer than the agent's own patience: it has ended its tasks by then.
  if (now > heard_ + fromSeconds(lease + 2 * options_.heartbeat_seconds)) {
    reason_ = Error(ErrorCode::kUnavailable,
                    options_.host + ": its agent has not answered for longer than the lease");
    return onClosed("");
  }
  if (now >= pinged_ + fromSeconds(options_.heartbeat_seconds)) {
    pinged_ = now;
    send(PingOrder{});
  }
}

void AgentLink::lose(const Error& error) {
  process_.reset();
  state_ = State::kIdle;
  suspended_.clear();
  const auto asked = std::exchange(asked_, {});
  const auto running = std::exchange(running_, {});
  if (!was_used_) failure_ = error;
  if (ending_ || !was_used_) return;
  events_.onHostTold(error.message());
  const ExitStatus lost{0, SIGKILL, false, options_.host};
  for (const size_t task : running) {
    events_.onOutput(task, "dtf-launch: the connection is lost: " + error.message() + "\n");
    events_.onExited(task, lost);
  }
  // It counts as a start: the host is not asked for ever.
  for (const auto& [task, command] : asked) {
    events_.onStarted(task, 0);
    events_.onOutput(task, "dtf-launch: " + error.message() + "\n");
    events_.onExited(task, lost);
  }
}

void AgentLink::askToEnd() {
  ending_ = true;
  if (!process_) return;
  if (state_ != State::kOpen) return spawner_.signal(process_->pid, SIGKILL);
  send(EndOrder{});
  process_->link->closeOut();
}

}  // namespace dtf::launcher
