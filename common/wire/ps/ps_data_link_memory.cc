// The half of ps_data_link.h for memory: shared with a ps on the same host, or read and written by
// this host's network card.

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/error_bridge.h"
#include "common/wire/ps/ps_data_link.h"

namespace dtf::wire {

namespace {

// UCX_TLS may permit other transports than cards, such as "all", and UCX chooses among them.
void noteRemote(const std::string& peer, const std::string& over, const std::string& transports) {
  log::info("event=memory_remote peer=\"{}\" over=\"{}\" transports=\"{}\"", peer, over,
            transports);
  if (!net::areCards(transports))
    log::warning(
        "event=memory_remote_without_card peer=\"{}\" transports=\"{}\" remedy=\"UCX_TLS permits "
        "transports for tests, slower than dtf's own and open to other hosts: unset it\"",
        peer, transports.empty() ? "unknown" : transports);
}

}  // namespace

// Opens the channel of remote memory, which the job has asked for. Otherwise it sets up shared
// memory; if that fails, arenas are sent.
kj::Promise<void> PsDataLink::shareMemory() {
  if (plan_.remote_memory.is_used)
    return PsRemote::open(io_, *data_, options_.remote, peer_,
                          fromSeconds(options_.timeouts.step_seconds))
        .then([this](std::unique_ptr<PsRemote> remote) {
          shared_.remote = std::move(remote);
          if (!std::exchange(said_.shared, true))
            noteRemote(peer_, options_.remote->text(), shared_.remote->transports());
        });
  if (!plan_.shared_parameters.is_used) return kj::READY_NOW;
  return data_->openDoorRequest()
      .send()
      .then([this](capnp::Response<schema::PsData::OpenDoorResults>&& door) {
        return net::bridgeErrors([&] {
          return giveGradients(door.getAddress(), {door.getSecret0(), door.getSecret1()});
        });
      })
      .catch_([this](kj::Exception&& exception) {
        if (isBroken(exception)) kj::throwFatalException(kj::mv(exception));
        const Error error = net::toError(exception);
        met_.memory_fault = error.message();
        plan_ = planOf(traffic_, options_, met_);
        noteNotShared(error);
      });
}

// Logs the reason once, since a link may break many times a second. Memory that the cluster file of
// the ps disables is no reason for a warning.
void PsDataLink::noteNotShared(const Error& error) {
  if (std::exchange(said_.not_shared, true)) return;
  if (error.code() == ErrorCode::kBadConfig)
    log::info("event=memory_not_shared peer=\"{}\" error=\"{}\"", peer_, error.message());
  else
    log::warning("event=memory_not_shared peer=\"{}\" error=\"{}\"", peer_, error.message());
}

kj::Promise<void> PsDataLink::giveGradients(const std::string& door,
                                            const net::DoorSecret& secret) {
  auto memory = std::make_unique<PsMemory>(
      net::MemoryChannel::connect(door, secret),
      std::max(arena::sharedArenaBytesMax(traffic_.elements), kBoardBytes));
  std::vector<uint64_t> keys;
  if (plan_.shared_gradients.is_used) {
    for (arena::GradientBuffer& gradient : gradients_) {
      if (gradients_may_move_) gradient.moveToSharedMemory();
      if (gradient.sharedMemory() == nullptr) continue;
      memory->channel().give(*gradient.sharedMemory());
      keys.push_back(gradient.sharedMemory()->key());
    }
  }
  auto request = data_->shareMemoryRequest();
  auto sent = request.initGradientKeys(static_cast<uint32_t>(keys.size()));
  for (uint32_t i = 0; i < keys.size(); ++i) sent.set(i, keys[i]);
  const bool gives_all = keys.size() == gradients_.size();
  std::unique_ptr<RequestBoard> board;
  if (plan_.shared_gradients.is_used && gives_all && options_.exchanges_in_memory) {
    board = std::make_unique<RequestBoard>();
    memory->channel().give(board->memory());
    request.setRequestKey(board->memory().key());
  }
  return request.send().then(
      [this, gives_all, memory = kj::mv(memory), board = kj::mv(board)](auto&& response) mutable {
        shared_.arenas = std::move(memory);
        if (const uint64_t key = response.getReplyKey(); key != 0 && board != nullptr)
          net::bridgeErrors([&] {
            board->setReplies(shared_.arenas->find(key, kBoardBytes));
            shared_.board = std::make_unique<BoardClient>(io_, std::move(board));
          });
        if (plan_.shared_gradients.is_used && !gives_all) {
          met_.gradients_fault = "their memory was this process's own before";
          plan_ = planOf(traffic_, options_, met_);
        }
        if (!std::exchange(said_.shared, true))
          log::info("event=memory_shared peer=\"{}\" gradients={}", peer_, gives_all);
      });
}

// If this process can't map the arena that the reply names (it has no descriptor or mapping left),
// it closes the connection, and uses no shared memory on the next one.
void PsDataLink::takeShared(Received& received, uint64_t key) {
  if (shared_.arenas == nullptr)
    throw Error(ErrorCode::kBadData, peer_ + " names shared memory, but none is shared");
  try {
    auto mapped = shared_.arenas->find(key, traffic_.elements * sizeof(float));
    received.release();
    received.mapped = std::move(mapped);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    memory_fault_ = error.message();
    noteNotShared(error);
    kj::throwFatalException(net::toKj(net::asio::error::not_connected, error.message()));
  }
  received.key = key;
  received.is_whole = true;
  received.values = {reinterpret_cast<const float*>(received.mapped->data()), traffic_.elements};
}

// One attempt by the board, followed by one with a message if no reply comes in time.
kj::Promise<replication::StepState> PsDataLink::pushOnBoard(const Exchange& said) {
  return shared_.board
      ->exchange({.exchange = said,
                  .gradient_key = gradients_[pushed_].sharedMemory()->key(),
                  .in_use = inUse()})
      .then([this, said](std::optional<BoardReply>&& reply) -> kj::Promise<replication::StepState> {
        if (!reply || reply->by_call) return pushIfOpen(said);
        return net::bridgeErrors([&] { return takeReply(*reply); });
      });
}

replication::StepState PsDataLink::takeReply(const BoardReply& reply) {
  shared_.arenas->forget(reply.gone);
  if (reply.key == 0)
    throw Error(ErrorCode::kBadData, peer_ + " replied in shared memory without parameters");
  takeShared(parameters_[received_], reply.key);
  return reply.state;
}

// One attempt: the gradient by the card, then the words in a message. A gradient that went to an
// earlier connection isn't in the arena of the next one.
kj::Promise<replication::StepState> PsDataLink::putAndPush(const Exchange& said) {
  const uint32_t connection = hellos_said_;
  return net::bridgeErrors([&] { return shared_.remote->put(gradients_[pushed_].share()); })
      .then([this, said, connection]() -> kj::Promise<replication::StepState> {
        if (connection != hellos_said_ || !connection_.isOpen()) return connectionLost();
        return push(said, nullptr);
      });
}

kj::Promise<replication::StepState> PsDataLink::fetch(const replication::StepState& state,
                                                      uint64_t key, Received& received) {
  received.release();
  return shared_.remote->get(key, traffic_.elements * sizeof(float), received.fetched)
      .then([this, state, &received, connection = hellos_said_] {
        // After a break the ps may have written the next parameters there.
        if (connection != hellos_said_ || !connection_.isOpen())
          kj::throwFatalException(connectionLost());
        received.values = {received.fetched->as<float>(), traffic_.elements};
        received.is_whole = true;
        return state;
      });
}

}  // namespace dtf::wire
