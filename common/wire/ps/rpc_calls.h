#pragma once

// The calls of a ExchangeClient to all ps at once, as promises: what the blocking
// RpcExchangeClient posts to its two loops, and what a simulation runs on one.

#include <kj/async.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/base/awake_clock.h"
#include "common/exchange/exchange_client.h"
#include "common/exchange/step_agreement.h"
#include "common/net/credentials.h"
#include "common/wire/ps/ps_data_link.h"
#include "common/wire/ps/ps_link.h"

namespace dtf::wire {

// A promise that stays unresolved until fail(): joined to every call, so that one lost peer ends
// every wait at once. Loop-thread only.
class Abort {
 public:
  Abort();
  void fail(const Error& error);

  // `promise`, or the error of fail(), whichever comes first.
  template <class T>
  kj::Promise<T> guard(kj::Promise<T> promise) {
    return promise.exclusiveJoin(aborted_.addBranch().then([]() -> T { KJ_UNREACHABLE; }));
  }

 private:
  kj::Own<kj::PromiseFulfiller<void>> fulfiller_;
  kj::ForkedPromise<void> aborted_;
};

template <>
inline kj::Promise<void> Abort::guard(kj::Promise<void> promise) {
  return promise.exclusiveJoin(aborted_.addBranch());
}

struct RpcClientOptions {
  LinkOptions link;
  std::vector<cluster::Address> ps;  // one per ps task
  net::Credentials credentials{};
  // Every few seconds while a step is not answered or a ps can't be reached: for whom it waits. On
  // the thread that exchanges, or the control loop.
  std::function<void(const std::string& what, Duration waited)> on_waiting{};
  // A ps is there again, as another process that holds nothing. Control loop.
  std::function<void(uint32_t ps_task)> on_replaced{};
};

// Everything but parameters and gradients.
// Owns: the control links.
// Borrows: `loop`, `options` (must outlive this).
// Threads: loop-thread only.
// Errors: as promises; see exchange::ExchangeClient.
class ControlCalls {
 public:
  // What the data calls of the same worker are to know, see PsControlLink::Events.
  struct Events {
    std::function<void(const Error&)> on_lost;  // after every call here has failed
    std::function<void(uint32_t ps_task, const Error& why)> on_broken{};
    std::function<void(uint32_t ps_task, const Awaited&)> on_awaited{};
  };
  // Starts to connect.
  ControlCalls(net::Loop& loop, const RpcClientOptions& options, Events events);

  // When every link has said hello. Fails when a ps is lost: the one that ended the job may have
  // kept another from ever coming.
  kj::Promise<void> opened() { return abort_.guard(opened_.addBranch()); }

  kj::Promise<void> declare(const arena::ModelDeclaration& declaration);
  kj::Promise<void> waitInitialised();
  kj::Promise<void> barrier(std::string_view name);
  kj::Promise<void> pause();
  kj::Promise<void> finish();
  // Whether finish() went on though a ps had not answered.
  bool finishedUnheard() const;
  // Tells every ps why this worker ends, or ends its job. Waits for hellos for `patience` at most,
  // and as long for the answers.
  kj::Promise<void> fail(const Error& error, FailureOf failure_of, Duration patience);
  // Asks ps/0 to end the job after the steps under way; after declare(). `refused` gets the reason
  // when it is no.
  void requestStop(std::function<void(const Error&)> refused);
  // See exchange::ExchangeClient.
  void setEvaluating(bool evaluates);

  // Those ps that were told to end.
  kj::Promise<std::set<uint32_t>> toldToEnd();

  // Calls `heard` when that ps, the model declared to it, has answered something that was asked
  // after this; never once it is lost. A newer call for the same ps replaces it.
  void hear(uint32_t ps_task, std::function<void()> heard);

  // Calls `broken` whenever the connection to a ps has broken: what that ps kept for it is gone.
  // One at a time; null: nobody.
  void watchBreaks(std::function<void(uint32_t ps_task, const Error& why)> broken) {
    on_break_ = std::move(broken);
  }

  // Every call fails with `error`, now and later, as when a ps is lost.
  void abort(const Error& error);

  // For checkpoint_calls.h, which speaks on the same connections.
  net::Loop& loop() { return loop_; }
  uint32_t psTasks() const { return static_cast<uint32_t>(links_.size()); }
  // The task that hosts that shard.
  TaskId host(uint32_t ps_task) const { return hostOf(options_.link, ps_task); }
  PsControlLink& link(uint32_t ps_task) { return *links_.at(ps_task); }
  template <class T>
  kj::Promise<T> guard(kj::Promise<T> promise) {  // fails when a ps is lost
    return abort_.guard(kj::mv(promise));
  }

 private:
  template <class Fn>
  kj::Promise<void> onEvery(Fn call);
  kj::Promise<void> askToStop();
  void onReplaced(uint32_t ps_task);
  void stopWanted(uint32_t ps_task);
  void passOnStop();

  net::Loop& loop_;
  const RpcClientOptions& options_;
  std::vector<std::unique_ptr<PsControlLink>> links_;
  std::function<void(const Error&)> on_lost_;
  std::function<void(uint32_t ps_task, const Error& why)> on_break_;
  Abort abort_;
  kj::ForkedPromise<void> opened_ = nullptr;
  std::set<uint32_t> told_to_end_;             // ps
  bool stop_asked_ = false;                    // and not refused
  kj::Promise<void> stopping_ = nullptr;       // because a ps wants it, or wants it again
  kj::Promise<void> asked_to_stop_ = nullptr;  // because this worker does
  std::map<uint32_t, kj::Promise<void>> hearing_;
};

// Parameters and gradients.
// Owns: the data links, with their arenas.
// Borrows: `loop`, `options` (must outlive this).
// Threads: loop-thread only; parameters(), gradients() and what they point to are the training
// thread's between calls, and during an exchange that was begun gradients(), too, and written().
// Errors: as promises; see exchange::ExchangeClient.
class DataCalls {
 public:
  // A bulk connection that broke is made again when the ps is known to be there: `ask` is to have
  // heard() called, with the same arguments, when ControlCalls::hear() says so. Without it a break
  // is tried to be mended at once.
  using Ask = std::function<void(uint32_t ps_task, uint64_t question)>;
  DataCalls(net::Loop& loop, const RpcClientOptions& options, Ask ask = nullptr);

  // Connects; the ps know the model already.
  kj::Promise<void> open(const arena::ModelDeclaration& declaration);
  kj::Promise<void> initialise(std::span<const std::span<const float>> shards, uint64_t epoch);

  // Both ask again until all ps name the same step.
  kj::Promise<replication::StepState> pull();
  kj::Promise<replication::StepState> exchange(uint64_t step, uint32_t batch, float loss);
  // The steps of an exchange that goes on while the caller computes, around exchange(); of the
  // training thread, as gradients(). begin() with replication.overlap, for a whole gradient:
  // gradients() are others from now on, and the exchange brings parameters beside those that are
  // here. begin() without it, for a growing gradient: the exchange sends what is written().
  void begin(exchange::Gradient gradient);
  void written(std::span<const uint64_t> elements);  // the loop is told by sendMore()
  void end() { gates_.clear(); }
  void sendMore();
  // See exchange::ExchangeClient; as setRows().
  void reportTimes(const replication::PhaseTimes& times) { reported_.times = times; }
  // Whether a growing gradient would leave while it is written.
  bool streams() const;

  // The moving averages or, `current`, the parameters: aside(), until the next call.
  kj::Promise<void> pullAside(bool current);

  const float* parameters(uint32_t ps_task) const { return parameters_[ps_task]; }
  // Whether parameters() are all of them, as the ps have them. As parameters().
  bool haveWhole() const {
    return std::ranges::all_of(links_, [](const auto& link) { return link->hasWhole(); });
  }
  const float* aside(uint32_t ps_task) const { return links_[ps_task]->aside(); }
  float* gradients(uint32_t ps_task) { return gradients_[ps_task]; }
  void setRows(uint32_t ps_task, std::span<const uint32_t> row_counts);  // as gradients()
  void wantRows(uint32_t ps_task, const arena::RowSet& rows);            // likewise

  // Every link, and of the first.
  bool TEST_shareMemory() const {
    return std::all_of(links_.begin(), links_.end(),
                       [](const auto& link) { return link->TEST_sharesMemory(); });
  }
  size_t TEST_arenasMapped() const { return links_[0]->TEST_arenasMapped(); }

  // Whom `ps_task` waits for, by its own word.
  void setAwaited(uint32_t ps_task, const Awaited& awaited) { awaited_.at(ps_task) = awaited; }

  void heard(uint32_t ps_task, uint64_t question);
  // The control connection to `ps_task` has broken: this one may only seem to be whole.
  void onBroken(uint32_t ps_task, const Error& why);

  // A ps is gone: every call fails with `error`, now and later.
  void fail(const Error& error) { abort_.fail(error); }

 private:
  struct Call {
    uint32_t ps_task = 0;
    std::function<kj::Promise<replication::StepState>(PsDataLink&)> start;
  };
  kj::Promise<void> askWhetherThere(uint32_t ps_task);
  kj::Promise<void> watch(Duration deadline, Duration reported);
  bool awaitsReturn() const;
  bool isWriting() const;
  void releaseEarlier();
  std::string unansweredText() const;
  kj::Promise<void> watched(uint32_t ps_task, kj::Promise<void> answer);
  kj::Promise<void> send(const std::vector<Call>& calls);
  using CallOfPs =
      std::function<kj::Promise<replication::StepState>(uint32_t ps_task, PsDataLink&)>;
  kj::Promise<replication::StepState> onEvery(const CallOfPs& call, bool is_push);
  kj::Promise<replication::StepState> settle();
  void noteAnswer(const replication::StepState& state);
  Duration waited() const;

  net::Loop& loop_;
  const AwakeClock clock_;
  const RpcClientOptions& options_;
  const Ask ask_;
  // Per ps: the last question, and who waits for its answer.
  struct Question {
    uint64_t number = 0;
    kj::Own<kj::PromiseFulfiller<void>> answered;
  };
  std::vector<Question> questions_;
  std::vector<std::unique_ptr<PsDataLink>> links_;
  Abort abort_;
  // Pointers taken after each answer.
  std::vector<const float*> parameters_;
  std::vector<float*> gradients_;
  // Of a growing gradient that is being sent: of each link. The vector is the training thread's,
  // and stays as it is while the exchange goes on.
  std::vector<std::shared_ptr<net::SendGate>> gates_;
  bool overlaps_ = false;
  std::optional<exchange::Settlement> settlement_;  // once open
  uint64_t epoch_ = 0;                              // of the parameters that it settled on
  uint64_t progress_ = 0;                           // bounded: that it settled on
  struct Reported {
    replication::PhaseTimes times;  // of the step before, with the next exchange
    bool are_compared = false;      // by ps/0
  } reported_;
  struct InFlight {
    // For the watchdog; on clock_.
    TimePoint since{};
    TimePoint deadline_from{};  // `since`, or when the return of a lost worker was last awaited
    // On the loop's clock: when it began, and the longest part of an answer's time in which that ps
    // did not let it wait; nullopt: some ps doesn't measure that.
    TimePoint begun{};
    std::optional<Duration> moving{};
  } call_;
  std::vector<bool> answered_;
  std::vector<Awaited> awaited_;
  uint32_t unanswered_ = 0;
  kj::Promise<void> watchdog_ = nullptr;
};

}  // namespace dtf::wire
