#pragma once

// Sorts row ids by their bits. A batch of a recommender names tens of thousands of rows, which are
// sorted in each step; comparisons would take eight times as long.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dtf::optimizer {

// Sorts unsigned `entries` by their upper bits, `key`, which is below `bound`. Entries of equal
// keys must be in ascending order already. Least significant digit first (Knuth, TAOCP 3, 5.2.5).
// `spare` is working memory, which is kept.
template <class Entry, class Key>
void radixSort(std::vector<Entry>& entries, std::vector<Entry>& spare, uint64_t bound, Key key) {
  constexpr unsigned kBits = 11;
  constexpr size_t kBuckets = size_t{1} << kBits;
  if (entries.size() < kBuckets) {  // the buckets would take longer
    std::ranges::sort(entries);
    return;
  }
  spare.resize(entries.size());
  for (unsigned shift = 0; shift < 64 && (bound - 1) >> shift != 0; shift += kBits) {
    std::array<uint32_t, kBuckets> at{};
    const auto digit = [&](Entry entry) { return (key(entry) >> shift) & (kBuckets - 1); };
    for (const Entry entry : entries) ++at[digit(entry)];
    uint32_t begin = 0;
    for (uint32_t& count : at) begin += std::exchange(count, begin);
    for (const Entry entry : entries) spare[at[digit(entry)]++] = entry;
    entries.swap(spare);
  }
}

}  // namespace dtf::optimizer
