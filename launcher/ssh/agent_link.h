#pragma once

// The near end of one host: an ssh client and, behind it, the agent that runs the host's tasks.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/net/asio.h"
#include "launcher/fd_watch.h"
#include "launcher/pipe_reader.h"
#include "launcher/spawner.h"
#include "launcher/ssh/copied_files.h"
#include "launcher/ssh/copy_sender.h"
#include "launcher/ssh/frame_link.h"
#include "launcher/ssh/messages.h"
#include "launcher/task_host.h"

namespace dtf::launcher {

// dtf-agent itself, for hosts that have none.
struct AgentProgram {
  std::string bytes;
  std::string digest;  // SHA-256
};

// What a host is brought before its agent is told anything.
struct HostCopies {
  std::shared_ptr<const AgentProgram> agent;  // null: it is there
  std::shared_ptr<const CopiedFiles> files;   // null: none
  std::string dir;                            // launch.copy.dir
  uint64_t bytes_max = 0;                     // of all copies there
};

struct CopyProgress {
  uint64_t lacking_bytes = 0, stored_bytes = 0;
};

// Somebody else's words, on their way to a terminal: they begin with the host's name, and each line
// stays one.
Error ofHost(const std::string& host, const Error& error);

struct AgentLinkOptions {
  std::string host;                   // as the cluster file names it
  double heartbeat_seconds = 1;       // between two pings
  std::vector<std::string> command;   // that leads to the agent
  OpenOrder open;                     // tasks and files; the link fills in the rest as it goes on
  std::optional<ProbeOrder> probe{};  // in place of it: no tasks, but the network is measured
  // What is made of the command's end and of its last words.
  std::function<Error(const ExitStatus& status, std::string_view said)> explain;
  // Of its run directory, where that is another one than the launcher's.
  std::function<void(const FilePiece& piece)> on_file;
  // What the launcher has of them; asked before each connection.
  std::function<FileSizes()> kept_files;
  std::function<void(const Measured& measured)> on_measured{};  // where it probes
  // What comes of fetch(): the answer, then the file's bytes.
  std::function<void(const FetchedReport& report)> on_fetched{};
  std::function<void(std::string_view bytes)> on_fetched_bytes{};
  // In place of tasks: what the host's systemd runs of them is asked about, this first.
  std::optional<UnitsOrder> units{};
  std::function<void(const UnitsReport& report)> on_units{};
  Duration connect_within = std::chrono::seconds(30);
};

// Connects, and connects again when a task is to be started after the connection was lost. Whoever
// is lost with the connection has ended, as far as anyone can know: the agent ends what it runs,
// and does so before this end gives it up.
// Owns: the ssh client's process and its pipes.
// Borrows: `io`, `clock`, `events` (must outlive this).
// Threads: loop-thread only.
// Blocks: in connect(), until the client has called exec.
class AgentLink {
 public:
  AgentLink(boost::asio::io_context& io, const Clock& clock, TaskEvents& events,
            AgentLinkOptions options);
  ~AgentLink();
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;

  // `mark`: see OpenOrder; of this connection and those after it, as `copies`.
  void connect(const std::string& mark, HostCopies copies = {});
  bool listens() const { return state_ == State::kOpen; }
  // Why the connection was lost, or came to nothing, before a task was to start on the host;
  // nullopt: it was not.
  const std::optional<Error>& failure() const { return failure_; }
  // A digest of the programs there, of the connection that listens().
  const std::string& programs() const { return programs_; }
  // Of the newest connection.
  const CopyProgress& copied() const { return copied_; }
  // Of the tasks whose port was `auto`.
  const std::map<TaskId, uint16_t>& ports() const { return ports_; }

  // Where it takes what is measured, of the connection that listens(); empty: it has tasks.
  const std::vector<ProbeAddress>& probeAddresses() const { return probe_addresses_; }
  void measure(const Measure& order) { send(MeasureOrder{order}); }
  // Of a connection that listens().
  void ask(const UnitsOrder& order) { send(order); }

  void start(size_t task, const TaskCommand& command);
  void signal(size_t task, int signal);
  void release(size_t task, TaskId id);
  // Files that it was made with, as they are now: for the agent that is there, and those after it.
  void replaceFiles(const SentFiles& files);
  // Of the agent that listens(), once its tasks have ended; one after the other.
  void fetch(const std::string& name) { send(FetchOrder{name}); }
  bool suspended(size_t task) const { return suspended_.contains(task); }
  void look();  // for deadlines and signs of life

  // Tells the agent to end; ended() once the connection is closed.
  void askToEnd(bool drops_snapshots = false);
  bool ended() const { return !process_; }

 private:
  enum class State : uint8_t { kIdle, kConnecting, kOpen };
  // Of kConnecting: what is awaited.
  enum class Stage : uint8_t { kShell, kHaveOrSend, kGreeting, kCopied, kListening };

  // An ssh client.
  struct Process {
    pid_t pid = -1;
    std::unique_ptr<FrameLink> link;
    std::unique_ptr<PipeReader> errors;
    std::unique_ptr<FdWatch> exited;
  };

  void connect();
  void onLine(std::string_view line);
  void onGreeting(std::string_view greeting);
  void sendOffer();
  void sendMore();
  void sendPieces();
  void sendOpen();
  void giveUp(const Error& error);
  void lookAtConnecting(TimePoint now);
  Error ofHost(const Error& error) const { return launcher::ofHost(options_.host, error); }
  void onFrame(FrameKind kind, std::string_view payload);
  void onReport(const LackingReport& report);
  void onReport(const StoredReport& report);
  void onReport(const ListeningReport& report);
  void onReport(const FailedReport& report);
  void onReport(const StartedReport& report);
  void onReport(const ExitedReport& report);
  void onReport(const FetchedReport& report);
  void onReport(const AliveReport& report);
  void onReport(const ProbingReport& report);
  void onReport(const MeasuredReport& report);
  void onReport(const UnitsReport& report);
  void send(const AgentOrder& order);
  void onSaid(std::string_view bytes);
  void onClosed(const std::string& why);
  void onClientExit();
  void lose(const Error& error);

  boost::asio::io_context& io_;
  const Clock& clock_;
  TaskEvents& events_;
  AgentLinkOptions options_;
  Spawner spawner_;
  State state_ = State::kIdle;
  Stage stage_ = Stage::kGreeting;
  HostCopies copies_;
  std::optional<CopySender> sender_;  // of this connection
  size_t agent_sent_ = 0;             // of the agent's bytes
  CopyProgress copied_;
  bool was_used_ = false;  // a task was to start: what is lost from then on is told as events
  bool is_stale_ = false;  // what the agent was sent, before it listened
  bool ending_ = false;
  std::unique_ptr<Process> process_;
  std::optional<Error> failure_;
  std::optional<Error> reason_;  // why this end closes the connection
  std::string said_;             // the last that ssh has said on stderr
  TimePoint since_{};            // the last that came of the attempt to connect
  TimePoint closed_{};           // when the connection was seen to end; zero: it was not
  TimePoint heard_{}, pinged_{};
  std::map<TaskId, uint16_t> ports_;
  std::string programs_;
  std::vector<ProbeAddress> probe_addresses_;
  std::map<size_t, TaskCommand> asked_;  // to start, not started yet
  std::set<size_t> running_;
  std::set<size_t> suspended_;
};

}  // namespace dtf::launcher
