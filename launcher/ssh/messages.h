#pragma once

// The orders that dtf-launch gives to a dtf-agent, and what the agent reports: value types, and
// their JSON. Each end reads what the other has sent as it reads any file: what makes no sense is
// an error with a reason, never a guess.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/error.h"
#include "launcher/exit_status.h"
#include "launcher/launch_plan.h"
#include "launcher/listen_sockets.h"
#include "launcher/network/measurement.h"
#include "launcher/ssh/run_files.h"

namespace dtf::launcher {

// "dtf-agent 4 0.1.0": the protocol's version, then that of the program.
std::string agentGreeting();
// What a host does wrong that greets like that; empty: it is this version's greeting.
std::string wrongGreeting(std::string_view greeting);

// A file of the job, as it was read where the job was started.
using SentFiles = std::map<std::filesystem::path, std::string>;  // absolute path -> text

// Of dtf: what is copied to a host that has none of it, beside the agent.
inline constexpr std::string_view kGpuPlugin = "libdtf_gpu.so";
bool isProgram(std::string_view name);

// A file that is to be on a host: a program of dtf, or data, which the tasks know by a path.
struct OfferedFile {
  std::string digest;  // SHA-256
  uint64_t bytes = 0;
  std::string program;         // its name; empty: data
  std::filesystem::path path;  // of data: absolute
};
inline constexpr size_t kOfferedFilesMax = 1000;  // at a time, and as many folders

// Before the first order, once or more: what the tasks need that comes from the launcher's host.
// The bytes of what the host lacks follow the last of them, in the order of its answers, in frames
// of their own.
struct OfferOrder {
  std::string dir;         // launch.copy.dir
  uint64_t bytes_max = 0;  // of all copies there
  std::vector<OfferedFile> files;
  std::vector<std::filesystem::path> folders;  // that are to be there with whatever is in them
  bool is_last = true;
};

// The first order, and only that: what the connection is about.
struct OpenOrder {
  std::string job;                // its name
  std::string launch;             // of this launch alone: letters and digits
  std::filesystem::path run_dir;  // absolute
  bool drops_snapshots = true;    // those of an earlier launch: the job keeps none
  bool reachable = false;
  double lease_seconds = 10;  // without an order before the tasks end
  // A file of the launcher's run directory: who has it, has the same one. Empty: unknown.
  std::string mark;
  FileSizes kept{};  // that the launcher has of the events
  SentFiles files;
  TaskSpecs tasks;  // to listen for: their addresses
};
// In place of OpenOrder, for `dtf-launch check --network`: there are no tasks, and nothing of the
// host is touched but a temporary folder for the keys. Orders after it: measure, ping, end.
struct ProbeOrder {
  std::string job;
  std::string host;      // as the cluster file has it
  std::string identity;  // that it is to answer with
  bool reachable = false;
  std::filesystem::path
      keys{};  // a folder that has `task`'s, among `files`; empty: the job has none
  std::string task;
  SentFiles files{};
};
// In place of OpenOrder too, and again and again, for `launch: {via: systemd}`: the host's systemd
// runs the tasks, which go on when the connection ends. Each is answered by the report of its
// number.
struct UnitsOrder {
  uint64_t number = 0;
  std::string question;  // JSON of launcher/systemd/unit_questions.h
};
struct MeasureOrder {
  Measure measure;
};
// argv[0] is "psd" or "workerd"; the agent knows where they are.
struct StartOrder {
  size_t task = 0;
  TaskCommand command;
};
struct SendSignalOrder {
  size_t task = 0;
  int signal = 0;
};
struct ReleaseOrder {
  size_t task = 0;
  TaskId id;
};
// Files that were sent before, as they are now; each takes the place of the one before at once.
struct ReplaceOrder {
  SentFiles files;
};
// A file of the trained model (model_files.h), once the tasks have ended: FetchedReport answers,
// and the bytes follow it in frames of copies. One at a time.
struct FetchOrder {
  std::string name;
};
struct PingOrder {};
// The launch has ended: so does the agent.
struct EndOrder {
  bool drops_snapshots = false;  // the job is over, nobody goes on from them
};
using AgentOrder =
    std::variant<OfferOrder, OpenOrder, ProbeOrder, UnitsOrder, MeasureOrder, StartOrder,
                 SendSignalOrder, ReleaseOrder, ReplaceOrder, FetchOrder, PingOrder, EndOrder>;

// The answer to an offer: which of its files are to be sent.
struct LackingReport {
  std::vector<size_t> files;  // counted from 0, rising
};
// How much of what was lacking is safe there; all of it: each file is whole, and as it was offered.
struct StoredReport {
  uint64_t bytes = 0;  // since the connection was made
};
struct ListeningReport {
  std::map<TaskId, uint16_t> ports;  // of the tasks whose port was `auto`
  std::string programs;              // a digest of psd and workerd there
};
// What was ordered can't be done.
struct FailedReport {
  std::optional<size_t> task;  // that was to start; none: the connection is of no use
  ErrorCode code = ErrorCode::kUnavailable;
  std::string message;
};
struct StartedReport {
  size_t task = 0;
};
struct ExitedReport {
  size_t task = 0;
  ExitStatus status;
};
// The answer to FetchOrder.
struct FetchedReport {
  // kSame, of a manifest alone: the launcher has this run directory.
  enum class Found : uint8_t { kAbsent, kSame, kThere } found = Found::kAbsent;
  uint64_t bytes = 0;  // that follow
};
struct AliveReport {
  std::vector<size_t> suspended;
};
// The answer to ProbeOrder.
struct ProbingReport {
  std::vector<ProbeAddress> addresses;  // at least one, the first is that of the cluster file
};
struct MeasuredReport {
  Measured measured;
};
// The answer to UnitsOrder.
struct UnitsReport {
  uint64_t number = 0;
  std::string answer;  // JSON, likewise
};
using AgentReport = std::variant<LackingReport, StoredReport, ListeningReport, FailedReport,
                                 StartedReport, ExitedReport, FetchedReport, AliveReport,
                                 ProbingReport, MeasuredReport, UnitsReport>;

// Errors: kBadConfig for text that is not UTF-8: what the far end does is what was meant, or
// nothing.
std::string orderJson(const AgentOrder& order);
// Words that are not UTF-8 become some that are.
std::string reportJson(const AgentReport& report);
// Errors: kBadData, saying what is wrong.
AgentOrder parseOrder(std::string_view json);
AgentReport parseReport(std::string_view json);

}  // namespace dtf::launcher
