#pragma once

// What the chief has reported of its job: shown to the person, passed on as events, and kept for
// status.json and the summary.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/cluster/spec.h"
#include "launcher/event_writer.h"
#include "launcher/exchange_comparison.h"
#include "launcher/notice.h"
#include "launcher/progress_display.h"

namespace dtf::launcher {

// Borrows: everything it is given (must outlive this).
// Threads: thread-compatible.
// Blocks: never.
class ChiefReports {
 public:
  // `say` prints a line unless the launch is quiet, `alarm` in any case.
  using Print = std::function<void(const std::string& text)>;
  // `exchange_seconds`: predicted; 0: no prediction.
  ChiefReports(const cluster::JobSpec& job, EventWriter& events, ProgressDisplay& display,
               Print say, Print alarm, double exchange_seconds = 0);

  // `saving`: the job was asked to save and end. What isn't the chief's to report has no effect.
  void onNotice(const Notice& notice, bool saving);

  const std::optional<EvaluationNotice>& evaluation() const { return evaluation_; }
  // The step of the newest checkpoint; none: there is none, or the job keeps none.
  std::optional<uint64_t> checkpoint() const { return checkpoint_; }
  const std::optional<ResultNotice>& result() const { return result_; }
  uint64_t step() const { return step_; }  // the last that was reported, or gone back to
  // The job has made a step in this launch.
  bool hasBegun() const { return has_begun_ || evaluation_ || result_; }
  // It has a result, and had come to its end before this launch.
  bool wasDone() const;
  // The job has its result, saved where it saves: nothing but the tasks' leaving is to come.
  bool isOver() const;
  // Likewise, and it has made all steps.
  bool isDone() const;

 private:
  void onResult(const ResultNotice& result) { result_ = result; }
  void onModel(const ModelNotice& model);
  void onLeftOut(const LeftOutNotice& left_out);
  void onEvaluation(const EvaluationNotice& evaluation);
  void onRestored(const RestoredNotice& restored);
  void onWentBack(const WentBackNotice& back);
  void onCheckpoint(const CheckpointNotice& saved, bool saving);
  void onProgress(const ProgressNotice& progress);

  const cluster::JobSpec& job_;
  EventWriter& events_;
  ProgressDisplay& display_;
  const Print say_;
  const Print alarm_;
  ExchangeComparison exchanges_;
  std::optional<EvaluationNotice> evaluation_;
  std::optional<uint64_t> checkpoint_;
  uint64_t step_ = 0;
  bool has_begun_ = false;
  std::optional<ResultNotice> result_;
};

}  // namespace dtf::launcher
