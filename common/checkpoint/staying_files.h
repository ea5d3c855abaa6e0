#pragma once

// The shards that stay with the ps, as the chief that has the manifests finds and reads them.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/file_system.h"
#include "common/checkpoint/staying_shards.h"
#include "common/checkpoint/verify.h"

namespace dtf::checkpoint {

// Owns: who has which file of the checkpoint that was verified last.
// Borrows: `ps`.
// Threads: one at a time.
// Blocks: until the ps have answered.
// Errors: those of `ps`: one of them is lost. What is wrong with a file is an answer.
class StayingFiles {
 public:
  // `hosts`: where each ps is, for the words of an error; and so how many there are.
  StayingFiles(StayingShards& ps, std::vector<std::string> hosts);

  // Whether there is a ps for each file that has it whole: first each is asked for its own, then
  // all for what is missing, as where a ps came back on another host, or there are more or fewer of
  // them than wrote it.
  std::vector<Problem> find(const Manifest& manifest);

  // A file of what find() found whole last. Best read front to back.
  // Errors: of read(): those of `ps`.
  // Borrows: this.
  std::unique_ptr<ReadableFile> open(const Manifest& manifest, const ShardFile& shard);

  // No ps has the shards of that name any more.
  void drop(const std::string& name) { ps_.drop(name); }

 private:
  Problem problemOf(const Manifest& manifest, size_t shard, const std::string& damage) const;

  StayingShards& ps_;
  const std::vector<std::string> hosts_;
  std::string name_;                      // of the folder that was looked for
  std::map<std::string, uint32_t> with_;  // file -> a ps that has it whole
};

}  // namespace dtf::checkpoint
