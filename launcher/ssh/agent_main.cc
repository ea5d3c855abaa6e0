// dtf-agent: what dtf-launch has ssh start on each host of a job.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <string>

#include "common/base/core_files.h"
#include "common/base/error.h"
#include "common/base/host_limits.h"
#include "common/base/print.h"
#include "launcher/output.h"
#include "launcher/ssh/agent.h"

namespace {

constexpr const char* kHelp =
    "dtf-agent: runs the tasks of a job on this host, for a dtf-launch on another host.\n"
    "dtf-launch starts it over ssh if the cluster file has 'launch: {via: ssh}', and sends it "
    "orders\n"
    "on stdin. There is no use for it by hand.\n"
    "  --help, --version\n";

std::filesystem::path ownFolder() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

dtf::launcher::Binaries findBinaries() {
  const char* path = std::getenv("PATH");
  return dtf::launcher::findBinaries(std::nullopt, ownFolder(), path == nullptr ? "" : path);
}

bool isConnection(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

// All of them belong to the process, so nothing below main() changes them.
void settleSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // beyond `ulimit -f` write() fails, and that names the file
  std::signal(SIGCHLD, SIG_DFL);  // inherited as ignored, it would hide how the tasks end
  // Slurm sends it to every process of a job that ends. The agent ends with its connection, after
  // the tasks, which save first.
  std::signal(SIGTERM, SIG_IGN);
}

int run(const std::string& word) {
  using namespace dtf;
  if (word == "--version") print(std::string("dtf-agent ") + DTF_VERSION + "\n");
  if (word == "--help") print(kHelp);
  if (word == "--version" || word == "--help") return 0;
  if (!word.empty() || !isConnection(STDIN_FILENO)) throw Error(ErrorCode::kUsage, kHelp);
  // Beyond stderr: a task inherits none of them, and a library that writes to stdout does no harm.
  Fd in(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  Fd out(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!in.valid() || !out.valid())
    throw Error(ErrorCode::kUsage, "stdin and stdout must be open: see dtf-agent --help");
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  const int null_fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(null_fd, STDIN_FILENO);
  ::close(null_fd);
  settleSignals();
  return launcher::Agent(std::move(in), std::move(out), findBinaries).run();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace dtf;
  nameUncaughtShortages();
  try {
    leaveNoCoreFiles();  // keys come later, over stdin
    return run(argc < 2 ? "" : argc == 2 ? argv[1] : "--");
  } catch (const Error& error) {
    launcher::printBounded(STDERR_FILENO, "dtf-agent: " + error.message() + "\n");
    return exitCode(error.code());
  } catch (const std::exception& error) {
    launcher::printBounded(STDERR_FILENO,
                           std::string("dtf-agent: internal error: ") + error.what() + "\n");
    return exitCode(ErrorCode::kInternal);
  }
}
