#pragma once

// How the loss of a job has gone, in a bounded number of points.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtf::daemons {

struct ProgressPoint {
  double seconds = 0;  // since this task was first looked at
  double step = 0;     // global
  double loss = 0;
  double examples_per_second = 0;  // of the whole job
};

// It keeps as many of the points that it is offered as fit: once they are too many it forgets every
// second one, and takes only every second one that comes from then on, and so forth.
// Threads: thread-compatible.
// Blocks: never.
class ProgressHistory {
 public:
  static constexpr size_t kPointsMax = 512;

  void offer(const ProgressPoint& point);
  // By time; the last one is the newest that was offered.
  std::vector<ProgressPoint> points() const;

 private:
  std::vector<ProgressPoint> points_;
  ProgressPoint newest_;
  bool has_newest_ = false;  // which isn't among the others
  uint64_t stride_ = 1;      // one of so many is taken
  uint64_t offered_ = 0;
};

}  // namespace dtf::daemons
