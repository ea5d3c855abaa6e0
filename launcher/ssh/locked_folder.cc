#include "launcher/ssh/locked_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr size_t kRandomBytes = 6;

// Of one that nobody holds any more.
Fd lockOf(const fs::path& folder) {
  Fd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (lock.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    lock.reset();
    errno = error;
  }
  return lock;
}

std::string ofThisHost(std::string_view prefix) {
  utsname names{};
  DTF_CHECK(::uname(&names) == 0);
  return std::string(prefix) + names.nodename + "-";
}

void removeAbandoned(const fs::path& parent, std::string_view prefix) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    if (lockOf(entry.path()).valid()) fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

LockedFolder::LockedFolder(const fs::path& parent, std::string_view prefix) {
  DTF_CHECK_MSG(parent.is_absolute() && prefix.starts_with('.'), parent.string());
  const std::string own = ofThisHost(prefix);
  removeAbandoned(parent, own);
  // It has no lock yet, and nothing in it.
  std::string pattern = (parent / (".new-" + own.substr(1) + "XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) failWrite(pattern, errno);  // it is 0700
  folder_ = pattern;
  try {
    // Others take what has the name and no lock for abandoned: it has the lock first.
    lock_ = lockOf(folder_);
    if (!lock_.valid()) failWrite(folder_, errno);
    const fs::path named = parent / (own + pattern.substr(pattern.size() - kRandomBytes));
    if (::rename(folder_.c_str(), named.c_str()) != 0) failWrite(named, errno);
    folder_ = named;
  } catch (const Error&) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    throw;
  }
}

LockedFolder::~LockedFolder() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace dtf::launcher
