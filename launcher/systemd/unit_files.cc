#include "launcher/systemd/unit_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/base/checksum.h"
#include "common/base/error.h"
#include "common/base/job_summary.h"
#include "common/base/text.h"
#include "launcher/live_status.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kLogs = "logs/";
constexpr mode_t kBroughtFileMode = 0640;

}  // namespace

UnitFiles::UnitFiles(fs::path run_dir, std::function<void(const std::string&)> tell)
    : run_dir_(std::move(run_dir)),
      writer_(run_dir_),
      tell_(std::move(tell)),
      files_(writer_, tell_) {}

void UnitFiles::expect(const std::string& host, const std::vector<std::string>& logs,
                       bool has_chief) {
  expected_[host] = {logs, has_chief};
}

bool UnitFiles::isMine() {
  if (lock_.valid()) return true;
  Fd lock(::open((run_dir_ / "logs").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return false;
  lock_ = std::move(lock);
  return true;
}

FileSizes UnitFiles::kept(const std::string& host, bool with_events) const {
  FileSizes sizes;
  if (with_events) sizes = writer_.eventSizes();
  const auto found = expected_.find(host);
  if (found == expected_.end()) return sizes;
  // The chief knows less than a dtf-launch that has seen the job's end, and says which launch that
  // was.
  if (found->second.has_chief && !readSummary(run_dir_).contains("attempt"))
    sizes[summaryFile(run_dir_).filename().string()] = summary_;
  for (const std::string& log : found->second.logs) {
    std::error_code none;
    const uint64_t size = fs::file_size(run_dir_ / kLogs / log, none);
    if (none || size < kLogBytesMax) sizes[std::string(kLogs) + log] = none ? 0 : size;
  }
  return sizes;
}

void UnitFiles::take(const std::string& host, const FilePiece& piece) {
  try {
    write(expected_[host], host, piece);
    is_full_ = false;
    bytes_ += piece.bytes.size();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kBadData) throw;
    if (!std::exchange(is_full_, true))
      tell_("warning: " + error.message() + ": trying again; " + host +
            " has lines that are missing here");
  }
}

void UnitFiles::write(const Expected& expected, const std::string& host, const FilePiece& piece) {
  const std::string log = piece.name.starts_with(kLogs) ? piece.name.substr(kLogs.size()) : "";
  if (std::find(expected.logs.begin(), expected.logs.end(), log) != expected.logs.end())
    return append(host, piece);
  if (expected.has_chief && piece.name == summaryFile(run_dir_).filename()) {
    atomicReplace(summaryFile(run_dir_), piece.bytes);
    summary_ = checksumOf(piece.bytes);
    return;
  }
  files_.take(host, piece);
}

// Only what comes next: whoever has lost his place asks again with what is there.
void UnitFiles::append(const std::string& host, const FilePiece& piece) {
  const fs::path file = run_dir_ / piece.name;
  const Fd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kBroughtFileMode));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) failWrite(file, errno);
  if (static_cast<uint64_t>(status.st_size) != piece.offset || piece.offset >= kLogBytesMax) return;
  if (::lseek(fd.get(), 0, SEEK_END) < 0 || writeAll(fd.get(), piece.bytes) > 0)
    failWrite(file, errno);
  if (piece.offset + piece.bytes.size() >= kLogBytesMax)
    tell_("warning: " + file.string() + " has " + bytesText(kLogBytesMax) + ": the rest is on " +
          host + " alone");
}

}  // namespace dtf::launcher
