#include "common/base/host_limits.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>
#include <vector>

#include "common/base/file.h"
#include "common/base/host_memory.h"
#include "common/base/text.h"

namespace dtf {

namespace {

constexpr uint64_t kNumberBytesMax = 64;
// An arena of malloc() reserves 128 MiB, and a task has a dozen threads.
constexpr uint64_t kSmallSpace = uint64_t{2} << 30;

std::optional<uint64_t> limitOf(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return limit.rlim_cur;
}

std::string firstLineOf(const std::filesystem::path& file) {
  try {
    const std::string text = readFile(file, kNumberBytesMax);
    return text.substr(0, text.find('\n'));
  } catch (const Error&) {
    return {};  // the kernel has no such file, or no descriptor is left to read it
  }
}

Error pathError(const std::filesystem::filesystem_error& error) {
  const int number = error.code().value();
  const bool forbidden = number == EACCES || number == EPERM;
  return Error(forbidden ? ErrorCode::kPermission : ErrorCode::kBadData,
               fmt::format("cannot look up {}: {}", error.path1().string(), errnoText(number)));
}

}  // namespace

std::string openFilesLimit() {
  const std::optional<uint64_t> limit = limitOf(RLIMIT_NOFILE);
  if (!limit) return "how many this process may have open is not known";
  return fmt::format("this process may have {} files and connections open: raise that (ulimit -n)",
                     *limit);
}

std::string threadsLimit() {
  std::vector<std::string> limits;
  if (const auto user = limitOf(RLIMIT_NPROC))
    limits.push_back(fmt::format("this user may have {} threads (ulimit -u)", *user));
  if (const std::string host = firstLineOf("/proc/sys/kernel/threads-max"); !host.empty())
    limits.push_back(fmt::format("the host {} (kernel.threads-max)", host));
  if (const uint64_t group = ownCgroupLimit("pids.max"); group > 0)
    limits.push_back(fmt::format("the control group {} (pids.max)", group));
  if (const auto space = limitOf(RLIMIT_AS))
    limits.push_back(
        fmt::format("their stacks share {} of address space (ulimit -v)", bytesText(*space)));
  if (limits.empty()) return "how many it may have is not known";
  return join(limits, ", ") + ": raise the lowest, or start fewer tasks with fewer threads";
}

std::string memoryLimit() {
  if (const auto space = limitOf(RLIMIT_AS))
    return fmt::format("this process may have {} of address space: raise that (ulimit -v)",
                       bytesText(*space));
  const HostMemory memory = hostMemory();
  if (memory.total == 0) return "the host has no more";
  return fmt::format("the host, or the control group of this process, has {}",
                     bytesText(memory.total));
}

bool addressSpaceIsSmall() {
  const std::optional<uint64_t> space = limitOf(RLIMIT_AS);
  return space && *space < kSmallSpace;
}

std::string shortageText(int errno_value) {
  const std::string text = errnoText(errno_value);
  switch (errno_value) {
    case EMFILE:
      return text + ": " + openFilesLimit();
    case ENFILE:
      return text + ": the host has no more of them: raise fs.file-max";
    case ENOMEM:
      return text + ": " + memoryLimit();
    case EAGAIN:
      return text + ": " + threadsLimit();
    default:
      return text;
  }
}

namespace {

// "epoll: " of "epoll: Too many open files"; empty: the exception names no operation.
std::string operationOf(const std::system_error& error) {
  std::string_view text = error.what();
  const std::string reason = error.code().message();
  if (!text.ends_with(": " + reason)) return "";
  text.remove_suffix(reason.size());
  return std::string(text);
}

}  // namespace

std::optional<Error> hostError(const std::exception& exception) {
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr)
    return Error(ErrorCode::kUnavailable, "memory ran out: " + memoryLimit());
  const auto* const system = dynamic_cast<const std::system_error*>(&exception);
  if (system == nullptr) return std::nullopt;
  for (const std::errc none :
       {std::errc::too_many_files_open, std::errc::too_many_files_open_in_system,
        std::errc::not_enough_memory, std::errc::resource_unavailable_try_again})
    if (system->code() == none)
      return Error(ErrorCode::kUnavailable,
                   operationOf(*system) + shortageText(static_cast<int>(none)));
  if (const auto* const path = dynamic_cast<const std::filesystem::filesystem_error*>(system))
    return pathError(*path);
  return std::nullopt;
}

namespace {

// The text that the handler writes: the handler itself can't allocate.
std::string& uncaughtText() {
  static std::string text;
  return text;
}

std::terminate_handler& otherTermination() {
  static std::terminate_handler handler = nullptr;
  return handler;
}

[[noreturn]] void terminateByName() {
  try {
    if (const std::exception_ptr uncaught = std::current_exception())
      std::rethrow_exception(uncaught);
  } catch (const std::bad_alloc&) {
    const std::string& text = uncaughtText();
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    ::_exit(exitCode(ErrorCode::kUnavailable));
  } catch (...) {
  }
  otherTermination()();
  std::abort();
}

}  // namespace

void nameUncaughtShortages() {
  uncaughtText() = fmt::format("error event=failed code={} error=\"memory ran out: {}\"\n",
                               errorCodeName(ErrorCode::kUnavailable), memoryLimit());
  if (otherTermination() == nullptr) otherTermination() = std::set_terminate(terminateByName);
}

bool filesRanOut() {
  const Fd fd(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return !fd.valid() && (errno == EMFILE || errno == ENFILE);
}

}  // namespace dtf
