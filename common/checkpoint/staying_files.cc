#include "common/checkpoint/staying_files.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/checkpoint/shard_transfer.h"

namespace dtf::checkpoint {

namespace {

// Reads a file of a ps. Keeps the last piece: readers read in other sizes than the pieces'.
class FetchedFile final : public ReadableFile {
 public:
  FetchedFile(StayingShards& ps, uint32_t ps_task, StayingPiece file)
      : ps_(ps), ps_task_(ps_task), file_(std::move(file)) {}

  uint64_t size() const override { return file_.bytes; }
  void read(uint64_t offset, void* out, size_t bytes) const override {
    if (offset > size() || bytes > size() - offset)
      throw Error(ErrorCode::kBadData,
                  file_.file + " ends before byte " + std::to_string(offset + bytes));
    auto* to = static_cast<char*>(out);
    while (bytes > 0) {
      if (offset < at_ || offset - at_ >= piece_.size()) fetchAt(offset);
      const size_t begin = offset - at_;
      const size_t part = std::min(bytes, piece_.size() - begin);
      std::memcpy(to, piece_.data() + begin, part);
      to += part;
      offset += part;
      bytes -= part;
    }
  }

 private:
  void fetchAt(uint64_t offset) const {
    StayingPiece piece = file_;
    piece.offset = offset;
    piece.bytes = std::min(kPieceBytesMax, size() - offset);
    piece_ = ps_.fetch(ps_task_, piece);
    at_ = offset;
    DTF_CHECK(piece_.size() == piece.bytes);
  }

  StayingShards& ps_;
  const uint32_t ps_task_;
  const StayingPiece file_;  // whole
  mutable std::string piece_;
  mutable uint64_t at_ = 0;  // of piece_
};

std::string listOf(const std::vector<std::string>& hosts, const ShardHosts& tasks) {
  std::string text;
  for (uint32_t i = 0; i < hosts.size(); ++i)
    text += (i == 0 ? "" : ", ") + tasks.of(i).name() + (hosts[i].empty() ? "" : " on " + hosts[i]);
  return text;
}

}  // namespace

StayingFiles::StayingFiles(StayingShards& ps, std::vector<std::string> hosts,
                           const ShardHosts& tasks)
    : ps_(ps), hosts_(std::move(hosts)), tasks_(tasks) {
  DTF_CHECK(!hosts_.empty());
}

std::vector<Problem> StayingFiles::find(const Manifest& manifest) {
  name_ = manifest.stays_in;
  with_.clear();
  std::map<std::string, std::string> damage;
  const auto ask = [&](const std::vector<std::vector<ShardFile>>& wanted) {
    const std::vector<std::vector<FoundShard>> found = ps_.find(name_, wanted);
    for (uint32_t ps = 0; ps < wanted.size(); ++ps)
      for (size_t i = 0; i < wanted[ps].size(); ++i) {
        const std::string& file = wanted[ps][i].file;
        const FoundShard& one = found.at(ps).at(i);
        if (one.standing == Standing::kWhole) with_.emplace(file, ps);
        if (one.standing == Standing::kDamaged) damage[file] = one.reason;
      }
  };
  std::vector<std::vector<ShardFile>> own(hosts_.size());
  for (size_t i = 0; i < std::min(own.size(), manifest.shards.size()); ++i)
    own[i] = {manifest.shards[i]};
  ask(own);
  std::vector<ShardFile> missing;
  for (const ShardFile& shard : manifest.shards)
    if (!with_.contains(shard.file)) missing.push_back(shard);
  if (!missing.empty()) ask(std::vector<std::vector<ShardFile>>(hosts_.size(), missing));
  std::vector<Problem> problems;
  for (size_t i = 0; i < manifest.shards.size(); ++i)
    if (!with_.contains(manifest.shards[i].file))
      problems.push_back(problemOf(manifest, i, damage[manifest.shards[i].file]));
  return problems;
}

Problem StayingFiles::problemOf(const Manifest& manifest, size_t shard,
                                const std::string& damage) const {
  const ShardFile& file = manifest.shards[shard];
  if (!damage.empty()) return {file.file, {}, damage};
  // The task is that of the job which wrote the file.
  const std::string writer =
      "the host of shard " + std::to_string(shard) + (file.host.empty() ? "" : ", on " + file.host);
  return {file.file,
          {},
          file.file + " was written by " + writer + ", and none of " + listOf(hosts_, tasks_) +
              " has it in shards/" + name_ +
              " below its run_dir: start one of them where the file is, "
              "or copy it there"};
}

std::unique_ptr<ReadableFile> StayingFiles::open(const Manifest& manifest, const ShardFile& shard) {
  const auto found = with_.find(shard.file);
  DTF_CHECK(manifest.stays_in == name_ && found != with_.end());
  return std::make_unique<FetchedFile>(ps_, found->second,
                                       StayingPiece{name_, shard.file, 0, shard.bytes});
}

}  // namespace dtf::checkpoint
