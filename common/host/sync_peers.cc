#include "common/host/sync_peers.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/replication/membership.h"
#include "common/wire/model_codec.h"
#include "common/wire/opening.h"

namespace dtf::host {

namespace {

// Every task handles its own errors; only a bug gets here.
class LogErrors final : public kj::TaskSet::ErrorHandler {
  void taskFailed(kj::Exception&& exception) override {
    log::error("event=peer_task_failed reason=\"{}\"", net::toError(exception).message());
  }
};

// The capability for the reports of one follower's process.
class Leader final : public schema::SyncLeader::Server {
 public:
  Leader(PeerNetwork& network, uint32_t ps_task, Incarnation incarnation)
      : network_(network), ps_task_(ps_task), incarnation_(incarnation) {}
  kj::Promise<void> received(ReceivedContext context) override {
    net::bridgeErrors([&] { network_.checkNewest(ps_task_, incarnation_); });
    const auto params = context.getParams();
    return network_.host()
        .askNow<bool>([task = ps_task_,
                       step = replication::StepName{params.getEpoch(), params.getStep()},
                       rank = params.getRank()](shard::Shard& shard) {
          shard.peers().onReceived(task, step, rank);
          return true;
        })
        .ignoreResult();
  }

 private:
  PeerNetwork& network_;
  const uint32_t ps_task_;  // the follower
  const Incarnation incarnation_;
};

class Follower final : public schema::SyncFollower::Server {
 public:
  explicit Follower(PeerNetwork& network) : network_(network) {}
  kj::Promise<void> decided(DecidedContext context) override {
    const auto list = context.getParams().getRanks();
    std::vector<uint32_t> ranks;
    for (const uint32_t rank : list) ranks.push_back(rank);
    const replication::StepName step{context.getParams().getEpoch(), context.getParams().getStep()};
    network_.onDecided(step);
    return network_.host()
        .askNow<bool>([step, ranks = std::move(ranks)](shard::Shard& shard) {
          shard.peers().onDecision(step, ranks);
          return true;
        })
        .ignoreResult();
  }

 private:
  PeerNetwork& network_;
};

}  // namespace

// One connection to ps/0.
struct PeerNetwork::Link {
  std::unique_ptr<net::RpcConnection> connection;
  schema::SyncLeader::Client leader;
  kj::Own<kj::PromiseFulfiller<void>> broken;
};

PeerNetwork::PeerNetwork(net::Loop& control, wire::LinkOptions self,
                         std::vector<cluster::Address> ps, OnLost on_lost)
    : control_(control),
      self_(std::move(self)),
      ps_(std::move(ps)),
      peer_(wire::peerText(wire::hostOf(self_, 0), ps_.at(0))),
      lease_(fromSeconds(self_.timeouts.lease_seconds)),
      patience_(std::max(lease_, fromSeconds(self_.timeouts.rejoin_seconds))),
      on_lost_(std::move(on_lost)),
      error_handler_(kj::heap<LogErrors>()),
      tasks_(*error_handler_) {
  DTF_CHECK(self_.self.job == JobKind::kPs && self_.self.index < ps_.size());
  DTF_CHECK(on_lost_ != nullptr);
}

PeerNetwork::~PeerNetwork() noexcept(false) = default;

// ---- a follower's side

void PeerNetwork::sendReceived(replication::StepName step, uint32_t rank) {
  DTF_CHECK(!isLeader());
  DTF_CHECK(!reported_ || step >= *reported_);  // steps come one after the other
  const bool first = !reported_;
  reported_ = step;
  std::erase_if(unanswered_,
                [&](const Report& earlier) { return earlier.step.epoch < step.epoch; });
  unanswered_.push_back({step, rank});
  if (link_) return report(unanswered_.back());
  if (std::exchange(linking_, true)) return;
  const Duration patience = first ? fromSeconds(self_.timeouts.start_seconds) : patience_;
  tasks_.add(keepLinked(patience).catch_([this](kj::Exception&& exception) {
    linking_ = false;
    lost(net::toError(exception));
  }));
}

// Connects, and connects again after each break while a report has no reply or a decision is due.
kj::Promise<void> PeerNetwork::keepLinked(Duration patience) {
  return connect(patience)
      .then([this] { return untilBroken(); })
      .then([this]() -> kj::Promise<void> {
        if (needsLink()) return keepLinked(patience_);
        linking_ = false;
        return kj::READY_NOW;
      });
}

kj::Promise<void> PeerNetwork::connect(Duration patience) {
  DTF_CHECK(link_ == nullptr);
  using Leader = schema::SyncLeader::Client;
  const auto leader = std::make_shared<std::optional<Leader>>();
  const auto say_hello = [this, leader](net::RpcConnection& connection) {
    auto request = connection.bootstrap().castAs<schema::PsGate>().peerRequest();
    wire::encodeHello(self_, {JobKind::kPs, 0}, request.initHello(), hellos_said_++);
    request.setFollower(kj::heap<Follower>(*this));
    return request.send().then([this, leader](auto&& response) {
      const Incarnation incarnation{response.getIncarnation()};
      if (incarnation.isCountedBefore(met_))
        kj::throwFatalException(
            net::toKj(net::asio::error::connection_aborted, "an earlier process of it answered"));
      met_ = incarnation;
      *leader = response.getLeader();
    });
  };
  return wire::openConnection(control_,
                              {.peer = peer_,
                               .task = wire::hostOf(self_, 0).name(),
                               .address = ps_[0],
                               .kind = net::ConnectionKind::kControl,
                               .limits = {.bytes_max = 1 << 20},
                               .pool = net::BufferPool::create(0),
                               .patience = patience},
                              say_hello)
      .then([this, leader](std::unique_ptr<net::RpcConnection> connection) {
        DTF_CHECK(leader->has_value());
        ++links_made_;
        link_ = std::make_unique<Link>(
            Link{std::move(connection), **leader, kj::Own<kj::PromiseFulfiller<void>>()});
      });
}

// Sends the reports without a reply again, then waits for the end of the connection.
kj::Promise<void> PeerNetwork::untilBroken() {
  DTF_CHECK(link_ != nullptr);
  log::info("event=peer_linked peer=\"{}\" unanswered={}", peer_, unanswered_.size());
  auto broken = kj::newPromiseAndFulfiller<void>();
  link_->broken = kj::mv(broken.fulfiller);
  for (const Report& again : unanswered_) report(again);
  if (links_made_ > 1)
    host_->data().post([host = host_] { host->shard().peers().onLeaderLinked(); });
  return link_->connection->onDisconnect()
      .exclusiveJoin(kj::mv(broken.promise))
      .catch_([](kj::Exception&& exception) {
        if (net::carriesError(exception)) kj::throwFatalException(kj::mv(exception));
      })
      .then([this] {
        if (needsLink())
          log::warning("event=peer_lost peer=\"{}\" unanswered={}", peer_, unanswered_.size());
        // The connection ends in a turn of its own: this one may be its own promise's.
        return kj::evalLater([] {}).attach(std::exchange(link_, nullptr));
      });
}

void PeerNetwork::report(const Report& report) {
  DTF_CHECK(link_ != nullptr);
  auto request = link_->leader.receivedRequest();
  request.setEpoch(report.step.epoch);
  request.setStep(report.step.step);
  request.setRank(report.rank);
  tasks_.add(request.send()
                 .ignoreResult()
                 .exclusiveJoin(net::awakeDelay(control_.timer(), lease_).then([] {
                   kj::throwFatalException(net::toKj(net::asio::error::timed_out, "no answer"));
                 }))
                 .then([this, report] { std::erase(unanswered_, report); },
                       [this, report, link = links_made_](kj::Exception&& exception) {
                         onReportFailed(report, link, exception);
                       }));
}

// A report without a reply ends the connection, and is sent again over the next one. A rejected
// report ends the link for good, since ps/0 would reject it again.
void PeerNetwork::onReportFailed(const Report& report, uint64_t link,
                                 const kj::Exception& exception) {
  // It failed with an earlier connection, and was sent again over this one.
  if (link_ == nullptr || link != links_made_) return;
  if (!net::carriesError(exception)) return link_->broken->fulfill();
  const Error error = net::toError(exception);
  link_->broken->reject(net::toKj(
      Error(ErrorCode::kUnavailable,
            fmt::format("it refused the gradient of {} for step {}: {}",
                        replication::workerName(report.rank), report.step.step, error.message()))));
}

void PeerNetwork::lost(const Error& error) {
  if (!on_lost_) return;
  std::exchange(on_lost_, nullptr)(
      Error(ErrorCode::kUnavailable,
            fmt::format("{} lost {}, which decides the steps: {}",
                        wire::hostOf(self_, self_.self.index).name(), peer_, error.message())));
}

// ---- the leader's side

void PeerNetwork::checkFollower(TaskId task) const {
  if (!isLeader())
    throw Error(ErrorCode::kBadConfig, "only " + wire::hostOf(self_, 0).name() + " decides steps");
  if (task.job != JobKind::kPs || task.index == 0 || task.index >= ps_.size())
    throw Error(ErrorCode::kBadConfig,
                (task.job == JobKind::kPs ? wire::hostOf(self_, task.index) : task).name() +
                    " does not follow " + wire::hostOf(self_, self_.self.index).name());
}

void PeerNetwork::checkNewest(uint32_t ps_task, Incarnation incarnation) const {
  if (newest_.at(ps_task) == incarnation) return;
  throw Error(ErrorCode::kUnavailable,
              fmt::format("fenced: {} was replaced by a newer process; end this one",
                          wire::hostOf(self_, ps_task).name()));
}

schema::SyncLeader::Client PeerNetwork::follow(TaskId task, Incarnation incarnation,
                                               schema::SyncFollower::Client follower) {
  checkFollower(task);
  Incarnation& newest = newest_[task.index];
  if (!incarnation.isCountedBefore(newest)) newest = incarnation;
  checkNewest(task.index, incarnation);
  followers_.insert_or_assign(task.index, kj::mv(follower));
  for (const Decision& decision : unacknowledged_[task.index]) announce(task.index, decision);
  // The earlier reports may have been lost with a process. The shard forgets them before it gets
  // the first report over this connection.
  tasks_.add(host_
                 ->askNow<bool>([ps_task = task.index](shard::Shard& shard) {
                   shard.peers().onFollowerLinked(ps_task);
                   return true;
                 })
                 .ignoreResult()
                 .catch_([](kj::Exception&&) {}));  // this ps is about to end
  return kj::heap<Leader>(*this, task.index, incarnation);
}

// A step is decided when every ps has reported its gradients. A follower reports gradients of a
// step when it has applied the step before. So at most two decisions wait, even if ps/0 repeats the
// last one.
void PeerNetwork::sendDecision(replication::StepName step, const std::vector<uint32_t>& ranks) {
  DTF_CHECK(isLeader() && !ranks.empty());
  for (uint32_t task = 1; task < ps_.size(); ++task) {
    std::deque<Decision>& waiting = unacknowledged_[task];
    std::erase_if(waiting, [step](const Decision& earlier) {
      return earlier.step.epoch < step.epoch || earlier.step.step + 1 < step.step;
    });
    const Decision decision{step, ranks};
    if (std::find(waiting.begin(), waiting.end(), decision) == waiting.end())
      waiting.push_back(decision);
    DTF_CHECK(waiting.size() <= 2);
    if (followers_.contains(task)) announce(task, decision);
  }
}

// If the connection breaks, the follower makes another, and follow() sends it the decisions without
// an acknowledgement again.
void PeerNetwork::announce(uint32_t task, const Decision& decision) {
  auto request = followers_.at(task).decidedRequest();
  request.setEpoch(decision.step.epoch);
  request.setStep(decision.step.step);
  auto list = request.initRanks(static_cast<uint32_t>(decision.ranks.size()));
  for (uint32_t i = 0; i < list.size(); ++i) list.set(i, decision.ranks[i]);
  tasks_.add(request.send().ignoreResult().then(
      [this, task, decision] { std::erase(unacknowledged_[task], decision); },
      [this, task, step = decision.step.step](kj::Exception&& exception) {
        log::warning("event=decision_not_acknowledged peer={} step={} reason=\"{}\"",
                     wire::hostOf(self_, task).name(), step, net::toError(exception).message());
      }));
}

// ---- the shard's side

void ShardPeers::reportReceived(replication::StepName step, uint32_t rank) {
  control_.post([network = &network_, step, rank] { network->sendReceived(step, rank); });
}

void ShardPeers::announceDecision(replication::StepName step, const std::vector<uint32_t>& ranks) {
  control_.post([network = &network_, step, ranks] { network->sendDecision(step, ranks); });
}

}  // namespace dtf::host
