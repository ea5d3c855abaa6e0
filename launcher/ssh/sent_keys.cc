#include "launcher/ssh/sent_keys.h"

#include <sys/stat.h>

#include <utility>

#include "common/base/file.h"
#include "common/net/tls_keys.h"

namespace dtf::launcher {

namespace {

constexpr uint64_t kKeyBytesMax = 64 << 10;

}  // namespace

SentKeys::SentKeys(const std::filesystem::path& folder, std::string job, std::vector<TaskId> tasks)
    : folder_(folder.empty() ? folder : std::filesystem::absolute(folder).lexically_normal()),
      job_(std::move(job)),
      tasks_(std::move(tasks)) {
  if (folder_.empty()) return;
  files_.push_back(folder_ / net::kAuthorityFile);
  for (const TaskId task : tasks_) files_.push_back(folder_ / net::keyFileOf(task.name()));
}

SentFiles SentKeys::read() {
  seen_ = stamps();  // before they are read: what changes meanwhile is read next time
  SentFiles files;
  for (const std::filesystem::path& file : files_) files[file] = readFile(file, kKeyBytesMax);
  return sent_ = files;
}

SentKeys::Stamps SentKeys::stamps() const {
  Stamps stamps;
  for (const std::filesystem::path& file : files_) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) continue;
    stamps[file] = {status.st_ino, status.st_ctim.tv_sec, status.st_ctim.tv_nsec, status.st_size};
  }
  return stamps;
}

SentFiles SentKeys::renewed(TimePoint now) {
  if (files_.empty() || (looked_ && now < *looked_ + kLookEvery)) return {};
  looked_ = now;
  if (stamps() == seen_) return {};
  const SentFiles before = sent_;
  SentFiles changed = read();
  try {
    for (const TaskId task : tasks_) net::TlsKeys(folder_, task.name(), job_);
  } catch (...) {
    sent_ = before;
    throw;
  }
  std::erase_if(changed, [&](const auto& file) {
    const auto old = before.find(file.first);
    return old != before.end() && old->second == file.second;
  });
  return changed;
}

}  // namespace dtf::launcher
