#include "launcher/ssh/run_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "common/base/error.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kEvents = "events/";
constexpr std::string_view kTimelines = "timeline/";
constexpr std::array kTravelling = {kEvents, kTimelines};
constexpr std::string_view kMarkPrefix = ".launched-";
constexpr std::string_view kNewMarkPrefix = ".new-launched-";  // it has no lock yet
constexpr std::string_view kNewFilePrefix = ".new-";
constexpr size_t kFileNameMax = 200;

// A file of that name whose lock nobody else holds; invalid: somebody does, or there is none.
Fd lockOfMark(const fs::path& file) {
  Fd fd(::open(file.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));  // NFS locks what can be written
  if (fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) fd.reset();
  return fd;
}

void removeAbandonedMarks(const fs::path& run_dir) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run_dir, ignored)) {
    if (!entry.path().filename().string().starts_with(kMarkPrefix)) continue;
    if (lockOfMark(entry.path()).valid()) fs::remove(entry.path(), ignored);
  }
}

}  // namespace

bool isRunFile(std::string_view name) {
  const auto inside = [name](std::string_view folder) { return name.starts_with(folder); };
  const auto folder = std::find_if(kTravelling.begin(), kTravelling.end(), inside);
  if (folder == kTravelling.end()) return false;
  const std::string_view file = name.substr(folder->size());
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  return !file.empty() && file.size() <= kFileNameMax && file[0] != '.' &&
         file.find_first_not_of(kAllowed) == std::string_view::npos;
}

// ---- the host's end

RunFilesReader::RunFilesReader(fs::path run_dir, FileSizes kept)
    : run_dir_(std::move(run_dir)), kept_(std::move(kept)) {}

void RunFilesReader::look() {
  for (const std::string_view folder : kTravelling) {
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator(run_dir_ / folder, gone)) {
      const std::string name = std::string(folder) + entry.path().filename().string();
      struct stat status {};
      if (!isRunFile(name) || ::lstat(entry.path().c_str(), &status) != 0 ||
          !S_ISREG(status.st_mode))
        continue;
      if (files_.size() >= kRunFilesMax && !files_.contains(name)) continue;
      const auto [found, is_new] = files_.try_emplace(name);
      File& file = found->second;
      const auto size = static_cast<uint64_t>(status.st_size);
      if (is_new) {
        const auto kept = kept_.find(name);
        if (kept != kept_.end() && kept->second <= size) file.given = kept->second;
      } else if (file.inode != status.st_ino || size < file.given) {
        file.given = 0;
      }
      file.inode = status.st_ino;
      file.size = size;
    }
  }
}

std::optional<FilePiece> RunFilesReader::next() {
  for (auto& [name, file] : files_) {
    if (file.given >= file.size) continue;
    if (auto piece = read(name, file)) return piece;
    file.size = file.given;  // it is gone, or shorter: the next look says
  }
  return std::nullopt;
}

std::optional<FilePiece> RunFilesReader::read(const std::string& name, File& file) const {
  const Fd fd(::open((run_dir_ / name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || status.st_ino != file.inode)
    return std::nullopt;
  FilePiece piece{name, file.given, {}};
  piece.bytes.resize(std::min<uint64_t>(file.size - file.given, kFilePieceBytesMax));
  const ssize_t n =
      ::pread(fd.get(), piece.bytes.data(), piece.bytes.size(), static_cast<off_t>(piece.offset));
  if (n <= 0) return std::nullopt;
  piece.bytes.resize(static_cast<size_t>(n));
  file.given += piece.bytes.size();
  return piece;
}

// ---- the launcher's end

RunFilesWriter::RunFilesWriter(fs::path run_dir) : run_dir_(std::move(run_dir)) {
  removeAbandonedMarks(run_dir_);
  std::string pattern = (run_dir_ / (std::string(kNewMarkPrefix) + "XXXXXX")).string();
  Fd fd(::mkostemp(pattern.data(), O_CLOEXEC));
  if (!fd.valid()) return;
  // Other launchers take what has the name and no lock for abandoned: it has the lock first. Where
  // there are no locks nobody removes it.
  (void)::flock(fd.get(), LOCK_EX | LOCK_NB);
  const std::string mark = std::string(kMarkPrefix) + pattern.substr(pattern.size() - 6);
  if (::rename(pattern.c_str(), (run_dir_ / mark).c_str()) != 0) {
    ::unlink(pattern.c_str());
    return;
  }
  mark_ = mark;
  lock_ = std::move(fd);
}

RunFilesWriter::~RunFilesWriter() {
  std::error_code ignored;
  if (!mark_.empty()) fs::remove(run_dir_ / mark_, ignored);
}

FileSizes RunFilesWriter::eventSizes() const {
  FileSizes sizes;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run_dir_ / kEvents, ignored)) {
    const std::string name = std::string(kEvents) + entry.path().filename().string();
    const auto size = static_cast<uint64_t>(entry.file_size(ignored));
    if (isRunFile(name) && !ignored && sizes.size() < kRunFilesMax) sizes[name] = size;
  }
  return sizes;
}

void RunFilesWriter::check(const FilePiece& piece) {
  if (!isRunFile(piece.name) || piece.bytes.size() > kFilePieceBytesMax)
    throw Error(ErrorCode::kBadData, "'" + piece.name + "' is not a file that is copied");
}

void RunFilesWriter::write(const FilePiece& piece) const {
  check(piece);
  const fs::path path = run_dir_ / piece.name;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) failWrite(path, error.value());
  if (piece.offset == 0) return begin(path, piece.bytes);
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (!fd.valid() && errno == ENOENT)
    throw Error(ErrorCode::kCannotWrite, path.string() + " does not exist, but bytes from " +
                                             std::to_string(piece.offset) + " on were received");
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) failWrite(path, errno);
  if (static_cast<uint64_t>(status.st_size) != piece.offset)
    throw Error(ErrorCode::kCannotWrite, path.string() + " has " + std::to_string(status.st_size) +
                                             " bytes, but bytes from " +
                                             std::to_string(piece.offset) + " on were received");
  if (::lseek(fd.get(), static_cast<off_t>(piece.offset), SEEK_SET) < 0 ||
      writeAll(fd.get(), piece.bytes) > 0)
    failWrite(path, errno);
}

// Never truncates: what is there may be somebody's who has it open.
void RunFilesWriter::begin(const fs::path& path, std::string_view bytes) {
  if (fs::is_symlink(path)) failWrite(path, ELOOP);
  const fs::path unfinished =
      path.parent_path() / (std::string(kNewFilePrefix) + path.filename().string());
  const Fd fd(
      ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd.valid() || writeAll(fd.get(), bytes) > 0 ||
      ::rename(unfinished.c_str(), path.c_str()) != 0) {
    const int problem = errno;
    ::unlink(unfinished.c_str());
    failWrite(path, problem);
  }
}

bool hasMark(const fs::path& run_dir, const std::string& mark) {
  std::error_code ignored;
  const bool is_name = mark.starts_with(kMarkPrefix) && mark.find('/') == std::string::npos;
  return is_name && fs::exists(run_dir / mark, ignored);
}

}  // namespace dtf::launcher
