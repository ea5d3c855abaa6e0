#pragma once

// The copies on a host: files of other hosts, each by the SHA-256 of its bytes, so that what is
// there is not sent again, whichever job it was for.
//
//   DIR/files/<sha256>         the files
//   DIR/agents/<sha256>/       dtf-agent, put there before there was one (agent_bootstrap.h)
//   DIR/.use-XXXXXX/           of a connection that lives: bin/psd, ..., data/home/me/table.csv
//
// What is in use is a hard link to a file, so the kernel counts: a file of one link is nobody's.
// Its access time is when it was used last, its modification time always the same: a copy to which
// somebody has written is known by that, and sent again.

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/file.h"
#include "launcher/ssh/locked_folder.h"
#include "launcher/ssh/messages.h"
#include "launcher/ssh/sha256.h"

namespace dtf::launcher {

// DIR: `dir`, from the home folder on where it is relative; empty: dtf/copies in $XDG_CACHE_HOME,
// else in ~/.cache.
// Errors: kBadConfig where there is no home.
std::filesystem::path copiesFolder(const std::string& dir);

// The copies that one connection uses: first offered, then received. A file appears under its name
// when all of its bytes are there, have that digest, and are on the disk.
// Owns: the folder of what is in use; what is received and not stored yet.
// Threads: thread-compatible.
// Blocks: on the disk; receive() now and then until it has written.
class CopyStore {
 public:
  // Makes `folder`, for this user alone. One that is there stays as it is.
  // Errors: kCannotWrite; kPermission, also where the folder is another user's, or others may write
  // to it.
  explicit CopyStore(std::filesystem::path folder);
  ~CopyStore();
  CopyStore(const CopyStore&) = delete;
  CopyStore& operator=(const CopyStore&) = delete;

  // Which of them are to be sent; the others are in use from now on. A file that is offered under
  // several names is sent once.
  // Errors: kCannotWrite, kPermission; kBadData when something is received already.
  std::vector<size_t> offer(const OfferOrder& order);
  // All is offered. Removes what nobody uses, the oldest first, until there is room.
  // Errors: kCannotWrite when there is too little: how much is needed, and how much there is.
  void makeRoom(uint64_t bytes_max);
  // More of what was lacking. Returns whether more of it than before is stored().
  // Errors: kBadData for more than that, or for a file that isn't what was offered; kCannotWrite.
  bool receive(std::string_view bytes);

  bool complete() const { return lacking_.empty() && batch_.empty(); }
  uint64_t stored() const { return stored_; }
  std::filesystem::path program(const std::string& name) const;
  std::filesystem::path dataFolder() const { return use_->path() / "data"; }

 private:
  struct Lacking {
    std::string digest;
    uint64_t bytes = 0;
    std::string name;                           // for people
    std::vector<std::filesystem::path> places;  // in use_
  };
  // What is written, and may not be on the disk yet.
  struct Written {
    Lacking file;
    std::filesystem::path temporary;
    Fd fd;  // has the lock by which others know that it is not abandoned
  };
  std::filesystem::path placeOf(const OfferedFile& file) const;
  std::filesystem::path fileOf(const std::string& digest) const {
    return folder_ / "files" / digest;
  }
  bool use(const OfferedFile& file);
  bool link(const std::filesystem::path& file, const std::filesystem::path& place);
  void removeLeftovers();
  void beginFile();
  void finishFile();
  void finishEmptyFiles();
  void store();

  const std::filesystem::path folder_;
  Fd disk_;
  std::optional<LockedFolder> use_;  // from the constructor on
  std::filesystem::path made_;       // the folder that was made last
  std::deque<Lacking> lacking_;
  std::map<std::string, size_t> lacking_at_;  // by digest, before anything is received
  Fd out_;                                    // of the first that is lacking
  std::filesystem::path temporary_;           // likewise
  uint64_t written_ = 0;                      // likewise
  Sha256 sha256_;
  std::vector<Written> batch_;
  uint64_t received_ = 0, stored_ = 0;  // bytes
  bool receives_ = false;
};

}  // namespace dtf::launcher
