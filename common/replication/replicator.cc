#include "common/replication/replicator.h"

#include <utility>

#include "common/base/check.h"

namespace dtf::replication {

void Replicator::begin(ReplicaState state, bool whole) {
  DTF_CHECK(!begun_ && state.epoch > 0);
  DTF_CHECK(!whole || backup_there_);
  state_ = std::move(state);
  begun_ = true;
  whole_ = whole;
  if (!whole_ && backup_there_) seedNow();
}

void Replicator::onBackup() {
  backup_there_ = true;
  whole_ = false;
  awaited_ = 0;
  if (begun_ && !applying_) seedNow();
}

// Sends an image that includes the update that was sent, if any: it is applied, and in the memory.
void Replicator::seedNow() {
  DTF_CHECK(begun_ && backup_there_ && !whole_ && !applying_);
  optimizer::ParameterStore::Image image = store_.newest();
  state_.step = image.version;
  state_.clock = image.clock;
  awaited_ = ++tickets_;
  link_.seed(awaited_, {state_, std::move(image.arenas), std::move(image.owner)});
}

void Replicator::onHeard(uint64_t ticket) {
  if (ticket != awaited_) return;  // that message was given up
  DTF_CHECK(ticket > 0 && begun_);
  awaited_ = 0;
  whole_ = true;
  if (const auto received = std::exchange(received_, nullptr)) return received();
  if (const auto then = std::exchange(when_whole_, nullptr)) then();
}

void Replicator::whenWhole(std::function<void()> then) {
  DTF_CHECK(then != nullptr && when_whole_ == nullptr && received_ == nullptr);
  if (whole_) return then();
  when_whole_ = std::move(then);
}

void Replicator::send(const arena::Gradient& mean, const UpdateNote& note,
                      std::function<void()> received) {
  DTF_CHECK(whole_ && !applying_ && awaited_ == 0 && received != nullptr);
  state_.memory.applied(note);
  received_ = std::move(received);
  applying_ = true;
  awaited_ = ++tickets_;
  link_.update(awaited_, {state_.epoch, store_.version() + 1, mean, note});
}

void Replicator::applied() {
  DTF_CHECK(applying_);
  applying_ = false;
  if (!whole_ && backup_there_) seedNow();
}

}  // namespace dtf::replication
