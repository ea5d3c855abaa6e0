#include "common/engine/executor.h"

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/trace.h"
#include "common/runtime/stop_scope.h"

namespace dtf::engine {
namespace {

// Returns "w:0" for "<source device>;<reader's device>;w:0;0:0".
std::string_view tensorOf(std::string_view key) {
  const size_t first = key.find(';');
  if (first == std::string_view::npos) return key;
  const size_t begin = key.find(';', first + 1) + 1;
  const size_t end = key.rfind(';');
  return begin == 0 || end < begin ? key : key.substr(begin, end - begin);
}

// Records a departure as a span: from now until `done` is called.
Departures::Done tracedDeparture(const StepPart& part, TaskId to,
                                 const std::vector<PartProgram::Send>& tensors,
                                 Departures::Done done) {
  std::string names, keys;
  uint64_t bytes = 0;
  for (const PartProgram::Send& tensor : tensors) {
    const std::string& key = part.program->sendKey(tensor.edge);
    names += " ";
    names += tensorOf(key);
    keys += (keys.empty() ? "" : " ") + key;
    bytes += tensor.bytes.size();
  }
  return [trace = part.trace, begin = trace::now(), name = "_Send" + names,
          detail = "to " + to.name() + ", " + std::to_string(bytes) + " bytes: " + keys,
          done = std::move(done)](std::optional<Error> failed) {
    trace->add({.kind = trace::StepSpan::Kind::kSend,
                .name = name,
                .detail = detail,
                .begin = begin,
                .end = trace::now()});
    done(std::move(failed));
  };
}

void traceArrival(const StepPart& part, const PartProgram::Receive& receive, TimePoint begin) {
  part.trace->add({.kind = trace::StepSpan::Kind::kReceive,
                   .name = "_Recv " + std::string(tensorOf(receive.key)),
                   .detail = std::to_string(receive.bytes) + " bytes: " + receive.key,
                   .begin = begin,
                   .end = trace::now()});
}

// Records the wait of a piece for its turn at a queue.
void traceAct(const StepPart& part, size_t piece, TimePoint begin) {
  part.trace->add({.kind = trace::StepSpan::Kind::kReceive,
                   .name = part.program->actText(piece),
                   .detail = "",
                   .begin = begin,
                   .end = trace::now()});
}

// A running step. Shared by its caller, the pieces, and the callbacks of receives and sends. The
// last callback may come after the end of the step, without effect: an abort from outside runs in
// another thread.
// //
// Borrows: parts and ports, until it calls on_end.
// Threads: thread-safe.
class StepRun : public std::enable_shared_from_this<StepRun> {
 public:
  StepRun(StepId step, std::span<StepPart> parts, const StepPorts& ports, OnStepEnd on_end)
      : step_(step),
        parts_(parts),
        ports_(ports),
        states_(parts.size()),
        on_end_(std::move(on_end)) {
    for (size_t p = 0; p < parts.size(); ++p) {
      prepare(p);
      if (parts[p].trace != nullptr) traced_from_ = trace::now();
    }
  }

  void start() {
    std::vector<Place> ready;
    {
      MutexLock lock(mutex_);
      ++under_way_;  // this call
      for (size_t p = 0; p < parts_.size(); ++p) {
        for (size_t i = 0; i < states_[p].waiting.size(); ++i) {
          if (states_[p].waiting[i] == 0) ready.push_back({p, i});
        }
      }
      begin(ready);
    }
    post(ready);
    for (size_t p = 0; p < parts_.size(); ++p) {
      const std::vector<PartProgram::Receive>& receives = parts_[p].program->receives();
      for (size_t i = 0; i < receives.size(); ++i) {
        ports_.rendezvous->receive({step_.number, sourceOf(receives[i].edge), receives[i].edge},
                                   [self = shared_from_this(), p, i](Rendezvous::Arrival arrival) {
                                     self->arrived(p, i, std::move(arrival));
                                   });
      }
    }
    {
      MutexLock lock(mutex_);
      --under_way_;
    }
    endIfQuiet();
  }

  void abort(const Error& cause) { fail(cause, true); }

 private:
  struct Place {
    size_t part = 0, piece = 0;
    auto operator<=>(const Place&) const = default;
  };
  using Waits = std::map<Place, Awaited::Wait>;
  struct PartState {
    std::vector<size_t> waiting;                   // by piece: the number of events it waits for
    std::vector<std::vector<size_t>> after_piece;  // by piece: the pieces that wait for it
    std::vector<std::vector<size_t>> after_receive;
  };

  void prepare(size_t p) {
    const PartProgram& program = *parts_[p].program;
    PartState& state = states_[p];
    parts_[p].inputs.arrivals.assign(program.receives().size(), {});
    const size_t pieces = program.pieces().size();
    state.waiting.resize(pieces);
    state.after_piece.resize(pieces);
    state.after_receive.resize(program.receives().size());
    for (size_t i = 0; i < pieces; ++i) {
      const PartProgram::Piece& piece = program.pieces()[i];
      state.waiting[i] = piece.after.size() + piece.receives.size();
      for (const size_t before : piece.after) state.after_piece[before].push_back(i);
      for (const size_t receive : piece.receives) state.after_receive[receive].push_back(i);
    }
    MutexLock lock(mutex_);
    left_ += pieces;
  }

  Incarnation sourceOf(uint32_t edge) const {
    if (ports_.routes == nullptr) return step_.process;
    const auto remote = ports_.routes->sources.find(edge);
    return remote == ports_.routes->sources.end() ? step_.process : remote->second;
  }

  // Ends the step. A failed step doesn't wait for arrivals.
  void endIfQuiet() {
    OnStepEnd on_end;
    std::optional<StepEnd> end;
    {
      MutexLock lock(mutex_);
      const bool is_done = left_ == 0 && leaving_ == 0;
      if (over_ || under_way_ > 0 || (!is_done && !cause_)) return;
      over_ = true;
      on_end = std::exchange(on_end_, nullptr);
      end = cause_ ? StepEnd(*cause_) : StepEnd(kernels_);
    }
    on_end(*std::move(end));
  }

  // Counts the pieces before another thread can see the step as quiet.
  void begin(const std::vector<Place>& ready) DTF_REQUIRES(mutex_) { under_way_ += ready.size(); }

  void post(const std::vector<Place>& ready) {
    for (const Place& place : ready) {
      parts_[place.part].queue->post([self = shared_from_this(), place] { self->run(place); });
    }
  }

  // Removes one event from these pieces' waits; returns the pieces that are ready.
  std::vector<Place> release(size_t part, const std::vector<size_t>& pieces) DTF_REQUIRES(mutex_) {
    std::vector<Place> ready;
    for (const size_t piece : pieces) {
      DTF_CHECK(states_[part].waiting[piece] > 0);
      if (--states_[part].waiting[piece] == 0) ready.push_back({part, piece});
    }
    begin(ready);
    return ready;
  }

  void arrived(size_t part, size_t receive, Rendezvous::Arrival arrival) {
    if (const Error* const cause = std::get_if<Error>(&arrival)) return fail(*cause, false);
    std::vector<Place> ready;
    std::optional<Error> misfit;
    {
      MutexLock lock(mutex_);
      if (over_ || cause_) return;
      const PartProgram::Receive& expected = parts_[part].program->receives()[receive];
      Parcel& parcel = std::get<Parcel>(arrival);
      if (parcel.bytes.size() != expected.bytes) {
        misfit = Error(ErrorCode::kBadData, "The edge " + expected.key + " carries " +
                                                std::to_string(expected.bytes) + " bytes, but " +
                                                std::to_string(parcel.bytes.size()) + " arrived.");
      } else {
        if (parts_[part].trace != nullptr) traceArrival(parts_[part], expected, traced_from_);
        parts_[part].inputs.arrivals[receive] = std::move(parcel);
        ready = release(part, states_[part].after_receive[receive]);
      }
    }
    if (misfit) return fail(*misfit, true);
    post(ready);
  }

  // Runs in the device's thread.
  void run(Place place) {
    StepPart& part = parts_[place.part];
    bool waits = false;
    attempt([&] {
      if (part.program->pieces()[place.piece].may_wait) {
        startAct(place);
        waits = true;
      } else {
        leave(part, compute(part, place.piece));
      }
    });
    if (!waits) return ended(place);
    {
      MutexLock lock(mutex_);
      --under_way_;
    }
    endIfQuiet();
  }

  // Runs `next` for a piece, unless the step has failed.
  template <class Next>
  void attempt(const Next& next) {
    {
      MutexLock lock(mutex_);
      if (cause_) return;
    }
    try {
      next();
    } catch (const Error& error) {
      fail(error, true);
    } catch (const std::exception& error) {
      fail(Error(ErrorCode::kInternal, error.what()), true);
    }
  }

  void ended(Place place) {
    std::vector<Place> ready;
    {
      MutexLock lock(mutex_);
      if (!cause_) {
        kernels_ += parts_[place.part].program->pieces()[place.piece].kernels;
        ready = release(place.part, states_[place.part].after_piece[place.piece]);
      }
      DTF_CHECK(left_ > 0 && under_way_ > 0);
      --left_;
    }
    post(ready);
    {
      MutexLock lock(mutex_);
      --under_way_;
    }
    endIfQuiet();
  }

  // Starts an act that may wait. The piece continues when it is called back, also after an abort.
  void startAct(Place place) {
    StepPart& part = parts_[place.part];
    const TimePoint begin = part.trace == nullptr ? TimePoint() : trace::now();
    const Awaited::Wait wait = part.program->start(
        place.piece, part.inputs,
        [self = shared_from_this(), place, begin](FifoQueue::Outcome outcome) {
          self->acted(place, begin, std::make_shared<FifoQueue::Outcome>(std::move(outcome)));
        });
    if (wait == 0) return;
    bool is_over = false;
    {
      MutexLock lock(mutex_);
      is_over = cause_.has_value();
      if (!is_over) waits_.emplace(place, wait);
    }
    if (is_over) awaitedAt(place).cancel(wait);
  }

  // Runs in any thread.
  void acted(Place place, TimePoint begin, std::shared_ptr<FifoQueue::Outcome> outcome) {
    {
      MutexLock lock(mutex_);
      if (over_ || cause_) return;
      ++under_way_;
    }
    parts_[place.part].queue->post(
        [self = shared_from_this(), place, begin, outcome = std::move(outcome)] {
          self->finishAct(place, begin, *outcome);
        });
  }

  // Runs in the device's thread.
  void finishAct(Place place, TimePoint begin, FifoQueue::Outcome& outcome) {
    StepPart& part = parts_[place.part];
    {
      MutexLock lock(mutex_);
      waits_.erase(place);
    }
    attempt([&] {
      if (part.trace != nullptr) traceAct(part, place.piece, begin);
      if (const Error* const cause = std::get_if<Error>(&outcome)) throw Error(*cause);
      part.program->finish(place.piece, part.inputs,
                           std::move(std::get<FifoQueue::Elements>(outcome)));
    });
    ended(place);
  }

  Awaited& awaitedAt(Place place) const {
    return parts_[place.part].program->awaitedOf(place.piece, parts_[place.part].inputs);
  }

  std::vector<PartProgram::Send> compute(StepPart& part, size_t piece) {
    const runtime::StopScope scope(stop_);
    const trace::PieceScope traced(part.trace.get(), piece);
    return part.program->run(piece, part.inputs);
  }

  // Sends tensors to other tasks: all tensors for one task in one message.
  void leave(const StepPart& part, std::vector<PartProgram::Send> sends) {
    std::map<TaskId, std::vector<PartProgram::Send>> elsewhere;
    for (PartProgram::Send& send : sends) {
      if (const TaskId* const to = destinationOf(send.edge)) {
        elsewhere[*to].push_back(send);
      } else {
        leaveHere(send);
      }
    }
    for (auto& [to, tensors] : elsewhere) {
      {
        MutexLock lock(mutex_);
        ++leaving_;
      }
      Departures::Done done = [self = shared_from_this()](std::optional<Error> failed) {
        self->hasLeft(std::move(failed));
      };
      if (part.trace != nullptr) done = tracedDeparture(part, to, tensors, std::move(done));
      ports_.departures->send(step_.number, to, std::move(tensors), std::move(done));
    }
  }

  const TaskId* destinationOf(uint32_t edge) const {
    if (ports_.routes == nullptr) return nullptr;
    const auto remote = ports_.routes->destinations.find(edge);
    return remote == ports_.routes->destinations.end() ? nullptr : &remote->second;
  }

  void hasLeft(std::optional<Error> failed) {
    if (failed) fail(*failed, true);
    {
      MutexLock lock(mutex_);
      DTF_CHECK(leaving_ > 0);
      --leaving_;
    }
    endIfQuiet();
  }

  void leaveHere(const PartProgram::Send& send) {
    switch (
        ports_.rendezvous->send({step_.number, step_.process, send.edge}, {.bytes = send.bytes})) {
      case Rendezvous::Sent::kTaken:
      case Rendezvous::Sent::kOver:  // the abort reports it
        return;
      case Rendezvous::Sent::kDuplicate:
        throw Error(ErrorCode::kInternal,
                    "A tensor was sent twice in one step: edge " + std::to_string(send.edge) + ".");
      case Rendezvous::Sent::kFull:
        throw Error(ErrorCode::kUnavailable,
                    "Too many tensors of this process wait for their readers; run fewer steps at "
                    "the same time.");
    }
  }

  // Fails the step; only the first cause counts. `tell`: the other parts must be notified.
  void fail(const Error& cause, bool tell) {
    Waits waits;
    {
      MutexLock lock(mutex_);
      if (over_ || cause_) return;
      waits.swap(waits_);
      cause_ = cause;
      stop_ = true;
      ++under_way_;  // this call: rendezvous and queues may be gone once the step has ended
    }
    const Error told = cause.code() == ErrorCode::kDeadline ? withWaits(cause, waits) : cause;
    for (const auto& [place, wait] : waits) awaitedAt(place).cancel(wait);
    if (tell) ports_.rendezvous->abort(step_.number, told);
    {
      MutexLock lock(mutex_);
      cause_ = told;  // not read by others yet: this call was counted
      --under_way_;
    }
    endIfQuiet();
  }

  // Adds the first few queues to the message of a late step that waits at queues.
  Error withWaits(const Error& cause, const Waits& waits) const {
    constexpr size_t kNamedMax = 3;
    std::string text = cause.message();
    size_t named = 0;
    for (const auto& [place, wait] : waits) {
      if (named++ == kNamedMax) break;
      text += "; " + parts_[place.part].program->awaited(place.piece, parts_[place.part].inputs);
    }
    if (waits.size() > kNamedMax)
      text += "; " + std::to_string(waits.size() - kNamedMax) + " other nodes wait at queues";
    const Error told(cause.code(), text);
    return waits.empty() ? told : with(ErrorTrait::kNamesWaits, told);
  }

  const StepId step_;
  const std::span<StepPart> parts_;
  const StepPorts ports_;
  std::vector<PartState> states_;  // `waiting` guarded by mutex_, the rest constant
  TimePoint traced_from_{};        // start of the receives' waits, if a part is traced
  Mutex mutex_;
  OnStepEnd on_end_ DTF_GUARDED_BY(mutex_);
  size_t left_ DTF_GUARDED_BY(mutex_) = 0;       // pieces that have not ended
  size_t under_way_ DTF_GUARDED_BY(mutex_) = 0;  // users of parts and ports
  size_t leaving_ DTF_GUARDED_BY(mutex_) = 0;    // messages not confirmed yet
  bool over_ DTF_GUARDED_BY(mutex_) = false;     // on_end has been called
  // Waits for a turn at a queue, including some whose turn has come.
  Waits waits_ DTF_GUARDED_BY(mutex_);
  std::optional<Error> cause_ DTF_GUARDED_BY(mutex_);
  uint64_t kernels_ DTF_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> stop_ = false;  // there is a cause: computing pieces end at their next kernel
};

}  // namespace

AbortStep startParts(StepId step, std::span<StepPart> parts, const StepPorts& ports,
                     OnStepEnd on_end) {
  DTF_CHECK(ports.rendezvous != nullptr && on_end != nullptr);
  DTF_CHECK(ports.routes == nullptr || ports.routes->destinations.empty() ||
            ports.departures != nullptr);
  const auto run = std::make_shared<StepRun>(step, parts, ports, std::move(on_end));
  run->start();
  return [run](const Error& cause) { run->abort(cause); };
}

}  // namespace dtf::engine
