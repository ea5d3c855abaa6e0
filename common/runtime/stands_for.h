#pragma once

namespace dtf::runtime {

class Device;

// Implemented by a Device that forwards everything to another one: a plug-in's kernels are prepared
// on the plug-in's own device.
// Threads, blocks, errors: none; the other device must outlive it.
class StandsFor {
 public:
  virtual ~StandsFor() = default;
  virtual Device& actual() = 0;
};

}  // namespace dtf::runtime
