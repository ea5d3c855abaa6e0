#include "common/wire/exchange_board.h"

#include <algorithm>
#include <bit>
#include <string>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::wire {

namespace board {

namespace {

using Word = std::atomic<uint64_t>;
static_assert(sizeof(Word) == sizeof(uint64_t) && Word::is_always_lock_free);

// The record and the flag are in separate cache lines, so that writing one does not slow down
// readers of the other.
constexpr size_t kLineWords = 8;
constexpr size_t kFlag = kLineWords;
constexpr size_t kFields = 2 * kLineWords;
static_assert((kFields + kBoardWords) * sizeof(Word) <= kBoardBytes);

Word* wordsOf(const SharedMemory& memory) {
  return reinterpret_cast<Word*>(memory.data());
}
const Word* wordsOf(const MappedMemory& memory) {
  return reinterpret_cast<const Word*>(memory.data());
}

}  // namespace

Writer::Writer() : memory_(std::make_unique<SharedMemory>(kBoardBytes)) {}

// The stores of fields release, and the loads of fields in read() acquire. So a reader that sees a
// new field sees the odd count, too.
void Writer::write(uint64_t number, const Words& words) {
  Word* const page = wordsOf(*memory_);
  page[0].store(2 * number - 1, std::memory_order_relaxed);
  for (size_t i = 0; i < words.size(); ++i)
    page[kFields + i].store(words[i], std::memory_order_release);
  // Sequentially consistent, like flag() and setFlag(): if a writer then reads the flag, and a
  // reader clears the flag and then looks for a record, at least one sees the change of the other.
  page[0].store(2 * number, std::memory_order_seq_cst);
}

void Writer::setFlag(bool flag) {
  wordsOf(*memory_)[kFlag].store(flag ? 1 : 0, std::memory_order_seq_cst);
}

Reader::Reader(std::shared_ptr<const MappedMemory> memory) : memory_(std::move(memory)) {
  DTF_CHECK(memory_ != nullptr && memory_->bytes() >= kBoardBytes);
}

uint64_t Reader::number() const {
  return wordsOf(*memory_)[0].load(std::memory_order_seq_cst) / 2;
}

uint64_t Reader::read(Words& words) const {
  const Word* const page = wordsOf(*memory_);
  const uint64_t before = page[0].load(std::memory_order_seq_cst);
  if (before % 2 != 0) return 0;
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = page[kFields + i].load(std::memory_order_acquire);
  return page[0].load(std::memory_order_relaxed) == before ? before / 2 : 0;
}

bool Reader::flag() const {
  return wordsOf(*memory_)[kFlag].load(std::memory_order_seq_cst) != 0;
}

}  // namespace board

namespace {

constexpr size_t kTimesAt = 7;
static_assert(kTimesAt + replication::kPhaseNames.size() <= kBoardWords);
constexpr size_t kStragglerAt = 12;
constexpr size_t kGoneAt = kStragglerAt + 3;
static_assert(kGoneAt + kBoardGoneMax <= kBoardWords);

uint64_t wordOf(Duration time) {
  return static_cast<uint64_t>(std::max(time, Duration{0}).count());
}

// Bounds the time that another process wrote: sums of it must not overflow.
Duration timeOf(uint64_t word) {
  constexpr auto kMax = static_cast<uint64_t>(Duration(std::chrono::hours(24)).count());
  return Duration{static_cast<Duration::rep>(std::min(word, kMax))};
}

board::Words wordsOf(const BoardRequest& request) {
  const Exchange& exchange = request.exchange;
  board::Words words = {exchange.step,  exchange.batch,    std::bit_cast<uint32_t>(exchange.loss),
                        exchange.epoch, exchange.progress, request.gradient_key,
                        request.in_use};
  for (size_t i = 0; i < exchange.times.each.size(); ++i)
    words[kTimesAt + i] = wordOf(exchange.times.each[i]);
  return words;
}

BoardRequest requestOf(const board::Words& words) {
  BoardRequest request{.exchange = {.step = words[0],
                                    .batch = static_cast<uint32_t>(words[1]),
                                    .loss = std::bit_cast<float>(static_cast<uint32_t>(words[2])),
                                    .epoch = words[3],
                                    .progress = words[4]},
                       .gradient_key = words[5],
                       .in_use = words[6]};
  std::array<Duration, replication::kPhaseNames.size()>& times = request.exchange.times.each;
  for (size_t i = 0; i < times.size(); ++i) times[i] = timeOf(words[kTimesAt + i]);
  return request;
}

board::Words wordsOf(const BoardReply& reply) {
  const replication::StepState& state = reply.state;
  board::Words words = {reply.by_call ? uint64_t{1} : 0,
                        static_cast<uint64_t>(state.outcome),
                        state.global_step,
                        state.next_step,
                        state.next_batch,
                        state.done ? uint64_t{1} : 0,
                        state.staleness,
                        std::bit_cast<uint32_t>(state.loss),
                        state.epoch,
                        state.progress,
                        reply.key,
                        wordOf(state.waited)};
  if (state.straggler) {
    words[kStragglerAt] = uint64_t{1} + state.straggler->rank;
    words[kStragglerAt + 1] = static_cast<uint64_t>(state.straggler->phase);
    words[kStragglerAt + 2] = wordOf(state.straggler->excess);
  }
  std::copy(reply.gone.begin(), reply.gone.end(), words.begin() + kGoneAt);
  return words;
}

replication::Outcome outcomeOf(uint64_t word) {
  using replication::Outcome;
  for (const Outcome known :
       {Outcome::kApplied, Outcome::kQueued, Outcome::kStale, Outcome::kWentBack})
    if (static_cast<uint64_t>(known) == word) return known;
  throw Error(ErrorCode::kBadData,
              "a reply in shared memory has outcome " + std::to_string(word) + ", which is none");
}

BoardReply replyOf(const board::Words& words) {
  BoardReply reply;
  reply.by_call = words[0] != 0;
  if (reply.by_call) return reply;
  reply.state = {.outcome = outcomeOf(words[1]),
                 .global_step = words[2],
                 .next_step = words[3],
                 .next_batch = static_cast<uint32_t>(words[4]),
                 .done = words[5] != 0,
                 .staleness = words[6],
                 .loss = std::bit_cast<float>(static_cast<uint32_t>(words[7])),
                 .epoch = words[8],
                 .progress = words[9]};
  reply.key = words[10];
  reply.state.waited = timeOf(words[11]);
  if (words[kStragglerAt] != 0 && words[kStragglerAt + 1] < replication::kPhaseNames.size())
    reply.state.straggler = {static_cast<uint32_t>(words[kStragglerAt] - 1),
                             static_cast<replication::Phase>(words[kStragglerAt + 1]),
                             timeOf(words[kStragglerAt + 2])};
  std::copy_n(words.begin() + kGoneAt, kBoardGoneMax, reply.gone.begin());
  return reply;
}

}  // namespace

void RequestBoard::post(const BoardRequest& request) {
  requests_.write(++number_, wordsOf(request));
}

std::optional<BoardReply> RequestBoard::takeReply() const {
  board::Words words;
  if (number_ == 0 || replies_->number() != number_ || replies_->read(words) != number_)
    return std::nullopt;
  return replyOf(words);
}

void ReplyBoard::setPolled(bool polled) {
  if (std::exchange(polled_, polled) != polled) replies_.setFlag(polled);
}

std::optional<BoardRequest> ReplyBoard::take() {
  if (!answered_ || requests_.number() == taken_) return std::nullopt;
  board::Words words;
  const uint64_t number = requests_.read(words);
  if (number == 0 || number == taken_) return std::nullopt;
  taken_ = number;
  answered_ = false;
  return requestOf(words);
}

void ReplyBoard::skip() {
  taken_ = requests_.number();
  answered_ = true;
}

void ReplyBoard::answer(uint64_t number, const BoardReply& reply) {
  if (!awaits(number)) return;
  answered_ = true;
  replies_.write(number, wordsOf(reply));
}

}  // namespace dtf::wire
