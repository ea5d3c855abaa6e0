#include "common/replication/membership.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::replication {

namespace {

// Fenced processes remembered per rank. An older process is refused, too: it isn't the live one.
constexpr size_t kFencedMax = 16;

}  // namespace

std::string_view memberStateName(MemberState state) {
  switch (state) {
    case MemberState::kAwaited:
      return "awaited";
    case MemberState::kJoined:
      return "joined";
    case MemberState::kFinished:
      return "finished";
    case MemberState::kLost:
      return "lost";
  }
  return "unknown";
}

std::string workerName(uint32_t rank) {
  return TaskId{JobKind::kWorker, rank}.name();
}

std::string workerNames(const std::vector<uint32_t>& ranks) {
  std::string text;
  for (const uint32_t rank : ranks) text += (text.empty() ? "" : ", ") + workerName(rank);
  return text;
}

std::string secondsText(Duration d) {
  return fmt::format("{:.3g} s", toSeconds(d));
}

Membership::Membership(uint32_t workers, Duration lease, const Clock& clock)
    : lease_(lease), clock_(clock), members_(workers), fenced_(workers) {
  const TimePoint now = clock.now();
  for (Member& member : members_) member.since = member.heard = now;
}

void Membership::validateRank(uint32_t rank) const {
  if (rank < members_.size()) return;
  throw Error(ErrorCode::kBadConfig,
              fmt::format("{} is not part of this job, which has {} workers; start it with the "
                          "cluster file that the parameter servers run with",
                          workerName(rank), members_.size()));
}

bool Membership::isFenced(uint32_t rank, Incarnation incarnation) const {
  const auto& list = fenced_[rank];
  return std::find(list.begin(), list.end(), incarnation) != list.end();
}

void Membership::fence(uint32_t rank, Incarnation incarnation) {
  if (isFenced(rank, incarnation)) return;
  auto& list = fenced_[rank];
  list.push_back(incarnation);
  if (list.size() > kFencedMax) list.pop_front();
}

void Membership::setState(uint32_t rank, MemberState state) {
  DTF_CHECK(rank < members_.size() && state != MemberState::kAwaited);  // never set again
  members_[rank].state = state;
  members_[rank].since = clock_.now();
}

bool Membership::join(uint32_t rank, Incarnation incarnation) {
  validateRank(rank);
  Member& member = members_[rank];
  const bool present =
      member.state == MemberState::kJoined || member.state == MemberState::kFinished;
  if (present && member.incarnation == incarnation) {
    member.heard = clock_.now();
    return false;
  }
  if (incarnation.isCountedBefore(member.incarnation)) refuse(rank, false);
  const bool is_there = member.state == MemberState::kJoined;
  if (is_there && incarnation.isBefore(member.incarnation)) refuseEarlier(rank);
  const bool was_lost = member.state == MemberState::kLost && member.incarnation == incarnation;
  if (was_lost) refuse(rank, true);
  if (isFenced(rank, incarnation)) check(rank, incarnation);  // throws: replaced or lost
  if (present) fence(rank, member.incarnation);
  member.incarnation = incarnation;
  member.heard = clock_.now();
  setState(rank, MemberState::kJoined);
  return true;
}

void Membership::check(uint32_t rank, Incarnation incarnation) {
  validateRank(rank);
  Member& member = members_[rank];
  const bool present =
      member.state == MemberState::kJoined || member.state == MemberState::kFinished;
  if (present && member.incarnation == incarnation) {
    member.heard = clock_.now();
    return;
  }
  if (!isFenced(rank, incarnation)) {
    throw Error(ErrorCode::kPermission,
                fmt::format("{} has not joined the job on this parameter server; a process joins "
                            "before it does anything else",
                            workerName(rank)));
  }
  refuse(rank, member.incarnation == incarnation);
}

// Refuses a process that was lost or replaced.
void Membership::refuse(uint32_t rank, bool was_lost) const {
  throw Error(ErrorCode::kUnavailable,
              was_lost
                  ? fmt::format("fenced: {} was declared lost (its lease is {}); start it again",
                                workerName(rank), secondsText(lease_))
                  : fmt::format("fenced: {} was replaced by a newer process; end this one",
                                workerName(rank)));
}

// Refuses a process that started earlier by the time of day, which may have been set back.
void Membership::refuseEarlier(uint32_t rank) const {
  throw Error(
      ErrorCode::kUnavailable,
      fmt::format("fenced: {} was replaced by a newer process, by the time of day; end this one, "
                  "or if the clock was set back, start it again in {}",
                  workerName(rank), secondsText(lease_)));
}

void Membership::hasFinished(uint32_t rank) {
  validateRank(rank);
  DTF_CHECK(members_[rank].state == MemberState::kAwaited);
  setState(rank, MemberState::kFinished);
}

void Membership::heartbeat(uint32_t rank, Incarnation incarnation) {
  check(rank, incarnation);
}

void Membership::finish(uint32_t rank, Incarnation incarnation) {
  check(rank, incarnation);
  if (members_[rank].state != MemberState::kFinished) setState(rank, MemberState::kFinished);
}

std::vector<Membership::Loss> Membership::expire() {
  std::vector<Loss> losses;
  const TimePoint now = clock_.now();
  for (uint32_t rank = 0; rank < members_.size(); ++rank) {
    const Member& member = members_[rank];
    if (member.state != MemberState::kJoined || now - member.heard <= lease_) continue;
    losses.push_back({rank, fmt::format("{} was lost (no heartbeat for {})", workerName(rank),
                                        secondsText(lease_))});
    markLost(rank);
  }
  return losses;
}

void Membership::markLost(uint32_t rank) {
  validateRank(rank);
  if (members_[rank].state != MemberState::kJoined) return;
  fence(rank, members_[rank].incarnation);
  setState(rank, MemberState::kLost);
}

void Membership::giveUp(uint32_t rank) {
  validateRank(rank);
  if (members_[rank].state == MemberState::kAwaited) setState(rank, MemberState::kLost);
}

bool Membership::allFinished() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.state == MemberState::kFinished; });
}

std::string Membership::missingText() const {
  std::string text;
  const TimePoint now = clock_.now();
  for (uint32_t rank = 0; rank < members_.size(); ++rank) {
    const Member& member = members_[rank];
    if (member.state == MemberState::kJoined || member.state == MemberState::kFinished) continue;
    text += fmt::format("{}{} ({} for {:.1f} s)", text.empty() ? "" : ", ", workerName(rank),
                        memberStateName(member.state), toSeconds(now - member.since));
  }
  return text;
}

}  // namespace dtf::replication
