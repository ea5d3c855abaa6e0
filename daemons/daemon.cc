#include "daemons/daemon.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/base/call_log.h"
#include "common/base/core_files.h"
#include "common/base/host_limits.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/base/paused.h"
#include "common/base/print.h"
#include "common/base/service_manager.h"
#include "common/base/stderr_sink.h"
#include "common/base/text.h"
#include "common/net/error_bridge.h"
#include "common/net/tls_keys.h"
#include "common/yaml/sent_files.h"
#include "daemons/restart_note.h"

namespace dtf::daemons {

namespace {
constexpr size_t kNoticeMessageMax =
    16384;  // the launcher drops lines above 64 KiB; the log is complete

// Waits for stderr only as long as the log does.
void printLast(const std::string& text) {
  StderrSink::awaitRoom(log::kErrorPatience);
  StderrSink().write(text);
}

bool hasSeveralLines(std::string_view text) {
  return text.find('\n') != std::string_view::npos;
}

std::string asLines(const std::string& text) {
  return text + (text.ends_with('\n') ? "" : "\n");
}

// Sets the text that `systemctl status` shows for an ended task.
void tellEnd(const std::string& text) {
  if (const ServiceManager* manager = serviceManager()) manager->tell(statusWord(text));
}

// Reads DTF_ATTEMPT, set by a program that restarts this task. Errors: kUsage.
uint32_t attemptFromEnvironment() {
  const char* text = std::getenv("DTF_ATTEMPT");
  if (text == nullptr) return 0;
  uint32_t attempt = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, attempt);
  if (error != std::errc() || stop != end)
    throw Error(ErrorCode::kUsage, std::string("DTF_ATTEMPT=") + text + " is no count of starts");
  // beyond it, the time of day orders the processes
  return std::min(attempt, Incarnation::kAttemptMax);
}

// Reads DTF_REACHED_STEP, set by a launcher that restarts a chief. Errors: kUsage.
std::optional<uint64_t> reachedFromEnvironment() {
  const char* text = std::getenv("DTF_REACHED_STEP");
  if (text == nullptr || *text == '\0') return std::nullopt;
  uint64_t step = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, step);
  if (error != std::errc() || stop != end)
    throw Error(ErrorCode::kUsage, std::string("DTF_REACHED_STEP=") + text + " is no step");
  return step;
}

// Reads DTF_FINISHED_WORKERS="1,3", set by a launcher that restarts a ps. Errors: kUsage.
std::vector<uint32_t> finishedFromEnvironment(const cluster::JobSpec& job) {
  std::vector<uint32_t> ranks;
  const char* text = std::getenv("DTF_FINISHED_WORKERS");
  if (text == nullptr || *text == '\0') return ranks;
  for (const std::string& item : split(text, ',')) {
    uint32_t rank = 0;
    const auto [stop, error] = std::from_chars(item.data(), item.data() + item.size(), rank);
    const bool is_number = error == std::errc() && stop == item.data() + item.size();
    const bool is_known = is_number && rank < job.cluster.worker.size() &&
                          std::find(ranks.begin(), ranks.end(), rank) == ranks.end();
    if (!is_known)
      throw Error(ErrorCode::kUsage, std::string("DTF_FINISHED_WORKERS=") + text +
                                         " is no list of this job's workers");
    ranks.push_back(rank);
  }
  return ranks;
}

// A launcher on another host has sent the task's keys with its other files. Without keys, only this
// host's own user may connect, unless the cluster is `insecure`.
net::Credentials credentialsOf(const cluster::TaskOptions& options) {
  const std::filesystem::path& folder = options.job.cluster.keys;
  if (folder.empty())
    return options.job.cluster.insecure ? net::Credentials::insecure()
                                        : net::Credentials::ownUser();
  leaveNoCoreFiles();
  return net::Credentials::ofKeys(std::make_shared<net::TlsKeys>(
      yaml::placeOfFile(folder), options.task.name(), options.job.job));
}

}  // namespace

int reportFailure(const Error& error) {
  DTF_LOG_CALL("exit " + std::string(errorCodeName(error.code())));
  // Errors that a person must fix are printed in compiler form: a command line, a place in a file.
  // A launcher prints the message itself, once for the job.
  const std::string& message = error.message();
  const bool is_for_person = error.has(ErrorTrait::kHasPlace) || hasSeveralLines(message);
  if (error.code() == ErrorCode::kUsage)
    printLast(std::string(program_invocation_short_name) + ": error: " + message + "\n");
  else if (is_for_person && !notifyEnabled())
    printLast(asLines(message));
  else
    log::error("event=failed code={} error=\"{}\"", errorCodeName(error.code()), error.message());
  notify({{"event", "failed"},
          {"code", std::string(errorCodeName(error.code()))},
          {"message", error.message().substr(0, kNoticeMessageMax)}});
  tellEnd(failedStatus(error));
  return exitCode(error.code());
}

int runDaemon(
    int argc, char** argv, JobKind binary,
    const std::function<int(const cluster::TaskOptions&, const net::Credentials&)>& body) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // beyond `ulimit -f` write() fails, and the error names the file
  nameUncaughtShortages();
  try {
    cluster::TaskOptions options = cluster::parseTaskCommandLine(argc, argv, binary);
    if (options.answer) {  // --help, --version
      print(*options.answer);
      return 0;
    }
    options.attempt = attemptFromEnvironment();
    options.finished_workers = finishedFromEnvironment(options.job);
    options.reached_step = reachedFromEnvironment();
    log::init(options.task.name(), options.log_level);
    if (options.task == kChief && !options.reached_step && !options.fresh && !options.serves)
      if (const auto note = RestartNote::ofEnvironment(options.job))
        options.reached_step = note->reached();
    if (addressSpaceIsSmall())
      log::warning("event=address_space_small reason=\"{}, its allocations are slow\"",
                   memoryLimit());
    const int code = body(options, credentialsOf(options));
    tellEnd(code == 0                 ? "ended"
            : code == kPausedExitCode ? "paused: started again, it goes on"
                                      : "cut short, exit code " + std::to_string(code));
    return code;
  } catch (const std::exception&) {
    return reportFailure(net::currentError());
  }
}

std::optional<Fd> inheritedListener() {
  const char* text = std::getenv("DTF_LISTEN_FD");
  if (text == nullptr) return std::nullopt;
  const int fd = std::atoi(text);
  int listening = 0;
  socklen_t size = sizeof listening;
  if (fd <= 2 || ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 ||
      listening == 0)
    throw Error(ErrorCode::kUsage,
                std::string("DTF_LISTEN_FD=") + text + " is no listening socket");
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ::unsetenv("DTF_LISTEN_FD");
  return Fd(fd);
}

}  // namespace dtf::daemons
