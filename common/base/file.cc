#include "common/base/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <system_error>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf {

namespace fs = std::filesystem;

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int Fd::release() {
  const int fd = fd_;
  fd_ = -1;
  return fd;
}

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void failWrite(const fs::path& path, int errno_value) {
  const bool forbidden = errno_value == EACCES || errno_value == EPERM;
  throw Error(forbidden ? ErrorCode::kPermission : ErrorCode::kCannotWrite,
              "cannot write " + path.string() + ": " + errnoText(errno_value));
}

size_t writeAll(int fd, std::string_view bytes) {
  DTF_CHECK(fd >= 0);
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return bytes.size();
}

namespace {

// Creates a new file. Removes whatever has its predictable name first, even a link: writing through
// a link would change another user's file.
Fd createAnew(const fs::path& path, mode_t mode) {
  ::unlink(path.c_str());
  return Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
}

constexpr std::string_view kTemporaryMark = ".tmp.";
constexpr std::string_view kProbeMark = ".probe.";

// Returns the process that made the temporary file with this name: its number is the rest of the
// name behind a mark.
std::optional<pid_t> processOf(std::string_view name) {
  for (const std::string_view mark : {kTemporaryMark, kProbeMark}) {
    const size_t at = name.rfind(mark);
    if (at == std::string_view::npos) continue;
    const std::string_view digits = name.substr(at + mark.size());
    pid_t process = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), process);
    if (error == std::errc() && end == digits.data() + digits.size() && process > 0) return process;
  }
  return std::nullopt;
}

bool isThere(pid_t process) {
  return ::kill(process, 0) == 0 || errno != ESRCH;
}

// Makes the names in the folder durable.
void syncFolder(const fs::path& folder) {
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) failWrite(folder, errno);
}

// Returns `folder` and its parents that do not exist, deepest first.
std::vector<fs::path> missingFolders(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> missing;
  fs::path at = fs::absolute(folder, error).lexically_normal();
  // If a part can't be looked up, create_directories() reports the reason.
  while (!error && at.has_relative_path() && !fs::exists(at, error)) {
    missing.push_back(at);
    at = at.parent_path();
  }
  return missing;
}

}  // namespace

std::string readFile(const fs::path& path, uint64_t bytes_max) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::kBadData, "cannot read " + path.string() + ": " + why);
  };
  // O_NONBLOCK: a named pipe without a writer must not block the reader.
  Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid() && errno == EACCES)
    throw Error(ErrorCode::kPermission, "cannot read " + path.string() + ": " + errnoText(errno));
  if (!fd.valid()) fail(errnoText(errno));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) fail(errnoText(errno));
  if (S_ISDIR(info.st_mode)) fail("is a folder");
  const auto fail_size = [&] {
    fail("larger than the limit of " + std::to_string(bytes_max) + " bytes");
  };
  if (S_ISREG(info.st_mode) && static_cast<uint64_t>(info.st_size) > bytes_max) fail_size();
  std::string bytes;
  char buffer[65536];
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {  // the pipe has a writer: wait for it
      ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
      continue;
    }
    if (n < 0) fail(errnoText(errno));
    if (n == 0 && bytes.empty() && S_ISFIFO(info.st_mode)) fail("is a pipe that nobody writes to");
    if (n == 0) return bytes;
    if (bytes.size() + static_cast<size_t>(n) > bytes_max) fail_size();
    bytes.append(buffer, static_cast<size_t>(n));
  }
}

void atomicReplace(const fs::path& path, std::string_view bytes) {
  DTF_CHECK_MSG(path.has_filename(), path.string());
  const fs::path temporary =
      path.string() + std::string(kTemporaryMark) + std::to_string(::getpid());
  const Fd fd = createAnew(temporary, 0644);
  if (!fd.valid()) failWrite(temporary, errno);
  try {
    if (writeAll(fd.get(), bytes) > 0) failWrite(temporary, errno);
    if (::fsync(fd.get()) != 0) failWrite(temporary, errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) failWrite(path, errno);
  } catch (const Error&) {
    ::unlink(temporary.c_str());
    throw;
  }
  syncFolder(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

void removeTemporaries(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::optional<pid_t> process = processOf(entry->path().filename().native());
    if (process && !isThere(*process)) ::unlink(entry->path().c_str());
  }
}

void makeWritableFolder(const fs::path& folder) {
  const std::vector<fs::path> missing = missingFolders(folder);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) failWrite(folder, error.value());
  // A new name is durable once its parent is synced. The topmost goes first, so that no name is
  // durable without its parents.
  for (auto made = missing.rbegin(); made != missing.rend(); ++made)
    syncFolder(made->parent_path());
  const fs::path probe = folder / (std::string(kProbeMark) + std::to_string(::getpid()));
  if (!createAnew(probe, 0600).valid()) failWrite(folder, errno);
  ::unlink(probe.c_str());
}

}  // namespace dtf
