#include "launcher/ssh/agent_link.h"

#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/cluster/address.h"
#include "launcher/ssh/agent_bootstrap.h"
#include "launcher/ssh/ssh_command.h"

namespace dtf::launcher {

namespace {

constexpr size_t kSaidBytesMax = 16384;  // of ssh's stderr
// From one sign of the connection's end, the client's exit or that of its stream, to the other.
constexpr Duration kBothWithin = std::chrono::seconds(1);
// Of copies: something must be taken of them, or be on the disk there, in this time.
constexpr Duration kCopiedWithin = std::chrono::seconds(60);
constexpr size_t kAheadBytes = size_t{512} << 10;  // of copies, before the host has taken them
constexpr size_t kPieceBytes = size_t{64} << 10;
constexpr int kPiecesAtOnce = 32;

}  // namespace

Error ofHost(const std::string& host, const Error& error) {
  std::string text;
  for (const std::string& line : split(error.message(), '\n'))
    text += (text.empty() ? host + ": " : "\n") + printable(line);
  return {error.code(), text};
}

AgentLink::AgentLink(boost::asio::io_context& io, const Clock& clock, TaskEvents& events,
                     AgentLinkOptions options)
    : io_(io), clock_(clock), events_(events), options_(std::move(options)) {
  DTF_CHECK(!options_.command.empty() && options_.explain);
  if (options_.units)
    DTF_CHECK(options_.on_units && options_.on_file && !options_.probe &&
              options_.open.tasks.empty());
  else
    DTF_CHECK(options_.probe
                  ? options_.on_measured != nullptr
                  : options_.on_file && options_.kept_files && !options_.open.tasks.empty());
}

AgentLink::~AgentLink() {
  if (!process_) return;
  // connect() may have failed half way.
  if (process_->exited) process_->exited->close();
  spawner_.reap(process_->pid);
}

void AgentLink::connect(const std::string& mark, HostCopies copies) {
  options_.open.mark = mark;
  copies_ = std::move(copies);
  connect();
}

void AgentLink::connect() {
  DTF_CHECK_MSG(state_ == State::kIdle && !process_, options_.host);
  state_ = State::kConnecting;
  stage_ = copies_.agent ? Stage::kShell : Stage::kGreeting;
  sender_.reset();
  agent_sent_ = 0;
  copied_ = {};
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
          [this](const std::string& why) { onClosed(why); }, [this] { sendMore(); }});
  if (copies_.agent) process_->link->send(bootstrapScript());
}

void AgentLink::onFrame(FrameKind kind, std::string_view payload) {
  heard_ = clock_.now();
  try {
    if (kind == FrameKind::kGreeting) {
      onLine(payload);
    } else if (kind == FrameKind::kMessage) {
      std::visit([this](const auto& report) { onReport(report); }, parseReport(payload));
    } else if (kind == FrameKind::kFile && !options_.probe) {
      options_.on_file(readFilePiece(payload));
    } else if (kind == FrameKind::kCopy && options_.on_fetched_bytes) {
      options_.on_fetched_bytes(payload);
    } else {
      const TaskBytes said = readTaskBytes(payload);
      if (!running_.contains(said.task))
        throw Error(ErrorCode::kBadData, "it sends output of a task that doesn't run there");
      if (kind == FrameKind::kOutput)
        events_.onOutput(said.task, said.bytes);
      else
        events_.onNotices(said.task, said.bytes);
    }
  } catch (const Error& error) {
    giveUp(error);
  }
}

void AgentLink::giveUp(const Error& error) {
  reason_ = ofHost(error);
  onClosed("");
}

// Each side speaks in turn: see agent_bootstrap.h.
void AgentLink::onLine(std::string_view line) {
  since_ = clock_.now();
  if (stage_ == Stage::kShell) {
    const std::string wrong = wrongBootstrapLine(line, systemHere());
    if (!wrong.empty()) throw Error(ErrorCode::kBadConfig, wrong);
    process_->link->awaitLine();
    stage_ = Stage::kHaveOrSend;
    return process_->link->send(
        bootstrapWords(copies_.agent->digest, copies_.agent->bytes.size(), copies_.dir));
  }
  if (stage_ != Stage::kHaveOrSend) return onGreeting(line);
  const bool wants = wantsAgent(line);
  process_->link->awaitLine();
  stage_ = Stage::kGreeting;
  if (wants)
    copied_.lacking_bytes = copies_.agent->bytes.size();
  else
    agent_sent_ = copies_.agent->bytes.size();
  sendPieces();
}

void AgentLink::onGreeting(std::string_view greeting) {
  const std::string wrong = wrongGreeting(greeting);
  if (!wrong.empty()) throw Error(ErrorCode::kBadConfig, wrong);
  copied_.stored_bytes = copied_.lacking_bytes;  // of the agent, which has greeted
  if (options_.units) {
    state_ = State::kOpen;
    return send(*options_.units);
  }
  if (options_.probe) {
    stage_ = Stage::kListening;
    return send(*options_.probe);
  }
  if (!copies_.files) return sendOpen();
  stage_ = Stage::kCopied;
  sender_.emplace(copies_.files, copies_.dir, copies_.bytes_max);
  sendOffer();
}

void AgentLink::sendOffer() {
  if (const std::optional<OfferOrder> offer = sender_->nextOffer()) return send(*offer);
  copied_.lacking_bytes += sender_->lackingBytes();
  if (sender_->done()) return sendOpen();
  sendPieces();
}

void AgentLink::onReport(const LackingReport& report) {
  if (stage_ != Stage::kCopied)
    throw Error(ErrorCode::kBadData, "it requests files that were not offered");
  since_ = clock_.now();
  sender_->take(report);
  sendOffer();
}

void AgentLink::onReport(const StoredReport& report) {
  if (stage_ != Stage::kCopied)
    throw Error(ErrorCode::kBadData, "it reports stored files that were not sent");
  since_ = clock_.now();
  copied_.stored_bytes += report.bytes - sender_->storedBytes();
  sender_->take(report);
  if (sender_->done()) sendOpen();
}

// The host has taken what was sent.
void AgentLink::sendMore() {
  if (state_ != State::kConnecting || closed_ != TimePoint{}) return;
  since_ = clock_.now();
  try {
    sendPieces();
  } catch (const Error& error) {
    giveUp(error);
  }
}

// So much of the copies that the host is never idle, and others have their turn.
void AgentLink::sendPieces() {
  FrameLink& link = *process_->link;
  const bool sends_agent = stage_ == Stage::kGreeting && copies_.agent != nullptr;
  for (int i = 0; closed_ == TimePoint{} && link.queuedBytes() < kAheadBytes; ++i) {
    if (i == kPiecesAtOnce) return link.askForRoom();
    std::string piece;
    if (sends_agent) piece = copies_.agent->bytes.substr(agent_sent_, kPieceBytes);
    if (stage_ == Stage::kCopied && sender_->offeredAll()) piece = sender_->nextPiece(kPieceBytes);
    if (piece.empty()) return;
    agent_sent_ += sends_agent ? piece.size() : 0;
    link.send(sends_agent ? piece : copyFrame(piece));
  }
}

void AgentLink::sendOpen() {
  stage_ = Stage::kListening;
  options_.open.kept = options_.kept_files();
  send(options_.open);
  options_.open.drops_snapshots = false;
}

void AgentLink::onReport(const ListeningReport& report) {
  if (state_ != State::kConnecting || stage_ != Stage::kListening || options_.probe)
    throw Error(ErrorCode::kBadData, "its agent reports its ports twice");
  for (const auto& [id, port] : report.ports) {
    const auto task = options_.open.tasks.find(id);
    if (task == options_.open.tasks.end())
      throw Error(ErrorCode::kBadData, "it reports a port of the unexpected task " + id.name());
    ports_[id] = port;
    task->second.address.port = port;  // another process of it has the same
  }
  for (const auto& [id, task] : options_.open.tasks)
    if (task.address.port == 0)
      throw Error(ErrorCode::kBadData, "it reports no port of " + id.name());
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
    throw Error(ErrorCode::kBadData, "it reports the start of a task that was not ordered");
  running_.insert(report.task);
  events_.onStarted(report.task, 0);
}

void AgentLink::onReport(const ExitedReport& report) {
  suspended_.erase(report.task);
  if (running_.erase(report.task) == 0)
    throw Error(ErrorCode::kBadData, "it reports the end of a task that did not run");
  events_.onExited(report.task, report.status);
}

void AgentLink::onReport(const FetchedReport& report) {
  if (!options_.on_fetched)
    throw Error(ErrorCode::kBadData, "it sends a file that was not requested");
  options_.on_fetched(report);
}

void AgentLink::onReport(const AliveReport& report) {
  suspended_ = {report.suspended.begin(), report.suspended.end()};
}

void AgentLink::onReport(const ProbingReport& report) {
  if (state_ != State::kConnecting || !options_.probe)
    throw Error(ErrorCode::kBadData, "it is ready for measurements that were not requested");
  probe_addresses_ = report.addresses;
  state_ = State::kOpen;
}

void AgentLink::onReport(const MeasuredReport& report) {
  if (!options_.probe || state_ != State::kOpen)
    throw Error(ErrorCode::kBadData, "it reports a measurement that was not requested");
  options_.on_measured(report.measured);
}

void AgentLink::onReport(const UnitsReport& report) {
  if (!options_.units) throw Error(ErrorCode::kBadData, "it answers a request that was not made");
  options_.on_units(report);
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
  if (state_ == State::kConnecting) return lookAtConnecting(now);
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

void AgentLink::lookAtConnecting(TimePoint now) {
  const bool copies = stage_ == Stage::kCopied ||
                      (stage_ == Stage::kGreeting && copies_.agent && copied_.lacking_bytes > 0);
  const Duration within = copies ? kCopiedWithin : options_.connect_within;
  if (now <= since_ + within) return;
  const std::string last = lastLine(said_);
  reason_ = Error(
      ErrorCode::kDeadline,
      fmt::format("{}: {} within {:g} s{}", options_.host,
                  copies ? "it has received no more of the copies" : "dtf-agent has not answered",
                  toSeconds(within), last.empty() ? "" : "\n  ssh printed: " + last));
  onClosed("");
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

void AgentLink::askToEnd(bool drops_snapshots) {
  ending_ = true;
  if (!process_) return;
  if (state_ != State::kOpen) return spawner_.signal(process_->pid, SIGKILL);
  send(EndOrder{drops_snapshots});
  process_->link->closeOut();
}

}  // namespace dtf::launcher
