#include "common/train/evaluation_keeper.h"

#include <algorithm>
#include <utility>

#include "common/base/error.h"
#include "common/base/log.h"

namespace dtf::train {

namespace {

std::string keptMetric(const cluster::TrainSpec& train) {
  return train.checkpoint ? train.checkpoint->keep_best : "";
}

}  // namespace

EvaluationKeeper::EvaluationKeeper(std::filesystem::path checkpoints,
                                   const cluster::TrainSpec& train)
    : checkpoints_(std::move(checkpoints)),
      keep_best_(keptMetric(train)),
      early_stopping_(train.early_stopping) {}

void EvaluationKeeper::goOnFrom(uint64_t step) {
  std::vector<PastEvaluation> history = readEvaluations(checkpoints_);
  forgetLostCheckpoints(checkpoints_, history);
  const size_t later =
      std::erase_if(history, [step](const PastEvaluation& past) { return past.step > step; });
  const MutexLock lock(mutex_);
  history_ = std::move(history);
  bound();
  if (later > 0) write();
}

void EvaluationKeeper::goBack(uint64_t step) {
  const MutexLock lock(mutex_);
  if (awaited_ && awaited_->first > step) awaited_.reset();
  if (std::erase_if(history_, [step](const PastEvaluation& past) { return past.step > step; }) > 0)
    write();
}

// `is_current` runs under the lock, so a goBack() comes before this call or behind the entry.
void EvaluationKeeper::add(uint64_t step, const Evaluation& evaluation,
                           const std::function<bool()>& is_current) {
  const MutexLock lock(mutex_);
  if (is_current && !is_current()) {
    log::info("event=evaluation_dropped step={} reason=\"the job went back: it comes again\"",
              step);
    return;
  }
  std::erase_if(history_, [step](const PastEvaluation& past) { return past.step >= step; });
  history_.push_back(pastEvaluation(step, evaluation));
  if (awaited_ && awaited_->first == step) history_.back().checkpoint = awaited_->second;
  awaited_.reset();
  bound();
  write();
}

void EvaluationKeeper::saved(uint64_t step, uint64_t checkpoint) {
  const MutexLock lock(mutex_);
  const auto found = std::find_if(history_.begin(), history_.end(),
                                  [step](const PastEvaluation& past) { return past.step == step; });
  if (found == history_.end()) {
    awaited_ = {step, checkpoint};
    return;
  }
  found->checkpoint = checkpoint;
  write();
}

std::vector<uint64_t> EvaluationKeeper::kept() const {
  const MutexLock lock(mutex_);
  std::vector<uint64_t> steps;
  if (awaited_) steps.push_back(awaited_->second);
  const PastEvaluation* const best =
      keep_best_.empty() ? nullptr : bestCheckpoint(history_, keep_best_);
  if (best != nullptr) steps.push_back(*best->checkpoint);
  return steps;
}

std::string EvaluationKeeper::whyEnd() const {
  const MutexLock lock(mutex_);
  return early_stopping_ ? earlyStopReason(history_, *early_stopping_) : "";
}

std::optional<PastEvaluation> EvaluationKeeper::best() const {
  const MutexLock lock(mutex_);
  const PastEvaluation* const best =
      keep_best_.empty() ? nullptr : bestCheckpoint(history_, keep_best_);
  return best == nullptr ? std::nullopt : std::optional(*best);
}

void EvaluationKeeper::bound() {
  boundHistory(history_, keep_best_, early_stopping_ ? &*early_stopping_ : nullptr);
}

void EvaluationKeeper::write() {
  try {
    writeEvaluations(checkpoints_, history_);
  } catch (const Error& error) {
    log::warning("event=evaluations_not_kept reason=\"{}\"", error.message());
  }
}

}  // namespace dtf::train
