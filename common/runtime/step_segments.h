#pragma once

// A step in pieces, for a device with memory of its own: it computes one while what the next one
// reads is on its way to it, and what those before have made is on its way to the host. Layers of a
// model follow one another in both directions, so most copies lie beside computation:
// "wait-free backpropagation", H. Zhang et al., "Poseidon" (USENIX ATC 2017); buckets as in S. Li
// et al., "PyTorch Distributed" (VLDB 2020).

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace dtf::runtime {

// Of a bound tensor. Value type.
struct Transfer {
  size_t binding = 0;
  size_t bytes = 0;
  size_t launch =
      0;  // to the device: the first that reads it; to the host: the last that writes it
};

// Launches from `begin` to below `end`. Value type.
struct SegmentPlan {
  size_t begin = 0, end = 0;
  std::vector<size_t> uploads;    // bindings that must be on the device before it
  std::vector<size_t> downloads;  // that are made once it is done
  bool operator==(const SegmentPlan&) const = default;
};

// At most so many cuts for either direction: each is a program more for the device.
inline constexpr size_t kCutsMax = 64;

// Cut ahead of each upload behind `bucket_bytes` of them, and behind each download that fills a
// bucket: smaller copies would cost more than they hide. The first bucket of uploads is a quarter
// of that, as nothing is computed before it; of large models buckets are larger. Without transfers
// one segment. Also behind launch `wanted`. Pure function.
std::vector<SegmentPlan> planSegments(size_t launches, std::span<const Transfer> uploads,
                                      std::span<const Transfer> downloads, size_t bucket_bytes,
                                      std::optional<size_t> wanted = std::nullopt);

}  // namespace dtf::runtime
