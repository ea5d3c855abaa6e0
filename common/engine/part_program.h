#pragma once

// The part of a step on one device, compiled: a program for each segment (segments.h), with the
// sources of its inputs.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/engine/fifo_queue.h"
#include "common/engine/host_act.h"
#include "common/engine/queue_act.h"
#include "common/engine/rendezvous.h"
#include "common/engine/replica_acts.h"
#include "common/engine/resource_key.h"
#include "common/engine/segments.h"
#include "common/engine/variable.h"
#include "common/graph/graph.h"
#include "common/graph/queue.h"
#include "common/runtime/compiled_step.h"

namespace dtf::engine {

// The number of each edge of a step, by the key of its _Send and _Recv.
using EdgeNumbers = std::map<std::string, uint32_t>;

using Bytes = std::span<const std::byte>;

// The inputs of a part for one step, in the order of the part's lists.
struct PartInputs {
  std::vector<Bytes> feeds;          // PartProgram::feeds()
  std::vector<Variable*> variables;  // PartProgram::variables(); borrowed
  std::vector<FifoQueue*> queues;    // PartProgram::queues(); borrowed
  std::vector<Parcel> arrivals;      // PartProgram::receives(); filled as they arrive

  // State of variables and queues that the program keeps until the step has ended.
  struct Held {
    bool begun = false;
    std::vector<Variable::Value>
        read;                     // by variables: the value that the step sees; null if not read
    std::vector<size_t> readers;  // by variables: pieces that have not read it yet
    std::vector<Variable::Value> given;        // by pieces: the result of an action, if it is read
    std::map<size_t, QueueAct::Result> taken;  // by piece: the result of an act that may wait
  } held;
};

// Owns: the compiled programs and their memory, so it runs one step at a time.
// Borrows: the device and its kernels (must outlive it).
// Threads: thread-compatible; its pieces run one at a time, in the device's thread.
// Blocks: run(), until the device is done.
// Errors: the constructor throws kBadConfig with the node for an op that a session can't run or the
// device has no kernel for; run(): errors of the kernels.
class PartProgram {
 public:
  struct Named {
    std::string name;
    graph::TensorSpec spec;
  };
  struct Used {
    ResourceKey key;
    std::string node;
    graph::TensorSpec spec;
  };
  struct UsedQueue {
    ResourceKey key;
    std::string node;
    graph::QueueSpec spec;
  };
  struct Receive {
    uint32_t edge = 0;
    std::string key;  // for messages
    uint64_t bytes = 0;
  };
  struct Send {
    uint32_t edge = 0;
    Bytes bytes;  // valid until the piece runs again, or the step's inputs are freed
  };
  // A segment, as seen by the executor.
  struct Piece {
    std::vector<size_t> receives;  // indices into receives()
    std::vector<size_t> after;     // pieces
    size_t kernels = 0;            // kernels in one run
    // It may wait for a queue or for other replicas: then call start() and finish(), not run().
    bool may_wait = false;
  };

  // `fetches` are outputs of `part`, which contains only nodes of one device that are needed by a
  // fetch, a send or a target: all of it runs. It isn't kept. `pool`: as of SessionDevice.
  PartProgram(const graph::Graph& part, const std::vector<graph::Output>& fetches,
              runtime::Device& device, const runtime::KernelTable& kernels,
              const EdgeNumbers& edges, runtime::ComputePool* pool = nullptr);
  ~PartProgram();
  PartProgram(PartProgram&&) noexcept;

  const std::vector<Named>& feeds() const { return feeds_; }
  const std::vector<Used>& variables() const { return variables_; }
  const std::vector<UsedQueue>& queues() const { return queues_; }
  const std::vector<Receive>& receives() const { return receives_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  // The key of an outgoing edge, for messages.
  const std::string& sendKey(uint32_t edge) const { return send_keys_.at(edge); }

  // Runs a piece after its receives have arrived and its predecessors have run. Returns the tensors
  // to send. The first piece of a step reads the variables; in the first step it also computes the
  // constants.
  std::vector<Send> run(size_t piece, PartInputs& inputs);

  // Begins a piece that may wait; copies its inputs. `done` is called as by FifoQueue; unless it
  // gets an error, call finish() with the outcome.
  Awaited::Wait start(size_t piece, PartInputs& inputs, FifoQueue::Done done);
  void finish(size_t piece, PartInputs& inputs, FifoQueue::Elements elements) const;
  // The resource that such a piece waits for.
  Awaited& awaitedOf(size_t piece, const PartInputs& inputs) const;
  // The wait and the action of a piece, for messages.
  std::string awaited(size_t piece, const PartInputs& inputs) const;
  std::string actText(size_t piece) const;

  // Returns the i-th fetch after all pieces have run; valid until one of them runs again, while
  // `inputs` exist.
  Bytes fetch(size_t i, const PartInputs& inputs) const;

 private:
  // The source of a tensor.
  struct Source {
    enum class Kind : uint8_t { kFeed, kVariable, kArrival, kConstant, kResult } kind = Kind::kFeed;
    size_t index = 0;   // in feeds(), variables(), receives(), constants_; of the piece
    size_t result = 0;  // kResult: the fetch of the piece's program
  };
  struct Binding {
    int handle = 0;
    bool is_parameter = false;
    Source source;
  };
  // An action on a variable: `step` computes the new value from the old one and bound tensors.
  struct Action {
    size_t variable = 0;        // in variables()
    bool needs_value = false;   // reads the old value
    bool is_read = false;       // its result is read
    int before = 0, after = 0;  // handles of `step`
  };
  struct QueueAction {
    size_t queue = 0;  // in queues()
    QueueAct act;
    std::vector<Source> inputs;   // its inputs
    std::vector<size_t> outputs;  // by result: the act's output
  };
  struct HostAction {
    std::unique_ptr<HostAct> act;
    std::vector<size_t> variables;  // in variables()
    std::vector<Source> inputs;     // its other inputs
    std::vector<size_t> outputs;    // by result: the act's output
  };
  struct ReplicasAction {
    size_t global_step = 0;  // in variables()
    ArriveAct act;
    std::vector<Source> inputs;   // its other inputs
    std::vector<size_t> outputs;  // by result: the act's output
  };
  struct Program {
    std::unique_ptr<runtime::CompiledStep> step;  // null: nothing to compute
    std::optional<Action> action;
    std::optional<HostAction> host;
    std::optional<QueueAction> queue;
    std::optional<ReplicasAction> replicas;
    std::vector<Binding> bindings;
    std::vector<std::pair<uint32_t, Source>> sends;  // edge, tensor
    std::vector<size_t> reads;                       // of variables(), distinct
  };
  struct Use {
    bool is_read = false;  // by a piece, a send or a fetch
    bool is_kept = false;  // to the end of the step: its memory is referenced
    size_t readers = 0;    // pieces
  };
  class Maker;

  Bytes bytesOf(const Source& source, const PartInputs& inputs) const;
  void begin(PartInputs& inputs);
  void bind(Program& program, const PartInputs& inputs) const;
  void act(size_t piece, PartInputs& inputs);
  void actOnHost(const HostAction& action, const PartInputs& inputs) const;
  void release(const Program& program, PartInputs& inputs) const;

  std::vector<Named> feeds_;
  std::vector<Used> variables_;
  std::vector<Use> uses_;  // parallel to variables_
  std::vector<UsedQueue> queues_;
  std::vector<Receive> receives_;
  std::vector<Piece> pieces_;
  std::vector<Program> programs_;  // parallel to pieces_
  std::map<uint32_t, std::string> send_keys_;
  std::vector<Source> fetches_;
  std::unique_ptr<runtime::CompiledStep> constants_;  // null: none is passed on
  bool has_constants_ = false;                        // they have been computed
};

}  // namespace dtf::engine
