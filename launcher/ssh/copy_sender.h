#pragma once

// The near end of copying over one connection: what is offered, what is lacking there, and its
// bytes. Without a descriptor or a loop of the connection: launcher/ssh/agent_link.h has those.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "launcher/ssh/copied_files.h"
#include "launcher/ssh/messages.h"

namespace dtf::launcher {

// Owns: the file that is being sent. Shares what it is made of, which doesn't change.
// Threads: thread-compatible.
// Blocks: nextPiece(), on the disk.
class CopySender {
 public:
  CopySender(std::shared_ptr<const CopiedFiles> files, std::string dir, uint64_t bytes_max)
      : files_(std::move(files)), dir_(std::move(dir)), bytes_max_(bytes_max) {}

  // The next to be made, each after the answer to the one before; nullopt: that was the last.
  std::optional<OfferOrder> nextOffer();
  // Errors: kBadData for an answer to another offer.
  void take(const LackingReport& report);
  void take(const StoredReport& report);

  // More of what is lacking, once all is offered; empty: that was all.
  // Errors: kBadData or kPermission for a file that has changed, or is gone, since it had its
  // digest.
  std::string nextPiece(size_t bytes_max);
  bool offeredAll() const { return offered_all_ && !awaits_answer_; }
  // All is there.
  bool done() const { return offeredAll() && stored_ == lacking_bytes_; }

  uint64_t lackingBytes() const { return lacking_bytes_; }
  uint64_t storedBytes() const { return stored_; }

 private:
  std::shared_ptr<const CopiedFiles> files_;
  const std::string dir_;
  const uint64_t bytes_max_;
  size_t offered_ = 0, offered_before_ = 0;  // files; before the offer that awaits its answer
  size_t folders_offered_ = 0;
  bool awaits_answer_ = false, offered_all_ = false;
  std::vector<size_t> lacking_;  // of all files
  uint64_t lacking_bytes_ = 0, stored_ = 0;
  size_t at_ = 0;  // in lacking_
  Fd in_;
  uint64_t sent_ = 0;  // of the file at at_
};

}  // namespace dtf::launcher
