#include "launcher/systemd/service_control.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <ctime>
#include <map>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf::launcher {

namespace {

namespace fs = std::filesystem;

constexpr Duration kSystemctlWithin = std::chrono::seconds(60);
constexpr const char* kProperties =
    "--property=Id,ActiveState,Result,StatusText,FragmentPath,ExecMainCode,ExecMainStatus,"
    "NRestarts,"
    "Job,InactiveEnterTimestampMonotonic";
constexpr int kExited = 1;  // CLD_EXITED; else a signal

uint64_t numberOf(const std::string& text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

UnitState stateOf(std::map<std::string, std::string>& shown) {
  UnitState state;
  state.name = shown["Id"];
  state.active = shown["ActiveState"];
  state.result = shown["Result"];
  state.status = shown["StatusText"];
  state.file = shown["FragmentPath"];
  state.restarts = static_cast<uint32_t>(numberOf(shown["NRestarts"]));
  state.has_job = numberOf(shown["Job"]) != 0;
  state.ended_usec = numberOf(shown["InactiveEnterTimestampMonotonic"]);
  const int status = static_cast<int>(numberOf(shown["ExecMainStatus"]));
  const uint64_t code = numberOf(shown["ExecMainCode"]);
  if (code > kExited)
    state.exit.signal = status;
  else
    state.exit.code = status;
  return state;
}

std::string userName() {
  const passwd* user = ::getpwuid(::geteuid());
  return user != nullptr ? user->pw_name : std::to_string(::geteuid());
}

fs::path userRuntime() {
  const char* folder = std::getenv("XDG_RUNTIME_DIR");
  if (folder != nullptr && *folder == '/') return folder;
  return "/run/user/" + std::to_string(::geteuid());
}

[[noreturn]] void failSilent(bool is_user, const std::string& said) {
  const std::string why = printable(said.substr(0, said.find_last_not_of('\n') + 1));
  if (!is_user) throw Error(ErrorCode::kUnavailable, "systemd does not answer root: " + why);
  throw Error(
      ErrorCode::kUnavailable,
      fmt::format("the systemd of the user {0} does not answer: {1}\n"
                  "  it runs after a login by console or ssh; to run it without a login, as root: "
                  "loginctl enable-linger {0}; then export XDG_RUNTIME_DIR=/run/user/{2}",
                  userName(), why, ::geteuid()));
}

}  // namespace

uint64_t monotonicUsec() {
  timespec now{};
  DTF_CHECK(::clock_gettime(CLOCK_MONOTONIC, &now) == 0);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

std::vector<UnitState> parseUnitStates(std::string_view shown) {
  std::vector<UnitState> states;
  std::map<std::string, std::string> unit;
  const auto close = [&] {
    if (!unit["Id"].empty()) states.push_back(stateOf(unit));
    unit.clear();
  };
  for (const std::string& line : split(shown, '\n')) {
    const size_t equals = line.find('=');
    if (line.empty())
      close();
    else if (equals != std::string::npos)
      unit[line.substr(0, equals)] = line.substr(equals + 1);
  }
  close();
  return states;
}

ServiceControl::ServiceControl() : command_{"systemctl"}, is_user_(::geteuid() != 0) {
  std::error_code ignored;
  if (!fs::is_directory("/run/systemd/system", ignored))
    throw Error(ErrorCode::kUnavailable,
                "systemd is not process 1 of this host, so no unit can run here: use 'launch: "
                "{via: local}', or 'via: ssh' for other hosts");
  if (is_user_) command_.emplace_back("--user");
  folder_ = is_user_ ? userRuntime() / "systemd/user" : fs::path("/run/systemd/system");
  const ProgramAnswer answer = ask({"show", "--property=Version"});
  if (!answer.status.success()) failSilent(is_user_, answer.err);
}

std::string ServiceControl::warning() const {
  std::error_code ignored;
  if (!is_user_ || fs::exists("/var/lib/systemd/linger/" + userName(), ignored)) return "";
  return "warning: units of " + userName() +
         " end with that user's last session; to let them go on, as root: loginctl enable-linger " +
         userName();
}

std::vector<UnitState> ServiceControl::states(const std::vector<std::string>& units) const {
  DTF_CHECK(!units.empty());
  std::vector<std::string> words = {"show", kProperties, "--"};
  words.insert(words.end(), units.begin(), units.end());
  const ProgramAnswer answer = ask(words);
  std::vector<UnitState> states = parseUnitStates(answer.out);
  if (!answer.status.success() || states.size() != units.size())
    throw Error(ErrorCode::kUnavailable, "systemctl show " + answer.status.text() +
                                             "\n  it printed: " + printable(answer.err));
  return states;
}

void ServiceControl::run(std::vector<std::string> words,
                         const std::vector<std::string>& units) const {
  DTF_CHECK(!words.empty());
  const std::string verb = words.front();
  if (!units.empty()) words.emplace_back("--");
  words.insert(words.end(), units.begin(), units.end());
  const ProgramAnswer answer = ask(words);
  if (answer.status.success()) return;
  const bool is_refused = answer.err.find("denied") != std::string::npos ||
                          answer.err.find("authentication") != std::string::npos;
  throw Error(is_refused ? ErrorCode::kPermission : ErrorCode::kUnavailable,
              fmt::format("{} {} {}\n  it printed: {}", join(command_, " "), verb,
                          answer.status.text(), printable(answer.err)));
}

ProgramAnswer ServiceControl::ask(const std::vector<std::string>& words) const {
  std::vector<std::string> argv = command_;
  argv.emplace_back("--no-ask-password");
  argv.insert(argv.end(), words.begin(), words.end());
  return runProgram(argv, "", kSystemctlWithin);
}

}  // namespace dtf::launcher
