#include "daemons/psd/sync_peers.h"

#include "common/base/log.h"
#include "common/net/connector.h"
#include "common/net/error_bridge.h"
#include "common/wire/model_codec.h"
#include "common/wire/named_wait.h"

namespace dtf::psd {

namespace {

// A message between ps that fails means that a ps is gone: the workers notice that themselves, and
// end the job.
class LogErrors final : public kj::TaskSet::ErrorHandler {
  void taskFailed(kj::Exception&& exception) override {
    log::warning("event=peer_message_failed reason=\"{}\"", net::toError(exception).message());
  }
};

class Leader final : public schema::SyncLeader::Server {
 public:
  explicit Leader(PeerNetwork& network) : network_(network) {}
  kj::Promise<void> follow(FollowContext context) override {
    network_.addFollower(wire::decodeTask(context.getParams().getTask()),
                         context.getParams().getFollower());
    return kj::READY_NOW;
  }
  kj::Promise<void> received(ReceivedContext context) override {
    const auto params = context.getParams();
    return network_.host()
        .askNow<bool>([task = params.getTask().getIndex(), step = params.getStep(),
                       rank = params.getRank()](ps::Shard& shard) {
          shard.onReceived(task, step, rank);
          return true;
        })
        .ignoreResult();
  }

 private:
  PeerNetwork& network_;
};

class Follower final : public schema::SyncFollower::Server {
 public:
  explicit Follower(PeerNetwork& network) : network_(network) {}
  kj::Promise<void> decided(DecidedContext context) override {
    const auto list = context.getParams().getRanks();
    std::vector<uint32_t> ranks;
    for (const uint32_t rank : list) ranks.push_back(rank);
    return network_.host()
        .askNow<bool>(
            [step = context.getParams().getStep(), ranks = std::move(ranks)](ps::Shard& shard) {
              shard.onDecision(step, ranks);
              return true;
            })
        .ignoreResult();
  }

 private:
  PeerNetwork& network_;
};

kj::Promise<void> sendOne(schema::SyncFollower::Client& follower, uint64_t step,
                          const std::vector<uint32_t>& ranks) {
  auto request = follower.decidedRequest();
  request.setStep(step);
  auto list = request.initRanks(static_cast<uint32_t>(ranks.size()));
  for (uint32_t i = 0; i < list.size(); ++i) list.set(i, ranks[i]);
  return request.send().ignoreResult();
}

}  // namespace

PeerNetwork::PeerNetwork(net::Loop& control, wire::LinkOptions self,
                         std::vector<cluster::Address> ps)
    : control_(control),
      self_(std::move(self)),
      ps_(std::move(ps)),
      error_handler_(kj::heap<LogErrors>()),
      tasks_(*error_handler_) {}

schema::SyncLeader::Client PeerNetwork::leader() {
  return kj::heap<Leader>(*this);
}

// Decisions made before a follower has connected wait for it here: it made the leader wait, so
// there is at most one.
void PeerNetwork::addFollower(TaskId task, schema::SyncFollower::Client follower) {
  followers_.insert_or_assign(task.index, follower);
  for (const Decision& decision : unsent_[task.index])
    tasks_.add(sendOne(follower, decision.step, decision.ranks));
  unsent_.erase(task.index);
}

kj::Promise<schema::SyncLeader::Client> PeerNetwork::connect() {
  const std::string peer = wire::peerText({JobKind::kPs, 0}, ps_[0]);
  net::ConnectOptions options;
  options.peer_name = peer;
  options.deadline = fromSeconds(self_.timeouts.start_seconds);
  return control_
      .connect(ps_[0].host, ps_[0].port, std::move(options), net::Limits{.bytes_max = 1 << 20},
               net::BufferPool::create(0))
      .then([this, peer](kj::Own<net::MessageStream> stream) {
        connection_ =
            std::make_unique<net::RpcConnection>(kj::mv(stream), net::RpcOptions{.peer = peer});
        auto request = connection_->bootstrap().castAs<schema::PsGate>().peerRequest();
        wire::encodeHello(self_, {JobKind::kPs, 0}, request.initHello());
        request.setFollower(kj::heap<Follower>(*this));
        return request.send();
      })
      .then([](auto&& response) { return response.getLeader(); });
}

void PeerNetwork::sendReceived(uint64_t step, uint32_t rank) {
  if (!leader_) leader_.emplace(connect().fork());
  tasks_.add(leader_->addBranch().then([this, step, rank](schema::SyncLeader::Client leader) {
    auto request = leader.receivedRequest();
    wire::encodeTask(self_.self, request.initTask());
    request.setStep(step);
    request.setRank(rank);
    return request.send().ignoreResult();
  }));
}

void PeerNetwork::sendDecision(uint64_t step, const std::vector<uint32_t>& ranks) {
  for (uint32_t task = 1; task < ps_.size(); ++task) {
    const auto follower = followers_.find(task);
    if (follower == followers_.end())
      unsent_[task].push_back({step, ranks});
    else
      tasks_.add(sendOne(follower->second, step, ranks));
  }
}

void ShardPeers::reportReceived(uint64_t step, uint32_t rank) {
  control_.post([this, step, rank] { network_.sendReceived(step, rank); });
}

void ShardPeers::announceDecision(uint64_t step, const std::vector<uint32_t>& ranks) {
  control_.post([this, step, ranks] { network_.sendDecision(step, ranks); });
}

}  // namespace dtf::psd
