#pragma once

// A worker's connection to one ps for parameters and gradients, on the data loop.

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/arena/encoded_gradient.h"
#include "common/arena/gradient_buffer.h"
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
#include "common/wire/ps/ps_remote.h"
#include "common/wire/ps/shard_traffic.h"

namespace dtf::wire {

// The bulk connection to one ps. It follows the plan of the job and of the ps in the last hello
// (exchange/transfer_plan.h).
// Owns: the bulk connection, the gradient arena, and the last reply with its parameters; two arenas
// and two replies if exchanges overlap.
// Borrows: `io` (must outlive this).
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
  // `gate`: for a gradient that is still being written; null: it is complete.
  kj::Promise<replication::StepState> exchange(Exchange said,
                                               std::shared_ptr<const net::SendGate> gate = nullptr);
  // Sends on, after the gate of the exchange under way has been opened further.
  void sendMore();

  // Sets the rows that the next pull or exchange returns: see exchange::ExchangeClient. Between
  // calls.
  void wantRows(const arena::RowSet& rows);
  // Comes once before a pull or an exchange, and its repetitions. They return all rows unless
  // wantRows() was called since the last beginCall().
  void beginCall();
  // Returns whether parameters() has current values in all rows.
  bool hasWhole() const { return parameters_[received_].is_whole; }

  // Receives the moving averages or, with `current`, the parameters. aside() keeps them, beside
  // parameters(), until the next call.
  kj::Promise<void> pullAside(bool current);

  // Returns the time of the break that is being repaired; nullopt: none.
  std::optional<TimePoint> brokenSince() const { return connection_.brokenSince(); }
  // Handles a ps that is known to be away like a break of the connection.
  void giveUp(const Error& why) { connection_.giveUp(why); }

  const float* parameters() const { return parameters_[received_].values.data(); }
  const float* aside() const { return aside_.values.data(); }  // of the last pullAside()
  // Return whether this link reads parameters in the memory of the ps, and its number of mapped
  // arenas.
  bool TEST_sharesMemory() const { return shared_.arenas != nullptr; }
  size_t TEST_arenasMapped() const {
    return shared_.arenas ? shared_.arenas->TEST_mappedCount() : 0;
  }

  // After open().
  float* gradients() { return gradients_[written_].values(); }
  // Between calls: see exchange::ExchangeClient.
  void setRows(std::span<const uint32_t> row_counts) { gradients_[written_].setRows(row_counts); }
  // With overlap, between calls: swaps the arenas. The next exchange pushes the gradient that was
  // written, and puts its parameters beside the present ones.
  void turn();
  // Between calls: returns whether a gradient is sent while it is being written.
  bool streams() { return connection_.isOpen() && plan_.streaming.is_used; }
  // Prepares an exchange of a growing gradient, which puts its parameters beside the present ones.
  // Returns the gate for it, which gradientWritten() opens: see DataCalls.
  std::shared_ptr<net::SendGate> startPush();
  void gradientWritten(net::SendGate& gate, uint64_t elements);
  // Releases the earlier parameters, which such an exchange has left in place.
  void releaseEarlier() { parameters_[1 - received_].release(); }

 private:
  // An arena that was received. Its values are in the response, in the memory of the ps, or in
  // `assembled`: from several chunks, decoded, or with the former values of rows that were not
  // sent.
  struct Received {
    std::span<const float> values;
    kj::Own<void> held;  // the response that `values` points into
    Buffer assembled;
    std::shared_ptr<const MappedMemory> mapped;  // or the memory of the ps
    uint64_t key = 0;                            // of `mapped`
    std::shared_ptr<Buffer> fetched;             // or values that the card has read
    bool is_whole = false;                       // all rows are current
    uint64_t base = 0;  // its number from the ps, which sends changes of it; 0 in all but one
    void release();
  };
  kj::Promise<void> sayHello(net::RpcConnection& connection);
  kj::Promise<void> shareMemory();
  void noteNotShared(const Error& error);
  void takeShared(Received& received, uint64_t key);
  bool wantsRows() const { return !wanted_.isWhole() && plan_.rows.is_used; }
  kj::Promise<void> whenWritten(const net::SendGate& gate);
  kj::Promise<replication::StepState> pushIfOpen(const Exchange& said);
  kj::Promise<replication::StepState> putAndPush(const Exchange& said);
  kj::Promise<replication::StepState> fetch(const replication::StepState& state, uint64_t key,
                                            Received& received);
  kj::Promise<replication::StepState> pushOnBoard(const Exchange& said);
  replication::StepState takeReply(const BoardReply& reply);
  kj::Promise<replication::StepState> push(const Exchange& said,
                                           const std::shared_ptr<const net::SendGate>& gate);
  kj::Promise<void> giveGradients(const std::string& door, const net::DoorSecret& secret);
  uint64_t inUse() const;
  // Returns the number of the parameters that the next ones may be a change of; 0: there are none.
  uint64_t base() const { return std::max(parameters_[0].base, parameters_[1].base); }
  template <class Response>
  void readParameters(const Response& response, Received& received);
  template <class Response>
  replication::StepState take(capnp::Response<Response>&& response, Received& received,
                              bool more_batches);
  template <class Response>
  kj::Promise<replication::StepState> takeAll(capnp::Response<Response>&& response,
                                              Received& received, bool more_batches);

  net::Loop& io_;
  const LinkOptions options_;
  const TaskId ps_;
  const std::string peer_;
  const ShardTraffic traffic_;
  const arena::ShardCodecs codecs_;
  exchange::TransferPeer met_;  // the ps of the last hello
  exchange::TransferPlan plan_;
  std::vector<arena::GradientBuffer>
      gradients_;                    // shared with messages being sent; two with overlap
  size_t written_ = 0, pushed_ = 0;  // indices into gradients_
  arena::EncodedGradient encoded_;   // of the pushed gradient
  uint32_t hellos_said_ = 0;
  HealingConnection connection_;
  std::optional<schema::PsData::Client> data_;  // of the last hello
  std::array<Received, 2> parameters_;   // may be from an earlier connection; the second one is for
                                         // overlap and for streamed gradients
  size_t received_ = 0;                  // index of the newest
  struct Shared {                        // since the last hello; `remote` until the break
    std::unique_ptr<PsMemory> arenas;    // null: arenas are sent
    std::unique_ptr<BoardClient> board;  // null: exchanges are calls
    std::unique_ptr<PsRemote> remote;    // with `transport: rdma`
  } shared_;
  bool gradients_may_move_ = true;  // gradients() has not returned their address yet
  std::string memory_fault_;        // the reason why this process shares no memory; empty: it may
  struct Said {                     // logged
    bool shared = false, not_shared = false, rows = false;
  } said_;
  Received aside_;
  arena::RowSet wanted_;
  bool is_wanted_anew_ = false;  // since the last call
  ParameterReader reader_;
  std::shared_ptr<const net::SendGate> gate_;        // of the exchange under way, or the last one
  kj::Own<kj::PromiseFulfiller<void>> gate_opened_;  // of whenWritten(); may be null
};

}  // namespace dtf::wire
