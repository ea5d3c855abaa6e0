#pragma once

// A worker's connection to one ps for parameters and gradients, on the data loop.

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/arena/encoded_gradient.h"
#include "common/arena/gradient_buffer.h"
#include "common/arena/model_declaration.h"
#include "common/arena/row_set.h"
#include "common/arena/shard_codecs.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/cluster/spec.h"
#include "common/exchange/transfer_plan.h"
#include "common/net/loop.h"
#include "common/net/rpc_connection.h"
#include "common/net/send_gate.h"
#include "common/replication/phase_times.h"
#include "common/replication/step_state.h"
#include "common/tensor/buffer.h"
#include "common/wire/healing_connection.h"
#include "common/wire/ps.capnp.h"
#include "common/wire/ps/board_client.h"
#include "common/wire/ps/parameter_reader.h"
#include "common/wire/ps/ps_link.h"
#include "common/wire/ps/ps_memory.h"

namespace dtf::wire {

// What moves between a worker and one shard.
struct ShardTraffic {
  exchange::JobTransfers job{};
  uint64_t elements = 0;
  std::vector<arena::SparseSlice> sparse{};  // of the shard
  std::vector<arena::ElementRange> exact{};  // are sent as float32 whatever the job's codec
};
// Of `rank` and the shard of `ps_task`.
ShardTraffic trafficOf(const arena::ModelDeclaration& model, uint32_t rank, uint32_t ps_task);

// Of that shard with that ps; by default with one on another host.
exchange::TransferPlan planOf(const ShardTraffic& traffic, const LinkOptions& options,
                              const exchange::TransferPeer& peer = {});

// Does what the plan of the job and of the ps that it meets says (exchange/transfer_plan.h).
// Owns: the bulk connection, the gradient arena, the last response with its parameters; two of what
// is read and written during an exchange, if exchanges overlap. Borrows: `io`.
// Threads: loop-thread only; the memory behind parameters() and gradients() is the training
// thread's between calls.
class PsDataLink {
 public:
  // `before_reopening`: see HealingConnection::Steps.
  PsDataLink(net::Loop& io, LinkOptions options, uint32_t ps_task, cluster::Address address,
             ShardTraffic traffic, std::function<kj::Promise<void>()> before_reopening = nullptr);

  kj::Promise<void> open();
  kj::Promise<void> initialise(std::span<const float> values, uint64_t epoch);
  // `epoch`: see PsData.pull in ps.capnp.
  kj::Promise<replication::StepState> pull(const replication::Wanted& wanted, uint64_t epoch = 0);
  using Exchange = wire::Exchange;
  // `gate`: of a gradient that is still being written; null: it is whole.
  kj::Promise<replication::StepState> exchange(Exchange said,
                                               std::shared_ptr<const net::SendGate> gate = nullptr);
  // The gate of the exchange under way has been opened further.
  void sendMore();

  // What the next pull or exchange brings: see exchange::ExchangeClient. Between calls.
  void wantRows(const arena::RowSet& rows);
  // Ahead of a pull or an exchange, and those that repeat it: what is wanted was said since the
  // last one, or it is all.
  void beginCall();
  // Whether parameters() are all of them, as the ps has them.
  bool hasWhole() const { return parameters_[received_].is_whole; }

  // Kept beside the parameters, until the next call: the moving averages or, `current`, the
  // parameters.
  kj::Promise<void> pullAside(bool current);

  // Since when the connection is broken; nullopt while it isn't.
  std::optional<TimePoint> brokenSince() const { return connection_.brokenSince(); }
  // The ps is known to be away: as when the connection breaks.
  void giveUp(const Error& why) { connection_.giveUp(why); }

  const float* parameters() const { return parameters_[received_].values.data(); }
  const float* aside() const { return aside_.values.data(); }  // what pullAside() brought
  // Whether it reads parameters in the memory of the ps, and how many arenas it has mapped for
  // that.
  bool TEST_sharesMemory() const { return shared_.arenas != nullptr; }
  size_t TEST_arenasMapped() const {
    return shared_.arenas ? shared_.arenas->TEST_mappedCount() : 0;
  }

  // After open().
  float* gradients() { return gradients_[written_].values(); }
  // Between calls: see exchange::ExchangeClient.
  void setRows(std::span<const uint32_t> row_counts) { gradients_[written_].setRows(row_counts); }
  // With overlap, between calls: the gradient that was written is what the next exchange
  // pushes, and what it brings goes beside the parameters that are here.
  void turn();
  // Between calls: whether a gradient would leave while it is being written.
  bool streams() { return connection_.isOpen() && plan_.streaming.is_used; }
  // Ahead of an exchange with a gate, which brings its parameters beside those that are here. The
  // gate of that gradient, which gradientWritten() opens: see DataCalls.
  std::shared_ptr<net::SendGate> startPush();
  void gradientWritten(net::SendGate& gate, uint64_t elements);
  // The parameters that such an exchange has left where they were are read no more.
  void releaseEarlier() { parameters_[1 - received_].release(); }

 private:
  // An arena that was received: in its response; where the ps has it; or put together or widened in
  // `assembled`, which keeps the rows that don't come.
  struct Received {
    std::span<const float> values;
    kj::Own<void> held;  // the response that `values` points into
    Buffer assembled;
    std::shared_ptr<const MappedMemory> mapped;  // or this
    uint64_t key = 0;                            // of that
    bool is_whole = false;                       // as the ps has them, and all
    void release();
  };
  kj::Promise<void> sayHello(net::RpcConnection& connection);
  kj::Promise<void> shareMemory();
  void noteNotShared(const Error& error);
  void takeShared(Received& received, uint64_t key);
  bool wantsRows() const { return !wanted_.isWhole() && plan_.rows.is_used; }
  kj::Promise<void> whenWritten(const net::SendGate& gate);
  kj::Promise<replication::StepState> pushIfOpen(const Exchange& said);
  kj::Promise<replication::StepState> pushOnBoard(const Exchange& said);
  replication::StepState takeReply(const BoardReply& reply);
  kj::Promise<replication::StepState> push(const Exchange& said,
                                           const std::shared_ptr<const net::SendGate>& gate);
  kj::Promise<void> giveGradients(const std::string& door, const net::DoorSecret& secret);
  uint64_t inUse() const;
  template <class Response>
  replication::StepState take(capnp::Response<Response>&& response, Received& received,
                              bool more_batches);

  net::Loop& io_;
  const LinkOptions options_;
  const TaskId ps_;
  const std::string peer_;
  const ShardTraffic traffic_;
  const arena::ShardCodecs codecs_;
  exchange::TransferPeer met_;  // the ps of the last hello
  exchange::TransferPlan plan_;
  std::vector<arena::GradientBuffer>
      gradients_;                    // shared with messages being sent; two where it overlaps
  size_t written_ = 0, pushed_ = 0;  // of them
  arena::EncodedGradient encoded_;   // of the one that is pushed
  uint32_t hellos_said_ = 0;
  HealingConnection connection_;
  std::optional<schema::PsData::Client> data_;  // of the last hello
  std::array<Received, 2> parameters_;   // may be of a connection before; the second where it
                                         // overlaps, or a gradient is streamed
  size_t received_ = 0;                  // of them: the newest
  struct Shared {                        // since the last hello
    std::unique_ptr<PsMemory> arenas;    // null: arenas travel
    std::unique_ptr<BoardClient> board;  // null: exchanges are calls
  } shared_;
  bool gradients_may_move_ = true;  // nobody has asked where they are
  std::string memory_fault_;        // why this process shares no memory; empty: it may
  struct Said {                     // in the log
    bool shared = false, not_shared = false, rows = false;
  } said_;
  Received aside_;
  arena::RowSet wanted_;
  bool is_wanted_anew_ = false;  // since the last call
  ParameterReader reader_;
  std::shared_ptr<const net::SendGate> gate_;        // of the exchange under way, or the last one
  kj::Own<kj::PromiseFulfiller<void>> gate_opened_;  // of who waits for it to be open; may be null
};

}  // namespace dtf::wire
