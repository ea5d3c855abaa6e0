#include "common/exchange/host_sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

#include "common/base/awake_clock.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/trace.h"
#include "common/replication/membership.h"

namespace dtf::exchange {

namespace {

constexpr uint64_t kAlignment = 4096;  // of arenas; a page
constexpr Duration kLookEvery = std::chrono::milliseconds(100);
constexpr Duration kReportEvery = std::chrono::seconds(3);

uint64_t aligned(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

uint32_t placeOf(const std::vector<uint32_t>& ranks, uint32_t rank) {
  const auto found = std::ranges::find(ranks, rank);
  DTF_CHECK(found != ranks.end() && std::ranges::is_sorted(ranks));
  return static_cast<uint32_t>(found - ranks.begin());
}

}  // namespace

void EndOfWaits::end(const Error& error) {
  const MutexLock lock(mutex_);
  if (!error_) error_ = error;
}

void EndOfWaits::throwIfEnded() const {
  const MutexLock lock(mutex_);
  if (error_) throw Error(*error_);
}

// ---- the memory: a head, a seat for each worker, then arenas: two of each member, then two of
// parameters. Numbers alternate between the two of a pair.

// A reply, without what only the leader needs.
struct HostSum::Reply {
  SumStep answers;  // the exchange that it replies to; epoch 0: none
  uint64_t epoch = 0, global_step = 0, next_step = 0;
  float loss = 0;
  uint32_t done = 0;  // or 1
};

// The error of a leader.
struct HostSum::Failure {
  std::atomic<uint64_t> count;    // of all leaders
  std::atomic<uint64_t> current;  // the number of the last one; 0: a later leader has joined
  ErrorCode code;
  bool has_ended_job;  // ErrorTrait::kJobEnded
  char text[4096];     // ends with a zero
};

struct HostSum::Head {
  // A reply as atomic words: a member may read it while the leader writes the next but one.
  struct Slot {
    using Words = std::array<uint64_t, sizeof(Reply) / sizeof(uint64_t)>;
    std::array<std::atomic<uint64_t>, std::tuple_size_v<Words>> words;

    void store(const Reply& reply) {
      const Words from = std::bit_cast<Words>(reply);
      for (size_t i = 0; i < from.size(); ++i) words[i].store(from[i], std::memory_order_relaxed);
    }
    Reply load() const {
      Words to{};
      for (size_t i = 0; i < to.size(); ++i) to[i] = words[i].load(std::memory_order_relaxed);
      return std::bit_cast<Reply>(to);
    }
  };
  std::atomic<uint64_t> published;  // how many replies; reply k is at k % 2
  Slot replies[2];
  Failure failure;
};

struct alignas(64) HostSum::Seat {
  struct HandedOver {
    SumStep step;
    float loss = 0;
  };
  std::atomic<uint64_t> handed_over;  // how many gradients; gradient k is at k % 2
  HandedOver gradients[2];
  std::atomic<uint64_t> reads;   // the number of the reply with the parameters in use; 0: none
  std::atomic<uint64_t> joined;  // how many processes
};

HostSum::HostSum(HostSumOptions options, std::vector<uint64_t> elements)
    : options_(std::move(options)),
      place_(placeOf(options_.ranks, options_.rank)),
      elements_(std::move(elements)) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
  DTF_CHECK(workers() >= 2 && options_.ended != nullptr);
  for (const uint64_t each : elements_) {
    offsets_.push_back(arena_bytes_);
    arena_bytes_ += aligned(each * sizeof(float));
  }
  const uint64_t arenas = 2 * (workers() - 1) + 2;
  join(aligned(sizeof(Head)) + aligned(workers() * sizeof(Seat)) + arenas * arena_bytes_);
  seatOf(place_).reads.store(0);  // of an earlier process
  seatOf(place_).joined.fetch_add(1);
  failures_before_ = head().failure.count.load();
  if (leads()) head().failure.current.store(0);
  log::info("event=host_sum workers={} leader={} leads={} file={}", workers(),
            replication::workerName(options_.ranks.front()), leads(), options_.file.string());
}

HostSum::~HostSum() = default;

void HostSum::join(uint64_t bytes) {
  Duration reported{};
  const auto on_waiting = [&](const std::string& reason, Duration waited) {
    options_.ended->throwIfEnded();
    if (waited - reported < kReportEvery) return;
    reported = waited;
    log::info("event=waiting for=\"{}\" waited_s={:.0f}", reason, toSeconds(waited));
    if (options_.on_waiting) options_.on_waiting(reason, waited);
  };
  memory_ = std::make_unique<JoinedMemory>(
      JoinedMemory::Options{.file = options_.file,
                            .bytes = bytes,
                            .seats = static_cast<uint32_t>(workers()),
                            .seat = place_,
                            .patience = options_.start_timeout,
                            .identity = options_.identity,
                            .on_waiting = on_waiting});
}

HostSum::Head& HostSum::head() const {
  return *reinterpret_cast<Head*>(memory_->data());
}

HostSum::Seat& HostSum::seatOf(uint32_t place) const {
  DTF_CHECK(place < workers());
  return reinterpret_cast<Seat*>(memory_->data() + aligned(sizeof(Head)))[place];
}

float* HostSum::arena(size_t number, uint32_t shard) const {
  DTF_CHECK(number < 2 * workers() && shard < offsets_.size());
  std::byte* const first =
      memory_->data() + aligned(sizeof(Head)) + aligned(workers() * sizeof(Seat));
  return reinterpret_cast<float*>(first + number * arena_bytes_ + offsets_[shard]);
}

// ---- waits

// Returns the event that is awaited of a worker that doesn't run.
std::string HostSum::absenceText(uint32_t place) const {
  if (seatOf(place).joined.load() == 0) return fmt::format("to open {}", options_.file.string());
  if (place != 0) return "to be back";
  const std::optional<Error> failure = failureOfLeader();
  return "to be back" + (failure ? fmt::format(" after \"{}\"", failure->message()) : "");
}

// Throws when `place` has been waited for too long. A leader that runs waits for others by
// deadlines of its own. One that is frozen loses its lease, and the end of the job ends this wait.
void HostSum::checkDeadline(const std::string& what, uint32_t place, bool is_there,
                            Duration waited) const {
  if (is_there && place == 0) return;
  const Duration allowed =
      is_there ? options_.step_timeout + options_.rejoin_timeout : options_.rejoin_timeout;
  if (waited < allowed) return;
  const std::string text = fmt::format(
      "{} has waited {:.0f} s for {}, on the same host, {}", replication::workerName(options_.rank),
      toSeconds(waited), replication::workerName(options_.ranks[place]),
      is_there ? what : absenceText(place) + " (timeouts.rejoin_seconds)");
  if (is_there || seatOf(place).joined.load() > 0) throw Error(ErrorCode::kDeadline, text);
  throw Error(ErrorCode::kBadConfig,
              text +
                  ": if it runs, it has another /dev/shm, user or run_dir: let the containers "
                  "of a host share them, give each container an address of its own, or leave "
                  "out 'topology'");
}

// Waits until `missing` returns no place; the deadline begins anew when another worker is missing,
// or the missing one has come or gone.
void HostSum::await(const std::string& what, const Missing& missing) {
  const SystemClock real;
  const AwakeClock clock(real, kLookEvery);  // a pause of the whole host is nobody's delay
  TimePoint since = clock.now(), reported = since;
  std::optional<std::pair<uint32_t, bool>> last;
  for (;;) {
    const uint32_t rings = memory_->rings();
    const std::optional<uint32_t> place = missing();
    if (!place) return;
    options_.ended->throwIfEnded();
    const bool is_there = memory_->isTaken(*place);
    const TimePoint now = clock.now();
    if (std::exchange(last, std::pair(*place, is_there)) != std::pair(*place, is_there))
      since = reported = now;
    checkDeadline(what, *place, is_there, now - since);
    if (now - reported >= kReportEvery) {
      reported = now;
      const std::string whom = replication::workerName(options_.ranks[*place]);
      const std::string text =
          whom + " " + (is_there ? what : absenceText(*place) + " on this host");
      log::info("event=waiting for=\"{}\" waited_s={:.0f}", text, toSeconds(now - since));
      if (options_.on_waiting) options_.on_waiting(text, now - since);
    }
    memory_->awaitRing(rings, kLookEvery);
  }
}

// ---- members

float* HostSum::gradient(uint32_t shard) {
  DTF_CHECK(!leads());
  const uint64_t next = seatOf(place_).handed_over.load() + 1;
  return arena(2 * (place_ - 1) + next % 2, shard);
}

void HostSum::handOver(const SumStep& step, float loss) {
  DTF_CHECK(!leads() && step.epoch > 0);
  Seat& seat = seatOf(place_);
  const uint64_t last = seat.handed_over.load();
  if (last > 0 && seat.gradients[last % 2].step == step) return;
  seat.gradients[(last + 1) % 2] = {step, loss};
  seat.handed_over.store(last + 1);
  memory_->ring();
}

// Returns the reply to `step`, or a later one, and keeps its parameters from being overwritten. The
// leader writes a reply only after it has published the one before; the fences, here and in
// publish(), make a reader that has met it see that.
std::optional<replication::StepState> HostSum::replyTo(const SumStep& step) {
  Seat& seat = seatOf(place_);
  for (;;) {
    const uint64_t number = head().published.load();
    if (number == 0) return std::nullopt;
    const Reply reply = head().replies[number % 2].load();
    std::atomic_thread_fence(std::memory_order_acquire);
    if (head().published.load() != number) continue;  // it may have been written meanwhile
    const bool went_back = reply.epoch > step.epoch;
    const bool is_reply = reply.epoch == step.epoch &&
                          (reply.next_step > step.step || reply.done != 0 || reply.answers >= step);
    if (!went_back && !is_reply) return std::nullopt;
    seat.reads.store(number);
    if (head().published.load() != number) {  // the leader may not have seen it
      seat.reads.store(0);
      memory_->ring();
      continue;
    }
    replication::StepState state;
    state.outcome = went_back                     ? replication::Outcome::kWentBack
                    : reply.next_step > step.step ? replication::Outcome::kApplied
                                                  : replication::Outcome::kStale;
    state.global_step = reply.global_step;
    state.next_step = reply.next_step;
    state.done = reply.done != 0;
    state.loss = reply.loss;
    state.epoch = reply.epoch;
    return state;
  }
}

replication::StepState HostSum::awaitReply(const SumStep& step) {
  DTF_CHECK(!leads());
  const trace::Span span("wait for the sum of the host");
  const SystemClock clock;
  const TimePoint begin = clock.now();
  seatOf(place_).reads.store(0);
  memory_->ring();
  std::optional<replication::StepState> state;
  await(fmt::format("to exchange step {}", step.step), [&]() -> std::optional<uint32_t> {
    state = replyTo(step);
    if (state) return std::nullopt;
    throwIfLeaderFailed();
    return 0;
  });
  state->waited = clock.now() - begin;
  return *state;
}

const float* HostSum::parameters(uint32_t shard) const {
  const uint64_t number = seatOf(place_).reads.load();
  DTF_CHECK(number > 0);
  return arena(2 * (workers() - 1) + number % 2, shard);
}

// Returns the error of the last leader, unless it is older than this process, or a later leader has
// joined.
std::optional<Error> HostSum::failureOfLeader() const {
  const Failure& failure = head().failure;
  const uint64_t number = failure.current.load();
  if (number == 0 || number <= failures_before_) return std::nullopt;
  Error error(failure.code,
              std::string(failure.text, ::strnlen(failure.text, sizeof failure.text)));
  if (failure.has_ended_job) error.add(ErrorTrait::kJobEnded);
  return error;
}

// An error that concerns only the leader's process, such as the loss of its lease, is no reason to
// end: the next process of the leader answers.
void HostSum::throwIfLeaderFailed() const {
  const std::optional<Error> failure = failureOfLeader();
  if (!failure || failure->code() == ErrorCode::kUnavailable ||
      failure->code() == ErrorCode::kPermission)
    return;
  Error error(failure->code(),
              fmt::format("{}, which exchanges the gradients of this host, has failed: {}",
                          replication::workerName(options_.ranks[0]), failure->message()));
  if (failure->has(ErrorTrait::kJobEnded)) error.add(ErrorTrait::kJobEnded);
  throw error;
}

// ---- the leader

void HostSum::fail(const Error& error) {
  DTF_CHECK(leads());
  Failure& failure = head().failure;
  const size_t bytes = std::min(error.message().size(), sizeof failure.text - 1);
  std::memcpy(failure.text, error.message().data(), bytes);
  failure.text[bytes] = 0;
  failure.code = error.code();
  failure.has_ended_job = error.has(ErrorTrait::kJobEnded);
  failure.current.store(failure.count.fetch_add(1) + 1);
  memory_->ring();
}

// Returns whether some member has later parameters than this leader, which it has pulled from ps
// that had them before the leader's pull. It hands over no gradient of `step` any more.
bool HostSum::isAhead(const SumStep& step) const {
  for (uint32_t place = 1; place < workers(); ++place) {
    const Seat& seat = seatOf(place);
    const uint64_t number = seat.handed_over.load();
    if (number > 0 && seat.gradients[number % 2].step > step) return true;
  }
  return false;
}

std::optional<std::vector<float>> HostSum::collect(const SumStep& step) {
  DTF_CHECK(leads());
  const trace::Span span("wait for the workers of the host");
  std::vector<float> losses;
  bool is_behind = false;
  await(fmt::format("to compute step {} (timeouts.step_seconds and rejoin_seconds)", step.step),
        [&]() -> std::optional<uint32_t> {
          losses.clear();
          collected_.clear();
          is_behind = isAhead(step);
          if (is_behind) return std::nullopt;
          for (uint32_t place = 1; place < workers(); ++place) {
            const Seat& seat = seatOf(place);
            const uint64_t number = seat.handed_over.load();
            const Seat::HandedOver& last = seat.gradients[number % 2];
            if (number == 0 || last.step != step) return place;
            losses.push_back(last.loss);
            collected_.push_back(number);
          }
          return std::nullopt;
        });
  if (is_behind) return std::nullopt;
  return losses;
}

const float* HostSum::collected(size_t index, uint32_t shard) const {
  DTF_CHECK(leads() && collected_.size() + 1 == workers());
  return arena(2 * index + collected_.at(index) % 2, shard);
}

void HostSum::publish(const replication::StepState& state, const std::optional<SumStep>& answers,
                      std::span<const float* const> parameters) {
  DTF_CHECK(leads() && parameters.size() == elements_.size());
  const uint64_t last = head().published.load();
  const Reply reply{
      answers.value_or(SumStep{}), state.epoch, state.global_step, state.next_step, state.loss,
      state.done ? 1U : 0U};
  const Reply before = head().replies[last % 2].load();
  if (last > 0 && !answers && before.epoch == reply.epoch && before.next_step == reply.next_step &&
      before.done == reply.done)
    return;
  const uint64_t number = last + 1;
  await(fmt::format("to leave the parameters before step {}", state.next_step),
        [&]() -> std::optional<uint32_t> {
          for (uint32_t place = 1; place < workers(); ++place) {
            const uint64_t reads = seatOf(place).reads.load();
            if (reads > 0 && reads % 2 == number % 2 && memory_->isTaken(place)) return place;
          }
          return std::nullopt;
        });
  for (uint32_t shard = 0; shard < elements_.size(); ++shard)
    std::memcpy(arena(2 * (workers() - 1) + number % 2, shard), parameters[shard],
                elements_[shard] * sizeof(float));
  std::atomic_thread_fence(std::memory_order_release);  // see replyTo()
  head().replies[number % 2].store(reply);
  head().published.store(number);
  memory_->ring();
}

}  // namespace dtf::exchange
