#include "launcher/chief_reports.h"

#include <fmt/core.h>

#include <utility>

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "launcher/announce.h"
#include "launcher/report.h"
#include "launcher/task_monitor.h"

namespace dtf::launcher {

ChiefReports::ChiefReports(const cluster::JobSpec& job, EventWriter& events,
                           ProgressDisplay& display, Print say, Print alarm,
                           double exchange_seconds)
    : job_(job),
      events_(events),
      display_(display),
      say_(std::move(say)),
      alarm_(std::move(alarm)),
      exchanges_(exchange_seconds) {
  DTF_CHECK(say_ != nullptr && alarm_ != nullptr);
}

void ChiefReports::onNotice(const Notice& notice, bool saving) {
  if (const auto* waiting = std::get_if<WaitingNotice>(&notice))
    display_.onWaiting(waiting->whom);
  else if (const auto* model = std::get_if<ModelNotice>(&notice))
    onModel(*model);
  else if (const auto* left_out = std::get_if<LeftOutNotice>(&notice))
    onLeftOut(*left_out);
  else if (const auto* evaluation = std::get_if<EvaluationNotice>(&notice))
    onEvaluation(*evaluation);
  else if (const auto* restored = std::get_if<RestoredNotice>(&notice))
    onRestored(*restored);
  else if (const auto* back = std::get_if<WentBackNotice>(&notice))
    onWentBack(*back);
  else if (const auto* saved = std::get_if<CheckpointNotice>(&notice))
    onCheckpoint(*saved, saving);
  else if (const auto* progress = std::get_if<ProgressNotice>(&notice))
    onProgress(*progress);
  else if (const auto* result = std::get_if<ResultNotice>(&notice))
    onResult(*result);
}

// A job that pauses meets once more behind its result.
bool ChiefReports::isOver() const {
  if (!result_ || !result_->is_saved) return false;
  const bool is_stopped = result_->outcome == outcomeName(Outcome::kStopped);
  return isDone() || (is_stopped && !job_.launch.pauses());
}

bool ChiefReports::isDone() const {
  return result_ && result_->is_saved && result_->outcome == outcomeName(Outcome::kDone);
}

bool ChiefReports::wasDone() const {
  if (!isDone() || has_begun_) return false;
  const Json result = Json::parseOrNull(result_->json);
  const Json* const found = result.find("already_done");
  return found != nullptr && *found == true;
}

void ChiefReports::onModel(const ModelNotice& model) {
  events_.model(model);
  say_(modelText(model, job_));
  if (!job_.cluster.isOneProcess()) say_(placementText(model, job_));
}

void ChiefReports::onLeftOut(const LeftOutNotice& left_out) {
  events_.leftOut(left_out);
  say_(leftOutText(left_out));
}

void ChiefReports::onEvaluation(const EvaluationNotice& evaluation) {
  evaluation_ = evaluation;
  if (evaluation.accuracy) display_.onAccuracy(*evaluation.accuracy);
  events_.evaluation(evaluation);
  say_(evaluationText(evaluation));
}

void ChiefReports::onRestored(const RestoredNotice& restored) {
  checkpoint_ = step_ = restored.step;
  say_(resumeText(restored));
  events_.restored(restored);
}

void ChiefReports::onWentBack(const WentBackNotice& back) {
  // What lies in memory is no checkpoint; those on the disk stay.
  if (!back.to_snapshot) checkpoint_ = back.step;
  step_ = back.step;
  alarm_(printable(back.reason));
  events_.wentBack(back);
}

void ChiefReports::onCheckpoint(const CheckpointNotice& saved, bool saving) {
  checkpoint_ = saved.step;
  has_begun_ = true;
  events_.checkpoint(saved);
  if (saving) say_(fmt::format("saved the checkpoint of step {}", saved.step));
}

void ChiefReports::onProgress(const ProgressNotice& progress) {
  step_ = progress.step;
  has_begun_ = true;
  events_.progress(progress);
  display_.onProgress(progress);
  const std::optional<double> seconds = exchanges_.add(progress.batches, progress.exchange_seconds);
  if (!seconds) return;
  events_.exchange(*seconds, exchanges_.predicted());
  say_(fmt::format("placement: an exchange takes {:.3g} ms, {:.3g} ms were predicted",
                   *seconds * 1e3, exchanges_.predicted() * 1e3));
}

}  // namespace dtf::launcher
