#include "launcher/ssh/copy_sender.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::launcher {

namespace {

// Of paths in one offer, which is one frame.
constexpr size_t kOfferBytes = size_t{512} << 10;

}  // namespace

std::optional<OfferOrder> CopySender::nextOffer() {
  DTF_CHECK(!awaits_answer_);
  if (offered_all_) return std::nullopt;
  OfferOrder offer{dir_, bytes_max_, {}, {}, false};
  size_t bytes = 0;
  offered_before_ = offered_;
  for (; offered_ < files_->files.size() && offer.files.size() < kOfferedFilesMax &&
         bytes < kOfferBytes;
       ++offered_) {
    offer.files.push_back(files_->files[offered_].offered);
    bytes += offer.files.back().path.native().size();
  }
  const auto& folders = files_->folders;
  for (; folders_offered_ < folders.size() && offer.folders.size() < kOfferedFilesMax &&
         bytes < kOfferBytes;
       ++folders_offered_) {
    offer.folders.push_back(folders[folders_offered_]);
    bytes += offer.folders.back().native().size();
  }
  offer.is_last = offered_ == files_->files.size() && folders_offered_ == folders.size();
  offered_all_ = offer.is_last;
  awaits_answer_ = true;
  return offer;
}

void CopySender::take(const LackingReport& report) {
  if (!awaits_answer_) throw Error(ErrorCode::kBadData, "it answers an offer that was not made");
  awaits_answer_ = false;
  for (const size_t each : report.files) {
    if (each >= offered_ - offered_before_)
      throw Error(ErrorCode::kBadData, "it requests a file that was not offered");
    DTF_CHECK(lacking_.empty() || lacking_.back() < offered_before_ + each);
    lacking_.push_back(offered_before_ + each);
    lacking_bytes_ += files_->files[lacking_.back()].offered.bytes;
  }
}

void CopySender::take(const StoredReport& report) {
  if (report.bytes < stored_ || report.bytes > lacking_bytes_)
    throw Error(ErrorCode::kBadData, "it reports more stored bytes than were sent");
  stored_ = report.bytes;
}

std::string CopySender::nextPiece(size_t bytes_max) {
  DTF_CHECK(offeredAll());
  std::string piece(bytes_max, '\0');
  size_t filled = 0;
  while (filled < piece.size() && at_ < lacking_.size()) {
    const CopiedFile& copied = files_->files[lacking_[at_]];
    FileStamp stamp = copied.stamp;
    if (!in_.valid()) in_ = openToCopy(copied.file, stamp);
    if (stamp != copied.stamp) failChanged(copied.file);
    DTF_CHECK(sent_ <= copied.offered.bytes);
    const uint64_t left = copied.offered.bytes - sent_;
    const size_t wanted = std::min<uint64_t>(left, piece.size() - filled);
    const ssize_t n = wanted == 0 ? 0 : ::read(in_.get(), piece.data() + filled, wanted);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 || (n == 0 && wanted > 0)) failChanged(copied.file);
    filled += static_cast<size_t>(n);
    sent_ += static_cast<uint64_t>(n);
    if (sent_ < copied.offered.bytes) continue;
    in_.reset();
    sent_ = 0;
    ++at_;
  }
  piece.resize(filled);
  return piece;
}

}  // namespace dtf::launcher
