#pragma once

// The calls of an ExchangeClient to all ps at once, as promises. The blocking RpcExchangeClient
// posts them to its two loops; a simulation runs them on one.

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
  // Whether fail() was called: guard() only returns its error.
  bool hasFailed() const { return has_failed_; }

  // Returns `promise`, or the error of fail() if that comes first.
  template <class T>
  kj::Promise<T> guard(kj::Promise<T> promise) {
    return promise.exclusiveJoin(aborted_.addBranch().then([]() -> T { KJ_UNREACHABLE; }));
  }

 private:
  kj::Own<kj::PromiseFulfiller<void>> fulfiller_;
  kj::ForkedPromise<void> aborted_;
  bool has_failed_ = false;
};

template <>
inline kj::Promise<void> Abort::guard(kj::Promise<void> promise) {
  return promise.exclusiveJoin(aborted_.addBranch());
}

struct RpcClientOptions {
  LinkOptions link;
  std::vector<cluster::Address> ps;  // one per ps task
  net::Credentials credentials{};
  // Called every few seconds while a step has no reply or a ps can't be reached, with the tasks
  // that the worker waits for. On the thread that exchanges, or on the control loop.
  std::function<void(const std::string& what, Duration waited)> on_waiting{};
  // A new process of a ps has connected, which has no values. Called on the control loop.
  std::function<void(uint32_t ps_task)> on_replaced{};
  // A ps is lost, or the client was ended: its calls fail with this error. On the control loop.
  std::function<void(const Error&)> on_lost{};
};

// A worker's calls on the control connections to all ps.
// Owns: the control links.
// Borrows: `loop`, `options` (must outlive this).
// Threads: loop-thread only.
// Errors: as promises; see exchange::ExchangeClient.
class ControlCalls {
 public:
  // The events that the data calls of the same worker react to, see PsControlLink::Events.
  struct Events {
    std::function<void(const Error&)> on_lost;  // after every call here has failed
    std::function<void(uint32_t ps_task, const Error& why)> on_broken{};
    std::function<void(uint32_t ps_task, const Awaited&)> on_awaited{};
  };
  // Starts to connect.
  ControlCalls(net::Loop& loop, const RpcClientOptions& options, Events events);

  // Resolves when every ps has answered a hello. Fails as soon as a ps is lost: another one may
  // never start, if the lost one has ended the job.
  kj::Promise<void> opened() { return abort_.guard(opened_.addBranch()); }

  kj::Promise<void> declare(const arena::ModelDeclaration& declaration);
  kj::Promise<void> waitInitialised();
  kj::Promise<void> barrier(std::string_view name);
  kj::Promise<void> pause();
  kj::Promise<void> finish();
  // Returns whether finish() has ended without a reply from some ps.
  bool finishedUnheard() const;
  // Reports to every ps why this worker ends, or ends the job. Waits for the hellos for `patience`
  // at most, and for as long again for the replies.
  kj::Promise<void> fail(const Error& error, FailureOf failure_of, Duration patience);
  // After declare(): requests ps/0 to end the job after the steps under way. If ps/0 rejects that,
  // `refused` gets the reason.
  void requestStop(std::function<void(const Error&)> refused);
  // See exchange::ExchangeClient.
  void setEvaluating(bool evaluates);

  // Returns the ps that have received a signal to stop.
  kj::Promise<std::set<uint32_t>> toldToEnd();

  // Calls `heard` when the ps has the model and has replied to a request made after this call;
  // never once the ps is lost. A later call for the same ps replaces this one.
  void hear(uint32_t ps_task, std::function<void()> heard);

  // Calls `broken` whenever the connection to a ps breaks: the ps then drops the state of that
  // connection. There is one callback at a time; null removes it.
  void watchBreaks(std::function<void(uint32_t ps_task, const Error& why)> broken) {
    on_break_ = std::move(broken);
  }

  // Fails pending and later calls with `error`, like the loss of a ps.
  void abort(const Error& error);

  // For checkpoint_calls.h, which uses the same connections.
  net::Loop& loop() { return loop_; }
  uint32_t psTasks() const { return static_cast<uint32_t>(links_.size()); }
  // Returns the task that hosts the shard `ps_task`.
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
  std::set<uint32_t> told_to_end_;             // ps with a signal to stop
  bool stop_asked_ = false;                    // the request has not been rejected
  kj::Promise<void> stopping_ = nullptr;       // the request to stop, on behalf of a ps
  kj::Promise<void> asked_to_stop_ = nullptr;  // the request to stop, on behalf of this worker
  std::map<uint32_t, kj::Promise<void>> hearing_;
};

// A worker's exchanges of parameters and gradients with all ps.
// Owns: the data links, with their arenas.
// Borrows: `loop`, `options` (must outlive this).
// Threads: loop-thread only. Between calls the training thread may use parameters(), gradients()
// and the memory behind them; between begin() and end() also gradients() and written().
// Errors: as promises; see exchange::ExchangeClient.
class DataCalls {
 public:
  // `ask`: called when a bulk connection has broken. It must call ControlCalls::hear(), and then
  // heard() with the same arguments, after which the connection is made again. Without `ask` it is
  // made again at once.
  using Ask = std::function<void(uint32_t ps_task, uint64_t question)>;
  DataCalls(net::Loop& loop, const RpcClientOptions& options, Ask ask = nullptr);

  // Connects to the ps, which have the model already.
  kj::Promise<void> open(const arena::ModelDeclaration& declaration);
  kj::Promise<void> initialise(std::span<const std::span<const float>> shards, uint64_t epoch);

  // Both repeat the request until all ps return the same step.
  kj::Promise<replication::StepState> pull();
  kj::Promise<replication::StepState> exchange(uint64_t step, uint32_t batch, float loss);
  // The parts of an exchange that runs while the caller computes, around exchange(). For the
  // training thread, like gradients().
  // begin() with replication.overlap is for a complete gradient: gradients() change, and the
  // exchange puts its parameters beside the present ones. Without overlap it is for a growing
  // gradient: the exchange sends each part after written().
  void begin(exchange::Gradient gradient);
  void written(std::span<const uint64_t> elements);  // sendMore() sends them, on the loop
  void end() { gates_.clear(); }
  void sendMore();
  // See exchange::ExchangeClient. Threads: as setRows().
  void reportTimes(const replication::PhaseTimes& times) { reported_.times = times; }
  // Returns whether a gradient can be sent while it is being written.
  bool streams() const;

  // Receives the moving averages or, with `current`, the parameters; aside() keeps them until the
  // next call.
  kj::Promise<void> pullAside(bool current);

  const float* parameters(uint32_t ps_task) const { return parameters_[ps_task]; }
  // Returns whether parameters() have current values in all rows. Threads: as parameters().
  bool haveWhole() const {
    return std::ranges::all_of(links_, [](const auto& link) { return link->hasWhole(); });
  }
  const float* aside(uint32_t ps_task) const { return links_[ps_task]->aside(); }
  float* gradients(uint32_t ps_task) { return gradients_[ps_task]; }
  void setRows(uint32_t ps_task, std::span<const uint32_t> row_counts);  // as gradients()
  void wantRows(uint32_t ps_task, const arena::RowSet& rows);            // likewise

  // Returns whether every link shares memory; the second, the number of arenas of the first link.
  bool TEST_shareMemory() const {
    return std::all_of(links_.begin(), links_.end(),
                       [](const auto& link) { return link->TEST_sharesMemory(); });
  }
  size_t TEST_arenasMapped() const { return links_[0]->TEST_arenasMapped(); }

  // Sets the workers that `ps_task` reports to wait for.
  void setAwaited(uint32_t ps_task, const Awaited& awaited) { awaited_.at(ps_task) = awaited; }

  void heard(uint32_t ps_task, uint64_t question);
  // Notes that the control connection to `ps_task` has broken: the bulk connection may have broken
  // unnoticed.
  void onBroken(uint32_t ps_task, const Error& why);

  // Fails pending and later calls with `error`, after the loss of a ps.
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
  // For each ps: the last question to the control calls, and the promise of its answer.
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
  // The gates of a growing gradient that is being sent, one for each link. The training thread sets
  // the vector, which does not change during the exchange.
  std::vector<std::shared_ptr<net::SendGate>> gates_;
  bool overlaps_ = false;
  std::optional<exchange::Settlement> settlement_;  // once open
  uint64_t epoch_ = 0;                              // of the settled parameters
  uint64_t progress_ = 0;                           // bounded: the settled clock of this worker
  struct Reported {
    replication::PhaseTimes times;  // of the step before, with the next exchange
    bool are_compared = false;      // by ps/0
  } reported_;
  struct InFlight {
    // For the watchdog; on clock_.
    TimePoint since{};
    TimePoint deadline_from{};  // `since`, or the last wait for the return of a lost task
    // On the loop's clock: the beginning, and the longest time that a reply took without the wait
    // on its ps; nullopt: some ps doesn't measure the wait.
    TimePoint begun{};
    std::optional<Duration> moving{};
  } call_;
  std::vector<bool> answered_;
  std::vector<Awaited> awaited_;
  uint32_t unanswered_ = 0;
  kj::Promise<void> watchdog_ = nullptr;
};

}  // namespace dtf::wire
