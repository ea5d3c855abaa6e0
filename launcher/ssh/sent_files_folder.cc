#include "launcher/ssh/sent_files_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = ".sent-files-";
constexpr std::string_view kNewPrefix = ".new-sent-files-";  // it has no lock yet, and no files

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

void removeAbandoned(const fs::path& run_dir) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run_dir, ignored)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    if (lockOf(entry.path()).valid()) fs::remove_all(entry.path(), ignored);
  }
}

void write(const fs::path& file, std::string_view text) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) failWrite(file, error.value());
  const Fd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid() || writeAll(fd.get(), text) > 0) failWrite(file, errno);
}

}  // namespace

SentFilesFolder::SentFilesFolder(const fs::path& run_dir, const SentFiles& files) {
  DTF_CHECK_MSG(run_dir.is_absolute(), run_dir.string());
  makeWritableFolder(run_dir);
  removeAbandoned(run_dir);
  std::string pattern = (run_dir / (std::string(kNewPrefix) + "XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) failWrite(pattern, errno);  // it is 0700
  folder_ = pattern;
  try {
    // Other agents take what has the name and no lock for abandoned: it has the lock first.
    lock_ = lockOf(folder_);
    if (!lock_.valid()) failWrite(folder_, errno);
    const fs::path named = run_dir / (std::string(kPrefix) + pattern.substr(pattern.size() - 6));
    if (::rename(folder_.c_str(), named.c_str()) != 0) failWrite(named, errno);
    folder_ = named;
    for (const auto& [path, text] : files) write(folder_ / path.relative_path(), text);
  } catch (const Error&) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    throw;
  }
}

void SentFilesFolder::replace(const fs::path& file, std::string_view text) {
  const fs::path place = folder_ / file.relative_path();
  if (file.lexically_normal() != file || !fs::is_regular_file(fs::symlink_status(place)))
    throw Error(ErrorCode::kBadData, "no file was sent as '" + file.string() + "'");
  const fs::path unfinished = place.string() + ".new";
  ::unlink(unfinished.c_str());  // where there was no room for it before
  write(unfinished, text);
  if (::rename(unfinished.c_str(), place.c_str()) != 0) failWrite(place, errno);
}

SentFilesFolder::~SentFilesFolder() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace dtf::launcher
