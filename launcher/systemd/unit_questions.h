#pragma once

// What dtf-launch asks of a host whose systemd runs tasks of a job, and what is answered: value
// types, and their JSON, for a host that is reached through its dtf-agent.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/error.h"
#include "launcher/listen_sockets.h"
#include "launcher/ssh/messages.h"
#include "launcher/systemd/service_control.h"

namespace dtf::launcher {

// A unit's name, and what is written as its file.
struct UnitFile {
  std::string name;
  std::string text;
};

// The first question of a connection: whom all others are about.
struct MeetQuestion {
  std::string job;
  std::string launch;              // of this asker alone: letters and digits
  std::filesystem::path run_dir;   // absolute
  std::filesystem::path folder;    // where dtf-launch was started
  std::vector<std::string> units;  // of this host
  bool starts = false;             // units are to be written: there must be programs
};
// Taken from asking whether the names are free to the start of the units, and while those that have
// ended are removed; given back with the connection, too. Those that ask for one launch, since a
// host has two names there, share it.
struct LockQuestion {
  bool take = true;
};
// Whether no unit of that name runs, nor is somebody else's. Errors say which is.
struct FreeQuestion {};
// Whether the units are of the run with these logs; those without a file are anybody's.
struct OwnQuestion {
  std::filesystem::path logs;
};
// Writes the units, and what their tasks read, in the place of what an earlier launch has left.
struct WriteQuestion {
  std::vector<UnitFile> files;
  std::vector<std::string> logs;  // names of the files in the run directory's logs/
  TaskSpecs tasks;                // whose addresses must be free
  bool reachable = false;
  bool keeps_snapshots = false;  // the job goes on from those of an earlier launch
  std::string mark;              // see OpenOrder: its host has the logs, too
  SentFiles sent;
};
// Files that were sent before, as they are now.
struct ReplaceQuestion {
  SentFiles sent;
};
// systemctl `words` UNITS.
struct ControlQuestion {
  std::vector<std::string> words;
};
struct RemoveQuestion {
  bool only_ended = true;
  bool drops_snapshots = false;  // nobody goes on from them
};
// How the units are; before the answer come new bytes of files, where they are wanted.
struct StatesQuestion {
  bool wants_files = false;
  std::string mark;  // as in WriteQuestion: files do not travel to where they are
  // What the launcher has of them; logs, and the summary, only of those named here: of the summary
  // its checksum.
  FileSizes kept;
};
using UnitQuestion =
    std::variant<MeetQuestion, LockQuestion, FreeQuestion, OwnQuestion, WriteQuestion,
                 ReplaceQuestion, ControlQuestion, RemoveQuestion, StatesQuestion>;

// What a unit of that host depends on. Value type.
struct HostFacts {
  std::filesystem::path unit_folder;
  std::vector<std::string> systemctl;
  std::string warning;                     // see ServiceControl
  std::filesystem::path psd, workerd;      // absolute; empty: nothing is to start
  std::map<std::string, std::string> env;  // keptEnvironment()
  std::filesystem::path work_folder;       // where the tasks start
  std::filesystem::path sent_folder;       // of the files that are sent
  int attempt = 1;                         // the number that new logs there may have
};

// To any question; what is not asked for is empty.
struct UnitAnswer {
  std::optional<Error> error;
  std::optional<HostFacts> facts;
  bool locked = false;
  std::vector<UnitState> states;  // ended_usec: how long ago
  bool has_more = false;          // of the files
};

// Errors: kBadConfig for text that is not UTF-8.
std::string questionJson(const UnitQuestion& question);
// Words that are not UTF-8 become some that are.
std::string answerJson(const UnitAnswer& answer);
// Errors: kBadData, saying what is wrong.
UnitQuestion parseQuestion(std::string_view json);
UnitAnswer parseAnswer(std::string_view json);

}  // namespace dtf::launcher
