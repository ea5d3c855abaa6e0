#pragma once

// Parameters of calls to a psd, made of a call's arguments: mostly those of a real worker, with one
// error if the bytes choose it, or arbitrary ones.

#include "common/wire/ps.capnp.h"
#include "tests/fuzz/arguments.h"

namespace dtf::fuzz {

void fillTask(Arguments& arguments, schema::Task::Builder task);

// A hello to ps/`callee` of a job of two ps with that durability, from a worker or from the other
// ps.
void fillHello(Arguments& arguments, uint32_t callee, bool from_ps, cluster::Durability durability,
               schema::Hello::Builder hello);

// A model of one variable, whole on ps/`holder`, perhaps sparse, in rows of one element; `on_both`:
// and one more on the other ps.
void fillModel(Arguments& arguments, uint32_t holder, bool on_both,
               schema::PsControl::DeclareParams::Builder params);

// A replica's state, and an update without its gradient: mostly as the other ps would send them.
void fillReplicaState(Arguments& arguments, uint64_t epoch, schema::ReplicaState::Builder state);
void fillReplicaUpdate(Arguments& arguments, uint64_t epoch,
                       schema::PsReplica::UpdateParams::Builder update);

// `init(n)` makes a list of n chunks.
template <class Init>
void fillArena(Arguments& arguments, const Init& init) {
  const uint8_t kind = arguments.byte();
  capnp::List<capnp::Data>::Builder chunks = init(kind < 200 ? 1u : kind % 5u);
  for (uint32_t i = 0; i < chunks.size(); ++i) {
    const size_t size = kind < 200 ? kElements * sizeof(float) : arguments.byte();
    auto chunk = chunks.init(i, static_cast<uint32_t>(size));
    const std::string_view values = arguments.take(std::min<size_t>(size, kind % 16));
    if (!values.empty()) std::memcpy(chunk.begin(), values.data(), values.size());
  }
}

// Row counts; with no arguments none, as for a model without sparse variables.
template <class Init>
void fillRows(Arguments& arguments, const Init& init) {
  if (arguments.byte() != 'r') return;
  capnp::List<uint32_t>::Builder rows = init(arguments.byte() % 4u);
  for (uint32_t i = 0; i < rows.size(); ++i) rows.set(i, static_cast<uint32_t>(arguments.count()));
}

// The state of a step; with no arguments: a ps has applied the gradient of step 0.
void fillState(Arguments& arguments, schema::StepState::Builder state);

// The answer to a pull or an exchange.
template <class Results>
void fillParameters(Arguments& arguments, Results results) {
  fillState(arguments, results.initState());
  fillArena(arguments, [&](uint32_t chunks) { return results.initParameters(chunks); });
}

// Bytes as a message of one segment.
class AnyMessage {
 public:
  explicit AnyMessage(std::string_view bytes);
  template <class T>
  typename T::Reader root() {
    return reader_->getRoot<T>();
  }
  kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments() const { return segment_; }

 private:
  kj::Array<capnp::word> words_;
  kj::ArrayPtr<const capnp::word> segment_[1];
  kj::Own<capnp::MessageReader> reader_;
};

}  // namespace dtf::fuzz
