#include "launcher/ssh/copy_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/text.h"

namespace dtf::launcher {

namespace {

constexpr double kSecondsMin = 0.001;  // of a rate

std::string rateText(uint64_t bytes, double seconds) {
  return bytesText(
             static_cast<uint64_t>(static_cast<double>(bytes) / std::max(seconds, kSecondsMin))) +
         "/s";
}

std::string hostsText(size_t hosts) {
  return fmt::format("{} host{}", hosts, hosts == 1 ? "" : "s");
}

uint64_t percent(uint64_t part, uint64_t whole) {
  constexpr uint64_t kAll = 100;
  return whole == 0
             ? kAll
             : static_cast<uint64_t>(static_cast<double>(part) * kAll / static_cast<double>(whole));
}

}  // namespace

void CopyTotals::add(const CopyProgress& host) {
  if (host.lacking_bytes > 0) ++hosts;
  lacking_bytes += host.lacking_bytes;
  stored_bytes += host.stored_bytes;
}

bool CopyReport::isTime() {
  if (clock_.now() < told_ + kEvery) return false;
  told_ = clock_.now();
  return true;
}

void CopyReport::digests(uint64_t done, uint64_t bytes) {
  if (!isTime()) return;
  tell_(fmt::format("reading the files to copy: {} of {} ({} %), {}", bytesText(done),
                    bytesText(bytes), percent(done, bytes),
                    rateText(done, toSeconds(clock_.now() - began_))));
}

void CopyReport::copies(const CopyTotals& totals, bool all) {
  const bool is_there = totals.stored_bytes == totals.lacking_bytes;
  if (!is_there) stored_.reset();
  if (is_there && !stored_) stored_ = clock_.now();
  const double seconds = toSeconds((is_there ? *stored_ : clock_.now()) - began_);
  if (ended_) return;
  if (all) {
    ended_ = true;
    return tell_(totals.lacking_bytes == 0
                     ? std::string("nothing to copy: every host has all files")
                     : fmt::format("copied {} to {} in {:.1f} s ({})",
                                   bytesText(totals.lacking_bytes), hostsText(totals.hosts),
                                   seconds, rateText(totals.lacking_bytes, seconds)));
  }
  if (totals.lacking_bytes == 0 || !isTime()) return;
  tell_(fmt::format("copying to {}: {} of {} ({} %), {}", hostsText(totals.hosts),
                    bytesText(totals.stored_bytes), bytesText(totals.lacking_bytes),
                    percent(totals.stored_bytes, totals.lacking_bytes),
                    rateText(totals.stored_bytes, seconds)));
}

}  // namespace dtf::launcher
