#pragma once

// The orders that dtf-launch gives to a dtf-agent, and what the agent reports: value types, and their
// JSON. Each end reads what the other has sent as it reads any file: what makes no sense is an error
// with a reason, never a guess.

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
#include "launcher/ssh/run_files.h"

namespace dtf::launcher {

// "dtf-agent 2 0.1.0": the protocol's version, then that of the program.
std::string agentGreeting();
// What a host does wrong that greets like that; empty: it is this version's greeting.
std::string wrongGreeting(std::string_view greeting);

// A file of the job, as it was read where the job was started.
using SentFiles = std::map<std::filesystem::path, std::string>;  // absolute path -> text

// The first order, and only that: what the connection is about.
struct OpenOrder {
  std::string job;                // its name
  std::string launch;             // of this launch alone: letters and digits
  std::filesystem::path run_dir;  // absolute
  bool is_first = true;           // of this launch: what an earlier one left is removed
  bool reachable = false;
  double lease_seconds = 10;  // without an order before the tasks end
  // A file of the launcher's run directory: who has it, has the same one. Empty: unknown.
  std::string mark;
  FileSizes kept{};  // that the launcher has of the events
  SentFiles files;
  TaskSpecs tasks;  // to listen for: their addresses
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
struct PingOrder {};
struct EndOrder {};  // the job has ended: so does the agent
using AgentOrder = std::variant<OpenOrder, StartOrder, SendSignalOrder, ReleaseOrder, ReplaceOrder,
                                PingOrder, EndOrder>;

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
struct AliveReport {
  std::vector<size_t> suspended;
};
using AgentReport =
    std::variant<ListeningReport, FailedReport, StartedReport, ExitedReport, AliveReport>;

// Errors: kBadConfig for text that is not UTF-8: what the far end does is what was meant, or nothing.
std::string orderJson(const AgentOrder& order);
// Words that are not UTF-8 become some that are.
std::string reportJson(const AgentReport& report);
// Errors: kBadData, saying what is wrong.
AgentOrder parseOrder(std::string_view json);
AgentReport parseReport(std::string_view json);

}  // namespace dtf::launcher
