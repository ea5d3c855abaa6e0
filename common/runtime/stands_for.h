#pragma once

namespace dtf::runtime {

class Device;

// What a device that passes everything on to another is, besides a Device: a plug-in's kernels are
// prepared on the plug-in's own.
// Threads, blocking, errors: none; the other one must outlive it.
class StandsFor {
 public:
  virtual ~StandsFor() = default;
  virtual Device& actual() = 0;
};

}  // namespace dtf::runtime
