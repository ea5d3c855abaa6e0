#pragma once

// A step in pieces, for a device with its own memory. While it computes one piece, inputs of the
// next one are copied to it and results of earlier ones to the host. The layers of a model follow
// one another in both directions, so most copies overlap with computation: "wait-free
// backpropagation", H. Zhang et al., "Poseidon" (USENIX ATC 2017); buckets as in S. Li et al.,
// "PyTorch Distributed" (VLDB 2020).

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace dtf::runtime {

// The transfer of a bound tensor. Value type.
struct Transfer {
  size_t binding = 0;
  size_t bytes = 0;
  size_t launch =
      0;  // to the device: the first launch that reads it; to the host: the last that writes it
};

// Launches from `begin` to below `end`. Value type.
struct SegmentPlan {
  size_t begin = 0, end = 0;
  std::vector<size_t> uploads;    // bindings needed on the device before it starts
  std::vector<size_t> downloads;  // bindings written when it is done
  bool operator==(const SegmentPlan&) const = default;
};

// The most cuts for either direction: each adds a program to the device.
inline constexpr size_t kCutsMax = 64;

// Cuts before each upload that exceeds `bucket_bytes`, and after each download that fills a bucket:
// smaller copies would cost more than they hide. The first bucket of uploads is a quarter of that,
// since nothing is computed before it; large models get larger buckets. Without transfers there is
// one segment. Also cuts after launch `wanted`. Pure function.
std::vector<SegmentPlan> planSegments(size_t launches, std::span<const Transfer> uploads,
                                      std::span<const Transfer> downloads, size_t bucket_bytes,
                                      std::optional<size_t> wanted = std::nullopt);

}  // namespace dtf::runtime
