#pragma once

// A cluster of shards and workers in one thread, in which a seed chooses the order of everything:
// which link delivers its next message, when an update finishes, when a worker dies and how soon
// that is noticed. Links keep their order, as connections do; nothing else is ordered. Used to
// check the coordinators under many schedules.

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
#include "common/ps/shard.h"
#include "common/ps/step_agreement.h"

namespace dtf::ps {

struct WorldOptions {
  uint64_t seed = 0;
  uint32_t ps_tasks = 2;
  uint32_t workers = 2;
  uint32_t aggregate = 0;               // 0: async
  std::optional<uint32_t> staleness{};  // bounded
  uint64_t steps = 6;
  int crashes_max = 0;
  int gone_for_good_max = 0;  // of the crashes: the launcher doesn't start these workers again
  bool slow_updates =
      false;  // arenas too large to be updated in place, on a runner that takes its time
};

class World {
 public:
  explicit World(const WorldOptions& options);

  // Until nothing is left to happen. Complaints are collected in `problems`.
  void run();
  std::string replayName() const;
  int64_t lead_max = 0;  // bounded: between the progress of two workers that were at work

  std::vector<std::string> problems;
  uint64_t stale = 0;
  uint64_t errors = 0;
  int crashes = 0;
  int gone_for_good = 0;
  bool allWorkersDone() const;
  ShardStatus status(uint32_t ps) const { return shards_[ps]->status(); }
  // The first 16 parameters of a shard, at the end.
  std::vector<float> parameters(uint32_t ps);

  // The gradient that (rank, step, batch) always computes: 16 values, the same on every ps.
  static std::vector<float> gradient(uint32_t rank, uint64_t step, uint32_t batch);

 private:
  using Link = std::deque<std::function<void()>>;

  // Waits with each update until the schedule says that it is over.
  class SlowRunner final : public UpdateRunner {
   public:
    explicit SlowRunner(Link& link) : link_(link) {}
    void start(std::shared_ptr<UpdateJob> job, std::function<void()> done) override {
      link_.push_back([job, done = std::move(done)] {
        const uint64_t middle = job->elements() / 32 * 16;
        job->run(middle, job->elements());
        job->run(0, middle);
        done();
      });
    }

   private:
    Link& link_;
  };

  class Peers final : public SyncPeers {
   public:
    Peers(World& world, uint32_t ps) : world_(world), ps_(ps) {}
    void reportReceived(StepName step, uint32_t rank) override;
    void announceDecision(StepName step, const std::vector<uint32_t>& ranks) override;

   private:
    World& world_;
    const uint32_t ps_;
  };

  struct Worker {
    Incarnation incarnation;
    uint64_t round = 0;  // of calls; answers to older rounds are ignored
    uint32_t missing = 0;
    std::optional<Settlement> settlement;
    std::vector<std::shared_ptr<const Snapshot>> parameters;
    std::optional<StepState> first;  // that settled
    StepState last;
    bool done = false;
    bool gone = false;
    uint64_t processes = 0;
  };

  Link& link(const std::string& name) { return links_[name]; }
  void startWorker(uint32_t rank);
  void crash(uint32_t rank);
  void expireLease(uint32_t ps, uint32_t rank, uint64_t process, Incarnation incarnation);
  void sendPull(uint32_t rank, uint32_t ps, const Wanted& wanted);
  void sendPush(uint32_t rank, const StepState& state);
  PushCallback replyTo(uint32_t rank, uint32_t ps);
  void onAnswer(uint32_t rank, uint32_t ps, const PushAnswer& answer);
  void onRoundComplete(uint32_t rank);
  void checkParameters(uint32_t rank, const StepState& state);
  bool isAtWork(uint32_t rank) const;
  void checkStaleness(uint32_t rank, const StepState& state);
  void checkSameOnEveryPs(const Snapshot& snapshot);

  const WorldOptions options_;
  Random random_;
  ManualClock clock_;
  ModelDeclaration model_;
  uint64_t elements_ = 0;
  std::map<std::string, Link> links_;
  std::vector<std::unique_ptr<SlowRunner>> runners_;
  std::vector<std::unique_ptr<Peers>> peers_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<Worker> workers_;
  std::map<uint64_t, std::vector<float>> seen_;  // sync: step -> parameters, on whichever ps
  uint64_t incarnations_ = 0;
};

}  // namespace dtf::ps
