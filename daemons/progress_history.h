#pragma once

// The curve of a job's loss, in a bounded number of points.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtf::daemons {

struct ProgressPoint {
  double seconds = 0;  // since the server started
  double step = 0;     // global
  double loss = 0;
  double examples_per_second = 0;  // of the whole job
};

// Keeps a bounded number of the offered points: when it is full, it drops every second point and
// halves the rate at which it keeps further ones.
// Threads: thread-compatible.
// Blocks: never.
class ProgressHistory {
 public:
  static constexpr size_t kPointsMax = 512;

  void offer(const ProgressPoint& point);
  // In order of time; the last one is the newest offered point.
  std::vector<ProgressPoint> points() const;

 private:
  std::vector<ProgressPoint> points_;
  ProgressPoint newest_;
  bool has_newest_ = false;  // newest_ isn't in points_
  uint64_t stride_ = 1;      // keeps one of so many points
  uint64_t offered_ = 0;
};

}  // namespace dtf::daemons
