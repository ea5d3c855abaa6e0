#include "launcher/ssh/copied_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/data/data_files.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr size_t kDigestReadBytes = size_t{1} << 20;
constexpr size_t kStepBytes = size_t{16} << 20;
constexpr uint64_t kFileCost = 4096;  // of a small one, against the bytes of a large one

// The bytes are what they are now: who reads the file says what is wrong with it.
void add(CopiedFile copied, CopiedFiles& needed) {
  std::error_code unknown;
  const uint64_t bytes = fs::file_size(copied.file, unknown);
  if (!unknown) copied.offered.bytes = bytes;
  needed.files.push_back(std::move(copied));
}

// As the tasks will have them, wherever they run. A file may be named twice, and of two data sets.
void addData(const cluster::DatasetSpec& dataset, std::set<fs::path>& known, CopiedFiles& needed) {
  const data::DataFiles found = data::filesOf(dataset);
  for (const fs::path& file : found.files) {
    CopiedFile copied;
    copied.file = fs::absolute(file);
    copied.offered.path = copied.file.lexically_normal();
    if (known.insert(copied.offered.path).second) add(std::move(copied), needed);
  }
  for (const fs::path& folder : found.folders)
    needed.folders.push_back(fs::absolute(folder).lexically_normal());
}

}  // namespace

FileStamp stampOf(const struct stat& status) {
  return {status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size),
          status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

uint64_t CopiedFiles::bytes() const {
  uint64_t all = 0;
  for (const CopiedFile& file : files) all += file.offered.bytes;
  return all;
}

CopiedFiles filesFor(const cluster::JobSpec& job, const ProgramFiles& programs,
                     const std::vector<TaskId>& tasks) {
  CopiedFiles needed;
  if (job.launch.copy.programs)
    for (const auto& [name, file] : programs) {
      if (!isProgram(name)) continue;
      CopiedFile copied;
      copied.file = file;
      copied.offered.program = name;
      add(std::move(copied), needed);
    }
  const bool has_worker = std::any_of(
      tasks.begin(), tasks.end(), [](const TaskId& task) { return task.job == JobKind::kWorker; });
  const bool has_chief = std::find(tasks.begin(), tasks.end(), kChief) != tasks.end();
  if (job.launch.copy.data && job.train) {
    std::set<fs::path> known;
    if (has_worker) addData(job.train->data.train, known, needed);
    if (has_chief && job.train->data.eval) addData(*job.train->data.eval, known, needed);
  }
  if (needed.files.size() > kCopiedFilesMax)
    throw Error(ErrorCode::kBadConfig,
                fmt::format("the data are {} files, and launch.copy copies {} at most: copy them "
                            "to the hosts in another way",
                            needed.files.size(), kCopiedFilesMax));
  return needed;
}

Fd openToCopy(const fs::path& file, FileStamp& stamp) {
  Fd fd(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  const auto fail = [&file](const std::string& why, ErrorCode code) {
    throw Error(code, file.string() + ": cannot be copied to other hosts: " + why);
  };
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0)
    fail(std::strerror(errno), errno == EACCES ? ErrorCode::kPermission : ErrorCode::kBadData);
  if (!S_ISREG(status.st_mode)) fail("it is not a regular file", ErrorCode::kBadData);
  stamp = stampOf(status);
  return fd;
}

void failChanged(const fs::path& file) {
  throw Error(ErrorCode::kBadData, file.string() +
                                       ": it changed while it was copied to other hosts: start the "
                                       "job when no process writes to it");
}

void FileDigests::add(CopiedFiles& files) {
  DTF_CHECK(!started_);
  for (CopiedFile& file : files.files) {
    const auto [known, is_new] = files_.try_emplace(file.file);
    known->second.wanted.push_back(&file);
    if (is_new) bytes_ += file.offered.bytes;
  }
}

void FileDigests::begin() {
  DTF_CHECK(started_ && at_ != files_.end());
  in_ = openToCopy(at_->first, at_->second.stamp);
  read_ = 0;
}

void FileDigests::finish() {
  Known& known = at_->second;
  struct stat status {};
  if (::fstat(in_.get(), &status) != 0 || stampOf(status) != known.stamp ||
      read_ != known.stamp.bytes)
    failChanged(at_->first);
  DTF_CHECK_MSG(!known.wanted.empty(), at_->first.string());
  in_.reset();
  known.digest = sha256_.finish();
  for (CopiedFile* file : known.wanted) {
    file->offered.digest = known.digest;
    file->offered.bytes = known.stamp.bytes;
    file->stamp = known.stamp;
  }
  ++at_;
}

bool FileDigests::step() {
  if (!std::exchange(started_, true)) at_ = files_.begin();
  std::string buffer(kDigestReadBytes, '\0');
  for (uint64_t done = 0; done < kStepBytes && at_ != files_.end();) {
    if (!in_.valid()) begin();
    const ssize_t n = ::read(in_.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      throw Error(ErrorCode::kBadData,
                  at_->first.string() + ": cannot read it: " + std::strerror(errno));
    sha256_.update({buffer.data(), static_cast<size_t>(n)});
    read_ += static_cast<uint64_t>(n);
    done_ += static_cast<uint64_t>(n);
    done += static_cast<uint64_t>(n) + kFileCost;
    if (n == 0) finish();
  }
  return at_ != files_.end();
}

}  // namespace dtf::launcher
