#include "common/runtime/step_segments.h"

#include <algorithm>
#include <set>

#include "common/base/check.h"

namespace dtf::runtime {
namespace {

std::vector<Transfer> inOrder(std::span<const Transfer> transfers) {
  std::vector<Transfer> sorted(transfers.begin(), transfers.end());
  std::ranges::stable_sort(sorted, {}, &Transfer::launch);
  return sorted;
}

// Enlarges buckets to stay within kCutsMax.
size_t bucketOf(std::span<const Transfer> transfers, size_t bucket_bytes) {
  size_t all = 0;
  for (const Transfer& transfer : transfers) all += transfer.bytes;
  return std::max(bucket_bytes, all / kCutsMax);
}

// Cuts before the launch that needs the first bytes of a bucket.
void cutForUploads(std::span<const Transfer> sorted, size_t bucket_bytes, std::set<size_t>& cuts) {
  size_t wanted = bucket_bytes / 4, taken = 0;
  for (const Transfer& transfer : sorted) {
    if (taken >= wanted && taken > 0) {
      cuts.insert(transfer.launch);
      wanted = bucket_bytes;
      taken = 0;
    }
    taken += transfer.bytes;
  }
}

// Cuts after the launch that writes the last bytes of a bucket.
void cutForDownloads(std::span<const Transfer> sorted, size_t bucket_bytes,
                     std::set<size_t>& cuts) {
  size_t made = 0;
  for (const Transfer& transfer : sorted) {
    made += transfer.bytes;
    if (made < bucket_bytes) continue;
    cuts.insert(transfer.launch + 1);
    made = 0;
  }
}

}  // namespace

std::vector<SegmentPlan> planSegments(size_t launches, std::span<const Transfer> uploads,
                                      std::span<const Transfer> downloads, size_t bucket_bytes,
                                      std::optional<size_t> wanted) {
  const std::vector<Transfer> up = inOrder(uploads), down = inOrder(downloads);
  DTF_CHECK(up.empty() || up.back().launch < launches);
  DTF_CHECK(down.empty() || down.back().launch < launches);
  std::set<size_t> cuts = {launches};
  if (wanted) {
    DTF_CHECK(*wanted < launches);
    cuts.insert(*wanted + 1);
  }
  cutForUploads(up, bucketOf(up, bucket_bytes), cuts);
  cutForDownloads(down, bucketOf(down, bucket_bytes), cuts);
  cuts.erase(0);
  std::vector<SegmentPlan> segments;
  auto next_up = up.begin(), next_down = down.begin();
  size_t begin = 0;
  for (const size_t end : cuts) {
    SegmentPlan& segment = segments.emplace_back(SegmentPlan{begin, end, {}, {}});
    for (; next_up != up.end() && next_up->launch < end; ++next_up)
      segment.uploads.push_back(next_up->binding);
    for (; next_down != down.end() && next_down->launch < end; ++next_down)
      segment.downloads.push_back(next_down->binding);
    begin = end;
  }
  if (segments.empty()) segments.emplace_back();  // a step without launches
  return segments;
}

}  // namespace dtf::runtime
