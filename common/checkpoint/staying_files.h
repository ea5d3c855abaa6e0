#pragma once

// Finds and reads the shards that stay with the ps, for the chief, which has the manifests.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/file_system.h"
#include "common/base/ids.h"
#include "common/checkpoint/staying_shards.h"
#include "common/checkpoint/verify.h"

namespace dtf::checkpoint {

// Owns: the ps of each whole file of the checkpoint passed to find() last.
// Borrows: `ps`.
// Threads: one at a time.
// Blocks: until the ps have answered.
// Errors: the errors of `ps`, when one of them is lost. A damaged file is a Problem.
class StayingFiles {
 public:
  // For error messages: `hosts` has the host of each ps, one for each shard, and `tasks` their
  // names.
  StayingFiles(StayingShards& ps, std::vector<std::string> hosts, const ShardHosts& tasks = {});

  // Looks for a ps that has a whole copy of each file; returns a problem for each file without one.
  // First each ps looks for its own file, then all look for the missing ones: a ps may be on
  // another host now, or the number of ps may have changed.
  std::vector<Problem> find(const Manifest& manifest);

  // Opens a file that the last find() found whole. Best read front to back.
  // Errors: of read(): the errors of `ps`.
  // Borrows: the returned file borrows `ps`.
  std::unique_ptr<ReadableFile> open(const Manifest& manifest, const ShardFile& shard);

  // Makes every ps remove the shards of that name.
  void drop(const std::string& name) { ps_.drop(name); }

 private:
  Problem problemOf(const Manifest& manifest, size_t shard, const std::string& damage) const;

  StayingShards& ps_;
  const std::vector<std::string> hosts_;
  const ShardHosts tasks_;
  std::string name_;                      // of the folder that find() looked for
  std::map<std::string, uint32_t> with_;  // file -> a ps that has it whole
};

}  // namespace dtf::checkpoint
