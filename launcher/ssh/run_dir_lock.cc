#include "launcher/ssh/run_dir_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kLockPrefix = ".launch-";
constexpr int kOpenTriesMax = 100;
constexpr int kLookAgainMs = 50;

bool isSameFile(int fd, const fs::path& path) {
  struct stat held {
  }, named{};
  return ::fstat(fd, &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

// Shared with the launch's other agents. The file may be removed between the two calls, by who took
// it for abandoned.
Fd lockShared(const fs::path& file) {
  for (int i = 0; i < kOpenTriesMax; ++i) {
    Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd.valid()) failWrite(file, errno);
    const bool is_held = ::flock(fd.get(), LOCK_SH | LOCK_NB) == 0;
    if (!is_held && errno != EWOULDBLOCK && errno != EINTR) failWrite(file, errno);
    if (is_held && isSameFile(fd.get(), file)) return fd;
    ::poll(nullptr, 0, 1);  // its holder is about to remove it
  }
  failWrite(file, EWOULDBLOCK);
}

// Removes the file unless somebody holds it.
bool removeIfFree(const fs::path& file) {
  const Fd fd(::open(file.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return errno == ENOENT;
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return false;
  if (isSameFile(fd.get(), file)) ::unlink(file.c_str());
  return true;
}

// Whether no other launch holds its file; those that nobody holds are removed.
bool isAlone(const fs::path& run_dir, const fs::path& own) {
  bool alone = true;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_dir, error)) {
    const bool is_lock = entry.path().filename().string().starts_with(kLockPrefix);
    if (is_lock && entry.path() != own) alone = removeIfFree(entry.path()) && alone;
  }
  if (error) failWrite(run_dir, error.value());
  return alone;
}

}  // namespace

RunDirLock::RunDirLock(const fs::path& run_dir, const std::string& launch, Duration patience)
    : file_(run_dir / (std::string(kLockPrefix) + launch)) {
  DTF_CHECK_MSG(!launch.empty() && std::all_of(launch.begin(), launch.end(),
                                               [](unsigned char c) { return std::isalnum(c); }),
                launch);
  lock_ = lockShared(file_);
  const SystemClock clock;
  const TimePoint deadline = clock.now() + patience;
  while (!isAlone(run_dir, file_)) {
    if (clock.now() >= deadline) {
      release();
      throw Error(ErrorCode::kUnavailable,
                  "another launch, perhaps from another host, runs tasks in " + run_dir.string() +
                      ": end that one, or give this job another run_dir");
    }
    ::poll(nullptr, 0, kLookAgainMs);
  }
}

RunDirLock::~RunDirLock() {
  release();
}

void RunDirLock::release() {
  lock_.reset();
  removeIfFree(file_);
}

}  // namespace dtf::launcher
