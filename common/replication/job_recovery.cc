#include "common/replication/job_recovery.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"

namespace dtf::replication {

namespace {

using Words = std::span<const PsState>;

// "ps/1, ps/3".
std::string psNames(const std::vector<uint32_t>& ps, const ChiefState& chief) {
  constexpr size_t kNamedMax = 8;
  std::string text;
  for (size_t i = 0; i < std::min(ps.size(), kNamedMax); ++i)
    text += (i == 0 ? "" : ", ") + chief.hosts.of(ps[i]).name();
  return ps.size() > kNamedMax ? fmt::format("{} and {} more", text, ps.size() - kNamedMax) : text;
}

template <class Predicate>
std::vector<uint32_t> psThat(Words words, Predicate predicate) {
  std::vector<uint32_t> ps;
  for (uint32_t i = 0; i < words.size(); ++i)
    if (predicate(words[i])) ps.push_back(i);
  return ps;
}

uint64_t newestEpoch(Words words) {
  uint64_t newest = 0;
  for (const PsState& word : words) newest = std::max(newest, word.epoch);
  return newest;
}

uint64_t furthestStep(Words words) {
  uint64_t furthest = 0;
  for (const PsState& word : words)
    if (word.epoch > 0) furthest = std::max(furthest, word.step);
  return furthest;
}

bool haveSnapshot(Words words, const CutName& cut) {
  return std::all_of(words.begin(), words.end(), [&](const PsState& word) {
    return std::find(word.snapshots.begin(), word.snapshots.end(), cut) != word.snapshots.end();
  });
}

// Repeats an interrupted return to saved values, in place of a new decision; nullopt: its cut is
// gone.
std::optional<RecoveryDecision> interrupted(Words words, uint64_t newest,
                                            const std::optional<CutName>& checkpoint) {
  const auto leader =
      std::find_if(words.begin(), words.end(), [&](const PsState& w) { return w.epoch == newest; });
  DTF_CHECK(leader != words.end());
  const bool snapshot =
      leader->origin == EpochOrigin::kSnapshot && haveSnapshot(words, leader->origin_cut);
  const bool saved = leader->origin == EpochOrigin::kCheckpoint && checkpoint == leader->origin_cut;
  if (!snapshot && !saved) return std::nullopt;
  RecoveryDecision decision;
  decision.action = RecoveryAction::kGoBack;
  decision.origin = leader->origin;
  decision.cut = leader->origin_cut;
  return decision;
}

// Decides to go back to the newest cut that all ps can restore; nullopt: there is none.
std::optional<RecoveryDecision> newestCut(Words words, const ChiefState& chief) {
  const std::optional<CutName>& checkpoint = chief.checkpoint;
  const std::optional<CutName> snapshot = newestCommonSnapshot(words);
  if (!snapshot && !checkpoint) return std::nullopt;
  RecoveryDecision decision;
  decision.action = RecoveryAction::kGoBack;
  const bool from_snapshot = snapshot && (!checkpoint || *snapshot > *checkpoint);
  decision.origin = from_snapshot ? EpochOrigin::kSnapshot : EpochOrigin::kCheckpoint;
  decision.cut = from_snapshot ? *snapshot : *checkpoint;
  return decision;
}

// Counts lost steps from the furthest step that is known; if none is, no step counts as lost.
RecoveryDecision goBack(RecoveryDecision decision, Words words, std::vector<uint32_t> lost,
                        const ChiefState& chief) {
  DTF_CHECK(decision.action == RecoveryAction::kGoBack);
  const uint64_t furthest = std::max({furthestStep(words), chief.step, chief.reached.value_or(0)});
  const uint64_t newest =
      std::max({newestEpoch(words), decision.cut.epoch, chief.epoch, chief.named});
  decision.epoch = nextEpoch(newest, chief.incarnation);
  DTF_CHECK(decision.epoch > newest);
  decision.steps_lost = furthest > decision.cut.step ? furthest - decision.cut.step : 0;
  const char* const source = decision.origin == EpochOrigin::kSnapshot ? "snapshot" : "checkpoint";
  if (furthest == 0 && lost.empty()) {
    decision.reason =
        fmt::format("no ps holds values: all take the {} of step {}", source, decision.cut.step);
  } else if (lost.empty()) {
    decision.reason = fmt::format(
        "a return to saved values was interrupted: all go back {} steps to the {} of step {}",
        decision.steps_lost, source, decision.cut.step);
  } else {
    decision.reason = fmt::format("{} lost {} values: all go back {} steps to the {} of step {}",
                                  psNames(lost, chief), lost.size() == 1 ? "its" : "their",
                                  decision.steps_lost, source, decision.cut.step);
  }
  decision.ps = std::move(lost);
  return decision;
}

// Ends the job: only some ps have their values, and nothing holds the others'. Training on would
// mix two histories.
RecoveryDecision torn(std::vector<uint32_t> lost, const ChiefState& chief) {
  RecoveryDecision decision;
  decision.action = RecoveryAction::kEnd;
  decision.reason = lost.empty()
                        ? "the ps hold values of different epochs, and the checkpoint or snapshot "
                          "that they were restoring is gone"
                        : fmt::format("{} lost {} values, and nothing holds them",
                                      psNames(lost, chief), lost.size() == 1 ? "its" : "their");
  decision.reason +=
      "; add `checkpoint:` to the file, or save more often, so that the next loss costs only some "
      "steps";
  decision.ps = std::move(lost);
  return decision;
}

// Whether the next ps keeps the whole shard of `ps`, in `epoch`.
bool hasReplica(Words words, uint32_t ps, uint64_t epoch) {
  const PsState& keeper = words[(ps + 1) % words.size()];
  return words.size() > 1 && keeper.epoch == epoch && keeper.replica_epoch == epoch;
}

bool hasReached(const ChiefState& chief) {
  return chief.reached.value_or(0) > 0;
}

// Whether no worker has trained: all values are initial ones, which follow from the seed.
bool onlyInitialised(Words words, const ChiefState& chief) {
  return chief.epoch == 0 && !hasReached(chief) &&
         std::all_of(words.begin(), words.end(), [](const PsState& word) {
           return word.epoch == 0 || (word.origin == EpochOrigin::kInitialValues && word.step == 0);
         });
}

RecoveryDecision start(uint64_t epoch, std::string reason) {
  RecoveryDecision decision;
  decision.action = RecoveryAction::kStart;
  decision.epoch = epoch;
  decision.reason = std::move(reason);
  return decision;
}

}  // namespace

std::optional<CutName> newestCommonSnapshot(Words words) {
  DTF_CHECK(!words.empty());
  std::optional<CutName> newest;
  for (const CutName& cut : words[0].snapshots)
    if ((!newest || cut > *newest) && haveSnapshot(words, cut)) newest = cut;
  return newest;
}

RecoveryDecision decideRecovery(Words words, const ChiefState& chief) {
  DTF_CHECK(!words.empty());
  RecoveryDecision decision;
  decision.ps = psThat(words, [](const PsState& word) { return word.absent; });
  if (!decision.ps.empty()) {
    decision.action = RecoveryAction::kWait;
    decision.reason =
        psNames(decision.ps, chief) + (decision.ps.size() == 1 ? " is" : " are") + " absent";
    return decision;
  }
  const uint64_t newest = newestEpoch(words);
  std::vector<uint32_t> empty = psThat(words, [](const PsState& word) { return word.epoch == 0; });
  const bool one_epoch = std::all_of(words.begin(), words.end(), [&](const PsState& word) {
    return word.epoch == 0 || word.epoch == newest;
  });
  if (newest > 0 && one_epoch && empty.empty()) {
    decision.action = RecoveryAction::kContinue;
    decision.epoch = newest;
    decision.origin = words[0].origin;
    decision.cut = words[0].origin_cut;
    decision.reason = "every ps holds its values";
    return decision;
  }
  if (newest > 0 && one_epoch && std::all_of(empty.begin(), empty.end(), [&](uint32_t ps) {
        return hasReplica(words, ps, newest);
      })) {
    decision.action = RecoveryAction::kRefill;
    decision.epoch = newest;
    decision.reason = psNames(empty, chief) + (empty.size() == 1 ? " takes its" : " take their") +
                      " values from replicas";
    decision.ps = std::move(empty);
    return decision;
  }
  if (newest > 0 && onlyInitialised(words, chief))
    return start(nextEpoch(std::max(newest, chief.named), chief.incarnation),
                 "the initial values have not reached every ps");
  std::optional<RecoveryDecision> back;
  if (!one_epoch) back = interrupted(words, newest, chief.checkpoint);
  if (!back) back = newestCut(words, chief);
  const bool lost = newest > 0 || chief.epoch > 0 || hasReached(chief);
  if (back)
    return goBack(std::move(*back), words, lost ? std::move(empty) : std::vector<uint32_t>{},
                  chief);
  if (lost) return torn(std::move(empty), chief);
  return start(nextEpoch(chief.named, chief.incarnation),
               chief.reached ? "no ps holds values any more, and no step was reported"
                             : "no ps holds values, and there is no checkpoint");
}

}  // namespace dtf::replication
