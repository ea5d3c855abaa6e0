#include "launcher/systemd/unit_keys.h"

namespace dtf::launcher {

SentFiles UnitKeys::due(TimePoint now) {
  if (std::exchange(are_there_, false)) keys_.read();
  for (auto& [file, text] : keys_.renewed(now)) unsent_[file] = text;
  return now < again_ ? SentFiles() : unsent_;
}

void UnitKeys::taken() {
  unsent_.clear();
  was_refused_ = false;
}

bool UnitKeys::refused(TimePoint now) {
  again_ = now + SentKeys::kLookEvery;
  return !std::exchange(was_refused_, true);
}

}  // namespace dtf::launcher
