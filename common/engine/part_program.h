#pragma once

// The part of a step that runs on one device, compiled: a program for each segment (segments.h),
// and where each of them finds what it reads.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/engine/fifo_queue.h"
#include "common/engine/queue_act.h"
#include "common/engine/rendezvous.h"
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

// What a part reads that outlives its segments, for one step: each in the order of the part's list.
struct PartInputs {
  std::vector<Bytes> feeds;          // PartProgram::feeds()
  std::vector<Variable*> variables;  // PartProgram::variables(); borrowed
  std::vector<FifoQueue*> queues;    // PartProgram::queues(); borrowed
  std::vector<Parcel> arrivals;      // PartProgram::receives(); filled as they arrive

  // What the program keeps of variables and queues until the step has ended.
  struct Held {
    bool begun = false;
    std::vector<Variable::Value>
        read;                     // by variables: as the step sees them; null: nothing reads it
    std::vector<size_t> readers;  // by variables: pieces that have yet to read it
    std::vector<Variable::Value>
        given;  // by pieces: what an action gave, where somebody reads that
    std::map<size_t, QueueAct::Result> taken;  // by piece: what an act on a queue gave
  } held;
};

// Owns: the compiled programs and their memory, so one step at a time runs in it.
// Borrows: the device and its kernels (must outlive it).
// Threads: thread-compatible; its pieces run one at a time, in the device's thread.
// Blocks: run(), until the device is done.
// Errors: the constructor's kBadConfig, naming the node, for an op that a session can't run or the
// device has no kernel for; run(): those of the kernels.
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
    Bytes bytes;  // good until the piece runs again, or the step's inputs go
  };
  // A segment, as the executor sees it.
  struct Piece {
    std::vector<size_t> receives;  // indices into receives()
    std::vector<size_t> after;     // pieces
    size_t kernels = 0;            // that a run of it takes
    bool acts_on_queue = false;    // it is started and finished, not run
  };

  // `fetches` are outputs of `part`, which holds what one device does and nothing that no fetch, no
  // send and no target needs: all of it runs. Nothing of it is kept.
  PartProgram(const graph::Graph& part, const std::vector<graph::Output>& fetches,
              runtime::Device& device, const runtime::KernelTable& kernels,
              const EdgeNumbers& edges);
  ~PartProgram();
  PartProgram(PartProgram&&) noexcept;

  const std::vector<Named>& feeds() const { return feeds_; }
  const std::vector<Used>& variables() const { return variables_; }
  const std::vector<UsedQueue>& queues() const { return queues_; }
  const std::vector<Receive>& receives() const { return receives_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  // Of an edge that leaves: for messages.
  const std::string& sendKey(uint32_t edge) const { return send_keys_.at(edge); }

  // Runs a piece whose receives have arrived and whose predecessors have run. Gives what leaves.
  // The first piece of a step reads the variables, that of the first step computes the constants,
  // too.
  std::vector<Send> run(size_t piece, PartInputs& inputs);

  // Likewise begins a piece that acts on a queue: what it puts in is copied here. `done`: as
  // FifoQueue says; with what came of it the piece is finished, unless that is an error.
  FifoQueue::Wait start(size_t piece, PartInputs& inputs, FifoQueue::Done done);
  void finish(size_t piece, PartInputs& inputs, FifoQueue::Elements elements) const;
  // Of a piece that acts on one.
  FifoQueue& queueOf(size_t piece, const PartInputs& inputs) const;
  // What it waits for, and what it does: for messages.
  std::string awaited(size_t piece, const PartInputs& inputs) const;
  std::string actText(size_t piece) const;

  // The i-th fetch when all pieces have run; good until one of them runs again, and `inputs` are
  // there.
  Bytes fetch(size_t i, const PartInputs& inputs) const;

 private:
  // Where a tensor is found.
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
  // What is done to a variable: `step` computes its value from the one before, and what is bound.
  struct Action {
    size_t variable = 0;        // in variables()
    bool needs_value = false;   // that it had before
    bool is_read = false;       // what it gives
    int before = 0, after = 0;  // handles of `step`
  };
  struct QueueAction {
    size_t queue = 0;  // in queues()
    QueueAct act;
    std::vector<Source> inputs;   // the values that it is given
    std::vector<size_t> outputs;  // by result: which of the act's
  };
  struct Program {
    std::unique_ptr<runtime::CompiledStep> step;  // null: nothing to compute
    std::optional<Action> action;
    std::optional<QueueAction> queue;
    std::vector<Binding> bindings;
    std::vector<std::pair<uint32_t, Source>> sends;  // edge, what
    std::vector<size_t> reads;                       // of variables(), each once
  };
  struct Use {
    bool is_read = false;  // by a piece, a send or a fetch
    bool is_kept = false;  // to the end of the step: something refers to its memory
    size_t readers = 0;    // pieces
  };
  class Maker;

  Bytes bytesOf(const Source& source, const PartInputs& inputs) const;
  void begin(PartInputs& inputs);
  void bind(Program& program, const PartInputs& inputs) const;
  void act(size_t piece, PartInputs& inputs);
  void release(const Program& program, PartInputs& inputs) const;

  std::vector<Named> feeds_;
  std::vector<Used> variables_;
  std::vector<Use> uses_;  // as variables_
  std::vector<UsedQueue> queues_;
  std::vector<Receive> receives_;
  std::vector<Piece> pieces_;
  std::vector<Program> programs_;  // as pieces_
  std::map<uint32_t, std::string> send_keys_;
  std::vector<Source> fetches_;
  std::unique_ptr<runtime::CompiledStep> constants_;  // null: none is passed on
  bool has_constants_ = false;                        // they are computed
};

}  // namespace dtf::engine
