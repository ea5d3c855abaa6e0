#pragma once

// The keys of the tasks on another host, and which of them that host is still to get.

#include <utility>

#include "common/base/clock.h"
#include "launcher/ssh/sent_keys.h"

namespace dtf::launcher {

// Owns: what it knows of the files.
// Threads: thread-compatible.
// Blocks: on the files, a few KiB.
class UnitKeys {
 public:
  // `are_there`: whoever has started the job has sent them as they are at the first due().
  UnitKeys(SentKeys keys, bool are_there) : keys_(std::move(keys)), are_there_(are_there) {}

  // All, to be sent. Errors: those of SentKeys::read().
  SentFiles read() { return keys_.read(); }
  // Those that were renewed and are to be sent now; empty: none.
  // Errors: those of SentKeys, once for each change.
  SentFiles due(TimePoint now);
  // The host has all that was due.
  void taken();
  // It hasn't: they are due again SentKeys::kLookEvery later. Whether this is the first time.
  bool refused(TimePoint now);

 private:
  SentKeys keys_;
  bool are_there_;
  SentFiles unsent_;
  TimePoint again_{};
  bool was_refused_ = false;
};

}  // namespace dtf::launcher
