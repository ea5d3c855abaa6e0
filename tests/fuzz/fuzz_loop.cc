#include "tests/fuzz/fuzz_loop.h"

#include <utility>

#include "common/base/check.h"

namespace dtf::fuzz {

void FuzzLoop::post(std::function<void()> fn) {
  DTF_CHECK(fn != nullptr);
  posted_.push_back(std::move(fn));
}

// Functions posted while these run wait for the next turn.
bool FuzzLoop::runPosted() {
  const auto now = std::exchange(posted_, {});
  for (const auto& fn : now) fn();
  return !now.empty();
}

void FuzzLoop::settle() {
  for (int turn = 0; turn < kTurnsMax; ++turn) {
    bool more = runPosted();
    if (has_sockets_) {
      reactor_.wait_scope.poll();
      more |= reactor_.ioc.poll() > 0;
    } else {
      reactor_.loop.run();
    }
    if (!more && posted_.empty()) return;
  }
}

}  // namespace dtf::fuzz
