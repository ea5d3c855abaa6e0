#include "common/wire/ps/replica_link.h"

#include <fmt/format.h>
#include <kj/vector.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/wire/arena_codec.h"
#include "common/wire/gradient_codec.h"
#include "common/wire/named_wait.h"
#include "common/wire/replica_codec.h"

namespace dtf::wire {

namespace {

// The slowest rate at which a keeper handles a received message: it copies it, and may first have
// to apply the previous one.
constexpr uint64_t kWorkedBytesPerSecondMin = 256 << 20;
// The parameters, the slots, and the parameters of the step before.
constexpr uint32_t kFetchedArenasMax = 2 + optimizer::kSlotsMax;

// Every call handles its own errors; only a bug gets here.
class LogReplicaErrors final : public kj::TaskSet::ErrorHandler {
  void taskFailed(kj::Exception&& exception) override {
    log::error("event=replica_task_failed reason=\"{}\"", net::toError(exception).message());
  }
};

}  // namespace

PsReplicaLink::PsReplicaLink(net::Loop& loop, LinkOptions self, uint32_t keeper,
                             cluster::Address address, Events events)
    : loop_(loop),
      options_(std::move(self)),
      keeper_{JobKind::kPs, keeper},
      peer_(peerText(hostOf(options_, keeper), address)),
      events_(std::move(events)),
      connection_(
          loop,
          {.peer = peer_,
           .task = hostOf(options_, keeper).name(),
           .address = std::move(address),
           .kind = net::ConnectionKind::kBulk,
           .limits = arenaLimits(0),
           .pool = net::BufferPool::create(),
           .patience = fromSeconds(options_.timeouts.start_seconds)},
          fromSeconds(std::max(options_.timeouts.lease_seconds, options_.timeouts.rejoin_seconds)),
          fromSeconds(options_.timeouts.lease_seconds),
          {.say_hello = [this](auto& connection) { return sayHello(connection); },
           .on_open = [this] { onOpen(); },
           .failing_max =
               fromSeconds(options_.timeouts.rejoin_seconds + options_.timeouts.step_seconds),
           .on_lost = [this](const Error& error) { lost(error); }}),
      error_handler_(kj::heap<LogReplicaErrors>()),
      tasks_(*error_handler_) {
  DTF_CHECK(options_.self.job == JobKind::kPs && options_.self.index != keeper);
  DTF_CHECK(options_.incarnation.value != 0);
  DTF_CHECK(events_.on_backup && events_.on_heard && events_.on_lost);
}

PsReplicaLink::~PsReplicaLink() noexcept {}

void PsReplicaLink::lost(const Error& error) {
  if (!events_.on_lost) return;
  std::exchange(events_.on_lost, nullptr)(
      Error(ErrorCode::kUnavailable,
            fmt::format("{} lost {}, which keeps its replica: {}",
                        hostOf(options_, options_.self.index).name(), peer_, error.message())));
}

// Connects to the keeper. The limits allow replies to fetches, with one arena in each message.
void PsReplicaLink::open(uint64_t elements) {
  elements_ = elements;
  if (connection_.isOpen())
    connection_.connection().stream().setLimits(arenaLimits(elements, options_.chunk_bytes));
  if (std::exchange(opened_, true)) return;
  linked_ = connection_.open("linking to the keeper of the replica").fork();
  tasks_.add(linked_.addBranch().catch_(
      [this](kj::Exception&& exception) { lost(net::toError(exception)); }));
}

kj::Promise<void> PsReplicaLink::sayHello(net::RpcConnection& connection) {
  auto request = connection.bootstrap().castAs<schema::PsDataGate>().replicaRequest();
  encodeHello(options_, keeper_, request.initHello(), hellos_said_++);
  return request.send().then([this, &connection](auto&& response) {
    connection.stream().setLimits(arenaLimits(elements_, options_.chunk_bytes));
    replica_ = response.getReplica();
    greeted_ = Incarnation{response.getIncarnation()};
    if (greeted_ == met_) return;
    if (greeted_.isCountedBefore(met_))
      kj::throwFatalException(
          net::toKj(net::asio::error::not_connected, "an earlier process of it answered"));
    log::info("event=replica_linked keeper=\"{}\"", peer_);
  });
}

// Handles an accepted hello. The messages to an earlier process are not for this one, which gets
// its first message only after on_backup().
void PsReplicaLink::onOpen() {
  // A keeper that is gone has lost the replica. Watching notices that even while no message is due,
  // so that the next keeper is seeded at once.
  connection_.watch();
  if (std::exchange(met_, greeted_) != greeted_) events_.on_backup();
}

// Closes the connection if the keeper doesn't reply in time, so that the message is sent again over
// the next one. The time for sending the bytes doesn't count while they move, since it depends on
// the network.
kj::Promise<void> PsReplicaLink::answered(kj::Promise<void> answer, uint64_t bytes) {
  const Duration patience =
      fromSeconds(options_.timeouts.lease_seconds +
                  static_cast<double>(bytes) / static_cast<double>(kWorkedBytesPerSecondMin));
  const auto moved = [this] {
    return connection_.isOpen() ? connection_.connection().stream().moved() : 0;
  };
  return answer.exclusiveJoin(net::stillDelay(loop_.timer(), patience, moved).then([] {
    kj::throwFatalException(net::toKj(net::asio::error::timed_out, "no answer"));
  }));
}

// Sends a message, and sends it again after a break unless a later one has replaced it.
void PsReplicaLink::say(uint64_t ticket, std::function<kj::Promise<void>()> call, uint64_t bytes) {
  DTF_CHECK(ticket > ticket_ && opened_);
  ticket_ = ticket;
  tasks_.add(
      connection_
          .untilAnswered<void>("replicating",
                               [this, call = std::move(call), bytes, ticket, process = met_] {
                                 // A new process gets a seed, which is another message.
                                 if (process != met_ || ticket != ticket_)
                                   return kj::Promise<void>(kj::READY_NOW);
                                 return answered(call(), bytes);
                               })
          .then(
              [this, ticket, process = met_] {
                if (ticket == ticket_ && process == met_) events_.on_heard(ticket);
              },
              [this, ticket](kj::Exception&& exception) {
                if (ticket == ticket_) lost(net::toError(exception));
              }));
}

kj::Promise<void> PsReplicaLink::sayArena(uint32_t index, std::span<const float> arena,
                                          const std::shared_ptr<const void>& owner) {
  auto request = replica_->arenaRequest();
  request.setIndex(index);
  referenceArena(arena, owner, request.initValues(arenaChunks(arena.size(), options_.chunk_bytes)),
                 connection_.connection().stream(), options_.chunk_bytes);
  return request.send().ignoreResult();
}

void PsReplicaLink::seed(uint64_t ticket, const replication::ReplicaSeed& seed) {
  const auto what = std::make_shared<const replication::ReplicaSeed>(seed);
  uint64_t bytes = 0;
  for (const std::span<const float>& arena : seed.arenas) bytes += arena.size_bytes();
  say(
      ticket,
      [this, what] {
        kj::Vector<kj::Promise<void>> said;
        for (uint32_t i = 0; i < what->arenas.size(); ++i)
          said.add(sayArena(i, what->arenas[i], what->owner));
        auto request = replica_->seedRequest();
        encodeReplicaState(what->state, request.initState());
        said.add(request.send().ignoreResult());
        return joinAll(kj::mv(said));
      },
      bytes);
}

void PsReplicaLink::update(uint64_t ticket, const replication::ReplicaUpdate& update) {
  const auto what = std::make_shared<const replication::ReplicaUpdate>(update);
  say(
      ticket,
      [this, what] {
        const std::span<const float> values = what->gradient.values;
        auto request = replica_->updateRequest(capnp::MessageSize{
            32 + gradientWords(what->gradient, options_.chunk_bytes) + 4 * what->note.pushes.size(),
            0});
        encodeReplicaUpdate(*what, request);
        referenceArena(values, what->gradient.owner,
                       request.initGradient(arenaChunks(values.size(), options_.chunk_bytes)),
                       connection_.connection().stream(), options_.chunk_bytes);
        return request.send().ignoreResult();
      },
      update.gradient.values.size_bytes());
}

// ---- back

// Fetches the replica. A call while another one is under way gets the result of that one.
void PsReplicaLink::fetch(
    std::function<void(std::variant<replication::ReplicaSeed, Error>)> fetched) {
  DTF_CHECK(opened_ && fetched != nullptr);
  fetching_.push_back(std::move(fetched));
  if (fetching_.size() > 1) return;
  tasks_.add(
      linked_.addBranch()
          .then([this] {
            return connection_.untilAnswered<std::shared_ptr<replication::ReplicaSeed>>(
                "fetching a replica", [this] { return fetchAll(); });
          })
          .then(
              [this](const std::shared_ptr<replication::ReplicaSeed>& seed) {
                answerFetches(*seed);
              },
              [this](kj::Exception&& exception) { answerFetches(net::toError(exception)); }));
}

void PsReplicaLink::answerFetches(const std::variant<replication::ReplicaSeed, Error>& fetched) {
  for (const auto& waiting : std::exchange(fetching_, {})) waiting(fetched);
}

kj::Promise<std::shared_ptr<replication::ReplicaSeed>> PsReplicaLink::fetchAll() {
  const auto seed = std::make_shared<replication::ReplicaSeed>();
  // The keeper replies when it has applied all updates that it has received.
  auto fetched = replica_->fetchRequest().send().then(
      [this, seed](capnp::Response<schema::PsReplica::FetchResults>&& response) {
        const uint32_t count = response.getArenas();
        net::bridgeErrors([&] {
          seed->state = decodeReplicaState(response.getState());
          if (count == 0 || count > kFetchedArenasMax)
            throw Error(ErrorCode::kBadData,
                        fmt::format("{} keeps a replica of {} arenas", peer_, count));
        });
        seed->arenas.resize(count);
        seed->owners.resize(count);
        kj::Vector<kj::Promise<void>> coming;
        for (uint32_t i = 0; i < count; ++i) coming.add(fetchInto(seed, i));
        return joinAll(kj::mv(coming));
      });
  return answered(kj::mv(fetched), kFetchedArenasMax * elements_ * sizeof(float)).then([seed] {
    return seed;
  });
}

// Copies an arena of the replica into `seed`. The seed must not refer to the connection, because a
// checkpoint's thread may be its last user.
kj::Promise<void> PsReplicaLink::fetchInto(std::shared_ptr<replication::ReplicaSeed> seed,
                                           uint32_t index) {
  auto request = replica_->fetchedRequest(capnp::MessageSize{4, 0});
  request.setIndex(index);
  return request.send().then(
      [this, seed, index](capnp::Response<schema::PsReplica::FetchedResults>&& response) {
        net::bridgeErrors([&] {
          if (!connection_.isOpen())
            throw Error(ErrorCode::kUnavailable, "lost " + peer_ + " with its answer");
          KeptArena kept =
              keepArena(response.getValues(), elements_, connection_.connection().stream());
          seed->arenas[index] = kept.values;
          seed->owners[index] = std::move(kept.owner);
        });
      });
}

}  // namespace dtf::wire
