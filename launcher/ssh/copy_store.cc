#include "launcher/ssh/copy_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kUsePrefix = ".use-";
constexpr std::string_view kNewPrefix = ".new-";
// One fsync of the disk for so much: the last one then takes no longer than the others.
constexpr uint64_t kBatchBytes = uint64_t{32} << 20;
constexpr size_t kBatchFiles = 200;                 // that are open
constexpr uint64_t kLeftFree = uint64_t{64} << 20;  // for whoever else writes there
constexpr size_t kAgentsKept = 4;
// A temporary file without a lock: its maker has not come to that yet, or was killed.
constexpr auto kLeftoverAfter = std::chrono::minutes(10);
constexpr uint64_t kProgramBytesMax = uint64_t{1} << 30;
// Of each file that was stored, when it was written: somebody who writes to it changes that. When
// it was used last is in the other of its times.
constexpr time_t kStoredAt = 1;

std::string digestOfFile(const fs::path& file) {
  Sha256 sha256;
  sha256.update(readFile(file, kProgramBytesMax));
  return sha256.finish();
}

void makeFolders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) failWrite(folder, error.value());
}

// Unless it is there.
void makeOwnFolder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) failWrite(folder, errno);
}

uint64_t freeBytes(int fd) {
  struct statvfs disk {};
  if (::fstatvfs(fd, &disk) != 0) return UINT64_MAX;  // it will say so itself
  return uint64_t{disk.f_bavail} * disk.f_frsize;
}

struct Unused {
  timespec used{};
  uint64_t bytes = 0;
  std::string name;
};

// Nobody else does that. One that can't be marked so is sent again.
void markStored(const fs::path& file) {
  const std::array<timespec, 2> times{timespec{0, UTIME_NOW}, timespec{kStoredAt, 0}};
  ::utimensat(AT_FDCWD, file.c_str(), times.data(), 0);
}

// Of the copies those that nobody uses; `all` is increased by the bytes of each.
std::vector<Unused> unusedFiles(const fs::path& folder, uint64_t& all) {
  std::vector<Unused> unused;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    struct stat status {};
    const std::string name = entry.path().filename();
    if (::lstat(entry.path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const auto bytes = static_cast<uint64_t>(status.st_size);
    all += bytes;
    if (status.st_nlink == 1 && isSha256(name)) unused.push_back({status.st_atim, bytes, name});
  }
  std::sort(unused.begin(), unused.end(), [](const Unused& a, const Unused& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  return unused;
}

// All but the newest; one that runs needs its file no more.
void removeOldAgents(const fs::path& agents) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(agents, ignored))
    found.emplace_back(fs::last_write_time(entry.path(), ignored), entry.path());
  std::sort(found.begin(), found.end());
  for (size_t i = 0; i + kAgentsKept < found.size(); ++i) fs::remove_all(found[i].second, ignored);
}

}  // namespace

fs::path copiesFolder(const std::string& dir) {
  const auto folder = [](const char* variable) {
    const char* value = std::getenv(variable);
    return fs::path(value == nullptr ? "" : value);
  };
  if (fs::path(dir).is_absolute()) return fs::path(dir).lexically_normal();
  const fs::path home = folder("HOME"), cache = folder("XDG_CACHE_HOME");
  if (dir.empty() && cache.is_absolute()) return cache / "dtf/copies";
  if (!home.is_absolute())
    throw Error(
        ErrorCode::kBadConfig,
        "this user has no home folder there: name a folder for the copies with launch.copy.dir");
  return (home / (dir.empty() ? fs::path(".cache/dtf/copies") : fs::path(dir))).lexically_normal();
}

CopyStore::CopyStore(fs::path folder) : folder_(std::move(folder)) {
  makeFolders(folder_.parent_path());
  makeOwnFolder(folder_);
  disk_ = Fd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!disk_.valid() || ::fstat(disk_.get(), &status) != 0) failWrite(folder_, errno);
  constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
  const char* wrong = status.st_uid != ::geteuid()           ? " is another user's"
                      : (status.st_mode & kOthersWrite) != 0 ? " may be written by others"
                                                             : nullptr;
  if (wrong != nullptr)
    throw Error(ErrorCode::kPermission, folder_.string() + wrong +
                                            ": another user could change the copies in it; name "
                                            "another folder with launch.copy.dir");
  makeOwnFolder(folder_ / "files");
  use_.emplace(folder_, kUsePrefix);
  removeLeftovers();
}

CopyStore::~CopyStore() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  for (const Written& written : batch_) ::unlink(written.temporary.c_str());
}

// Of agents that were killed.
void CopyStore::removeLeftovers() {
  std::error_code ignored;
  const auto now = fs::file_time_type::clock::now();
  for (const auto& entry : fs::directory_iterator(folder_ / "files", ignored)) {
    if (!entry.path().filename().string().starts_with(kNewPrefix)) continue;
    if (now - entry.last_write_time(ignored) < kLeftoverAfter) continue;
    const Fd fd(::open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
  }
  removeOldAgents(folder_ / "agents");
}

fs::path CopyStore::program(const std::string& name) const {
  // As an installed program looks for it.
  return use_->path() / (name == kGpuPlugin ? "lib/dtf" : "bin") / name;
}

fs::path CopyStore::placeOf(const OfferedFile& file) const {
  return file.program.empty() ? dataFolder() / file.path.relative_path() : program(file.program);
}

// False: it is not there any more.
bool CopyStore::link(const fs::path& file, const fs::path& place) {
  if (place.parent_path() != made_) makeFolders(place.parent_path());
  made_ = place.parent_path();
  if (::link(file.c_str(), place.c_str()) == 0) return true;
  if (errno != ENOENT) failWrite(place, errno);
  return false;
}

// Whether it is there. What is there has had its digest, and nobody has written to it since;
// programs have it again, as they are to run.
bool CopyStore::use(const OfferedFile& file) {
  const fs::path there = fileOf(file.digest), place = placeOf(file);
  struct stat status {};
  if (::lstat(there.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (!link(there, place)) return false;  // another agent has made room
  const bool is_whole = static_cast<uint64_t>(status.st_size) == file.bytes &&
                        status.st_mtim.tv_sec == kStoredAt && status.st_mtim.tv_nsec == 0 &&
                        (file.program.empty() || digestOfFile(place) == file.digest);
  if (!is_whole) {
    ::unlink(place.c_str());
    ::unlink(there.c_str());
    return false;
  }
  markStored(there);  // and used now
  return true;
}

std::vector<size_t> CopyStore::offer(const OfferOrder& order) {
  if (receives_) throw Error(ErrorCode::kBadData, "files are offered while others are being sent");
  for (const fs::path& each : order.folders) makeFolders(dataFolder() / each.relative_path());
  std::vector<size_t> to_send;
  for (size_t i = 0; i < order.files.size(); ++i) {
    const OfferedFile& file = order.files[i];
    const auto known = lacking_at_.find(file.digest);
    if (known != lacking_at_.end() && lacking_[known->second].bytes == file.bytes) {
      lacking_[known->second].places.push_back(placeOf(file));
    } else if (!use(file)) {
      lacking_at_[file.digest] = lacking_.size();
      const std::string name = file.program.empty() ? file.path.string() : file.program;
      lacking_.push_back({file.digest, file.bytes, name, {placeOf(file)}});
      to_send.push_back(i);
    }
  }
  return to_send;
}

void CopyStore::makeRoom(uint64_t bytes_max) {
  DTF_CHECK(!receives_);  // once, after the last offer
  uint64_t incoming = 0, all = 0;
  for (const Lacking& file : lacking_) incoming += file.bytes;
  const std::vector<Unused> unused = unusedFiles(folder_ / "files", all);
  const auto lacks_room = [&] {
    return all + incoming > bytes_max ||
           (incoming > 0 && freeBytes(disk_.get()) < incoming + kLeftFree);
  };
  for (const Unused& file : unused) {
    if (!lacks_room()) break;
    if (::unlink(fileOf(file.name).c_str()) == 0) all -= file.bytes;
  }
  receives_ = true;
  if (incoming == 0) return finishEmptyFiles();
  const uint64_t free = freeBytes(disk_.get());
  if (free < incoming + kLeftFree)
    throw Error(
        ErrorCode::kCannotWrite,
        fmt::format("{} has no room for the copies: they need {}, {} must stay free, and {} are "
                    "free; name another folder with launch.copy.dir",
                    folder_.string(), bytesText(incoming), bytesText(kLeftFree), bytesText(free)));
  if (all + incoming > bytes_max)
    throw Error(
        ErrorCode::kCannotWrite,
        fmt::format("{} has no room for {} of copies: other jobs use {}, and "
                    "launch.copy.max_gib is {}",
                    folder_.string(), bytesText(incoming), bytesText(all), bytesText(bytes_max)));
  finishEmptyFiles();
}

void CopyStore::beginFile() {
  DTF_CHECK(!out_.valid() && temporary_.empty());
  std::string pattern = (folder_ / "files" / (std::string(kNewPrefix) + "XXXXXX")).string();
  out_ = Fd(::mkostemp(pattern.data(), O_CLOEXEC));  // it is 0600
  if (!out_.valid()) failWrite(pattern, errno);
  temporary_ = pattern;
  written_ = 0;
  ::flock(out_.get(), LOCK_EX | LOCK_NB);  // nobody else has it open
}

void CopyStore::finishFile() {
  DTF_CHECK(out_.valid() && !lacking_.empty());
  Lacking& file = lacking_.front();
  DTF_CHECK_MSG(written_ == file.bytes, file.name);
  if (sha256_.finish() != file.digest)
    throw Error(
        ErrorCode::kBadData,
        file.name +
            ": the bytes that were sent differ from the offered file: it changed meanwhile");
  if (::fchmod(out_.get(), S_IRUSR | S_IXUSR) != 0) failWrite(temporary_, errno);
  batch_.push_back({std::move(file), std::exchange(temporary_, fs::path()), std::move(out_)});
  lacking_.pop_front();
  if (batch_.size() >= kBatchFiles) store();
}

void CopyStore::finishEmptyFiles() {
  while (!lacking_.empty() && lacking_.front().bytes == 0) {
    beginFile();
    finishFile();
  }
  if (lacking_.empty() && !batch_.empty()) store();
}

bool CopyStore::receive(std::string_view bytes) {
  const uint64_t before = stored_;
  while (!bytes.empty()) {
    if (!receives_ || lacking_.empty())
      throw Error(ErrorCode::kBadData, "more bytes than the requested files have");
    if (!out_.valid()) beginFile();
    const std::string_view piece = bytes.substr(0, lacking_.front().bytes - written_);
    if (writeAll(out_.get(), piece) > 0) failWrite(temporary_, errno);
    sha256_.update(piece);
    bytes.remove_prefix(piece.size());
    written_ += piece.size();
    received_ += piece.size();
    if (written_ == lacking_.front().bytes) finishFile();
    finishEmptyFiles();
    if (received_ - stored_ >= kBatchBytes) store();
  }
  return stored_ > before;
}

// A file has its name only when its bytes would survive a power cut.
void CopyStore::store() {
  DTF_CHECK(stored_ <= received_);
  for (const Written& written : batch_)
    if (::fsync(written.fd.get()) != 0) failWrite(written.temporary, errno);
  for (const Written& written : batch_) {
    const fs::path there = fileOf(written.file.digest);
    // First in use: no other agent removes it to make room.
    for (const fs::path& place : written.file.places)
      if (!link(written.temporary, place)) failWrite(written.temporary, ENOENT);
    if (::rename(written.temporary.c_str(), there.c_str()) != 0) failWrite(there, errno);
    markStored(there);
  }
  batch_.clear();
  stored_ = received_;
}

}  // namespace dtf::launcher
