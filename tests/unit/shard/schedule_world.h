#pragma once

// A cluster of shards and workers in one thread. A seed chooses the order of all events: which link
// delivers its next message, when an update finishes, when a worker dies and how soon that is
// noticed. Links keep their order, as connections do; nothing else is ordered. Tests of the
// coordinators run many such schedules.

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/exchange/step_agreement.h"
#include "common/shard/shard.h"

namespace dtf::shard {

struct WorldOptions {
  uint64_t seed = 0;
  uint32_t ps_tasks = 2;
  uint32_t workers = 2;
  uint32_t aggregate = 0;               // 0: async
  std::optional<uint32_t> staleness{};  // bounded
  uint64_t steps = 6;
  int crashes_max = 0;
  int gone_for_good_max = 0;  // among the crashes: workers that the launcher doesn't restart
  bool slow_updates = false;  // none in place, each on a slow runner
};

class World {
 public:
  explicit World(const WorldOptions& options);

  // Runs until no event is left. Collects complaints in `problems`.
  void run();
  std::string replayName() const;
  int64_t lead_max = 0;  // bounded: between the clocks of two workers at work

  std::vector<std::string> problems;
  uint64_t stale = 0;
  uint64_t errors = 0;
  int crashes = 0;
  int gone_for_good = 0;
  bool allWorkersDone() const;
  ShardStatus status(uint32_t ps) const { return shards_[ps]->status(); }
  // Returns the first 16 parameters of a shard, at the end.
  std::vector<float> parameters(uint32_t ps);

  // Returns the gradient of (rank, step, batch): 16 values, the same on every ps.
  static std::vector<float> gradient(uint32_t rank, uint64_t step, uint32_t batch);

 private:
  using Link = std::deque<std::function<void()>>;

  // Holds each update until the schedule ends it.
  class SlowRunner final : public optimizer::UpdateRunner {
   public:
    SlowRunner(bool runs_all, Link& link) : runs_all_(runs_all), link_(link) {}
    uint64_t inPlaceBytesMax() const override {
      return runs_all_ ? 0 : UpdateRunner::inPlaceBytesMax();
    }
    void start(std::shared_ptr<optimizer::UpdateJob> job, std::function<void()> done) override {
      link_.push_back([job, done = std::move(done)] {
        const uint64_t middle = job->elements() / 2;
        job->run(middle, job->elements());
        job->run(0, middle);
        done();
      });
    }

   private:
    const bool runs_all_;  // else the small arenas are updated in place
    Link& link_;
  };

  class Peers final : public replication::SyncPeers {
   public:
    Peers(World& world, uint32_t ps) : world_(world), ps_(ps) {}
    void reportReceived(replication::StepName step, uint32_t rank) override;
    void announceDecision(replication::StepName step, const std::vector<uint32_t>& ranks) override;

   private:
    World& world_;
    const uint32_t ps_;
  };

  struct Worker {
    Incarnation incarnation;
    uint64_t round = 0;  // of calls; replies to older rounds are ignored
    uint32_t missing = 0;
    std::optional<exchange::Settlement> settlement;
    std::vector<std::shared_ptr<const arena::ParameterVersion>> parameters;
    std::optional<replication::StepState> first;  // that settled
    replication::StepState last;
    bool done = false;
    bool gone = false;
    uint64_t processes = 0;
  };

  Link& link(const std::string& name) { return links_[name]; }
  void startWorker(uint32_t rank);
  void crash(uint32_t rank);
  void expireLease(uint32_t ps, uint32_t rank, uint64_t process, Incarnation incarnation);
  void sendPull(uint32_t rank, uint32_t ps, const replication::Wanted& wanted);
  void sendPush(uint32_t rank, const replication::StepState& state);
  replication::PushCallback replyTo(uint32_t rank, uint32_t ps);
  void onAnswer(uint32_t rank, uint32_t ps, const replication::PushAnswer& answer);
  void onRoundComplete(uint32_t rank);
  void checkParameters(uint32_t rank, const replication::StepState& state);
  bool isAtWork(uint32_t rank) const;
  void checkStaleness(uint32_t rank, const replication::StepState& state);
  void checkSameOnEveryPs(const arena::ParameterVersion& snapshot);

  const WorldOptions options_;
  Random random_;
  ManualClock clock_;
  arena::ModelDeclaration model_;
  std::map<std::string, Link> links_;
  std::vector<std::unique_ptr<SlowRunner>> runners_;
  std::vector<std::unique_ptr<Peers>> peers_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<Worker> workers_;
  std::map<uint64_t, std::vector<float>> seen_;  // sync: step -> parameters, on any ps
  uint64_t incarnations_ = 0;
};

}  // namespace dtf::shard
