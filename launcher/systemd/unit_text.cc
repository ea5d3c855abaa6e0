#include "launcher/systemd/unit_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf::launcher {

namespace {

// As those of configs/systemd, but for 124: with somebody who waits for it, a job that nobody came
// to ends.
constexpr const char* kRestart =
    "Restart=on-failure\n"
    "RestartForceExitStatus=75\n"
    "RestartPreventExitStatus=1 2 65 73 77 78 124 130 143\n"
    "RestartSec=1s\n";

// For a task's note to its next process (daemons/restart_note.h).
std::string keptFolder(const std::string& unit) {
  return "RuntimeDirectory=" + std::filesystem::path(unit).stem().string() +
         "\nRuntimeDirectoryMode=0700\nRuntimeDirectoryPreserve=restart\n";
}

constexpr const char* kWatched =
    "SuccessExitStatus=75\n"
    "WatchdogSec=30s\n"
    "WatchdogSignal=SIGKILL\n"
    "TimeoutStartSec=90s\n"
    "TimeoutStopSec=60s\n"
    "LimitNOFILE=65536\n"
    "NoNewPrivileges=yes\n";

bool isControl(unsigned char c) {
  return c < ' ' || c == 0x7f;
}

// A path that is the rest of its line, without quotes.
std::string unitPath(const std::filesystem::path& path) {
  DTF_CHECK_MSG(path.is_absolute(), path.string());
  std::string text;
  for (const char c : path.string()) {
    if (isControl(static_cast<unsigned char>(c)))
      throw Error(ErrorCode::kBadConfig,
                  "a unit of systemd can't name the folder '" + printable(path.string()) +
                      "': run the job where the path has no control characters");
    text += c == '%' ? "%%" : std::string(1, c);
  }
  if (text.ends_with('\\') || text.ends_with(' '))
    throw Error(ErrorCode::kBadConfig, "a unit of systemd can't name the folder '" + text +
                                           "': run the job where the path ends otherwise");
  return text;
}

// ExecStart= would put variables of the environment in the place of `$NAME`.
std::string commandWord(std::string_view word) {
  std::string doubled;
  for (const char c : word) doubled += c == '$' ? "$$" : std::string(1, c);
  return unitWord(doubled);
}

}  // namespace

std::string unitName(const std::string& job, TaskId id) {
  return fmt::format("dtf-{}@{}-{}.service", job, jobName(id.job), id.index);
}

std::string unitWord(std::string_view word) {
  std::string text = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\')
      text += std::string("\\") + c;
    else if (c == '%')
      text += "%%";
    else if (isControl(static_cast<unsigned char>(c)))
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      text += c;
  }
  return text + "\"";
}

std::string runLine(const std::filesystem::path& logs) {
  return "# Logs: " + printable(logs.string());
}

std::map<std::string, std::string> keptEnvironment() {
  std::map<std::string, std::string> kept;
  for (const char* name : {"HOME", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ", "XDG_CACHE_HOME",
                           "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
                           // What decides how, and so to which last bit, a task computes.
                           "CUDA_VISIBLE_DEVICES", "DNNL_MAX_CPU_ISA", "DTF_GPU_PLUGIN",
                           "DTF_MAX_CPU_ISA", "DTF_WINOGRAD", "NVIDIA_TF32_OVERRIDE"})
    if (const char* value = std::getenv(name)) kept[name] = value;
  return kept;
}

std::string unitText(const cluster::JobSpec& job, const TaskCommand& command,
                     const UnitSettings& settings) {
  DTF_CHECK(!command.argv.empty() && std::filesystem::path(command.argv[0]).is_absolute());
  const cluster::RestartsSpec& restarts = job.launch.restarts;
  std::string text = fmt::format(
      "# Written by dtf-launch, which removes it when the job has ended.\n"
      "{}\n[Unit]\nDescription=dtf: {} of the job {}\n",
      runLine(settings.log.parent_path()), command.id.name(), job.job);
  if (restarts.max > 0)
    text += fmt::format("StartLimitIntervalSec={}s\nStartLimitBurst={}\n",
                        static_cast<uint64_t>(std::ceil(60 * restarts.refill_minutes)),
                        restarts.max + 1);
  text += "\n[Service]\nType=notify\nNotifyAccess=main\nExecStart=";
  // Of the program's path systemd takes `$` as it is.
  std::vector<std::string> words = {unitWord(command.argv[0])};
  for (size_t i = 1; i < command.argv.size(); ++i) words.push_back(commandWord(command.argv[i]));
  text += join(words, " ") + "\nWorkingDirectory=" + unitPath(command.folder) + "\n";
  std::map<std::string, std::string> env = settings.env;
  for (const auto& [name, value] : command.env) env[name] = value;
  for (const auto& [name, value] : env)
    text += "Environment=" + unitWord(name + "=" + value) + "\n";
  const std::string log = unitPath(settings.log);
  text += "StandardOutput=append:" + log + "\nStandardError=append:" + log + "\n";
  text += restarts.max > 0 ? kRestart : "Restart=no\n";
  return text + keptFolder(unitName(job.job, command.id)) + kWatched;
}

}  // namespace dtf::launcher
