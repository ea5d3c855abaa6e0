#include "common/engine/executor.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/mutex.h"

namespace dtf::engine {
namespace {

// One step under way. Shared by the caller and the callbacks of its receives, of which the last may
// come, to no effect, when the caller has gone on: an abort from outside is another thread's.
//
// Borrows: parts and rendezvous, until await() returns.
// Threads: thread-safe.
class StepRun : public std::enable_shared_from_this<StepRun> {
 public:
  StepRun(StepId step, std::span<StepPart> parts, Rendezvous& rendezvous)
      : step_(step), parts_(parts), rendezvous_(rendezvous), states_(parts.size()) {
    for (size_t p = 0; p < parts.size(); ++p) prepare(p);
  }

  void start() {
    std::vector<Place> ready;
    {
      MutexLock lock(mutex_);
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
        rendezvous_.receive({step_.number, step_.process, receives[i].edge},
                            [self = shared_from_this(), p, i](Rendezvous::Arrival arrival) {
                              self->arrived(p, i, std::move(arrival));
                            });
      }
    }
  }

  // The number of kernels run. Throws the root cause.
  uint64_t await() {
    MutexLock lock(mutex_);
    while (!isQuiet()) changed_.wait(mutex_);
    over_ = true;
    if (cause_) throw Error(*cause_);
    return kernels_;
  }

 private:
  struct Place {
    size_t part = 0, piece = 0;
  };
  struct PartState {
    std::vector<size_t> waiting;                   // by piece: what it still waits for
    std::vector<std::vector<size_t>> after_piece;  // by piece: those that wait for it
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

  bool isQuiet() const DTF_REQUIRES(mutex_) {
    return left_ == 0 || (cause_.has_value() && under_way_ == 0);
  }

  // They are counted before anybody can see the step as quiet.
  void begin(const std::vector<Place>& ready) DTF_REQUIRES(mutex_) { under_way_ += ready.size(); }

  void post(const std::vector<Place>& ready) {
    for (const Place& place : ready) {
      parts_[place.part].queue->post([self = shared_from_this(), place] { self->run(place); });
    }
  }

  // One thing less that these wait for. Gives those that wait for nothing more.
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
        parts_[part].inputs.arrivals[receive] = std::move(parcel);
        ready = release(part, states_[part].after_receive[receive]);
      }
    }
    if (misfit) return fail(*misfit, true);
    post(ready);
  }

  // In the device's thread.
  void run(Place place) {
    StepPart& part = parts_[place.part];
    bool given_up = false;
    {
      MutexLock lock(mutex_);
      given_up = cause_.has_value();
    }
    if (!given_up) {
      try {
        for (const PartProgram::Send& send : part.program->run(place.piece, part.inputs)) {
          leave(send);
        }
      } catch (const Error& error) {
        fail(error, true);
      } catch (const std::exception& error) {
        fail(Error(ErrorCode::kInternal, error.what()), true);
      }
    }
    std::vector<Place> ready;
    {
      MutexLock lock(mutex_);
      if (!cause_) {
        kernels_ += part.program->pieces()[place.piece].kernels;
        ready = release(place.part, states_[place.part].after_piece[place.piece]);
      }
      DTF_CHECK(left_ > 0 && under_way_ > 0);
      --left_;
      --under_way_;
      // Under the lock: the caller may go on, and this be gone, as soon as it is released.
      if (isQuiet()) changed_.notifyAll();
    }
    post(ready);
  }

  void leave(const PartProgram::Send& send) {
    switch (rendezvous_.send({step_.number, step_.process, send.edge}, {.bytes = send.bytes})) {
      case Rendezvous::Sent::kTaken:
      case Rendezvous::Sent::kOver:  // the abort says why
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

  // The first cause counts. `tell`: the other parts don't know yet.
  void fail(const Error& cause, bool tell) {
    {
      MutexLock lock(mutex_);
      if (over_ || cause_) return;
      cause_ = cause;
      if (isQuiet()) changed_.notifyAll();
    }
    if (tell) rendezvous_.abort(step_.number, cause);
  }

  const StepId step_;
  const std::span<StepPart> parts_;
  Rendezvous& rendezvous_;
  std::vector<PartState> states_;  // `waiting` guarded by mutex_, the rest constant
  Mutex mutex_;
  CondVar changed_;
  size_t left_ DTF_GUARDED_BY(mutex_) = 0;       // pieces that have not ended
  size_t under_way_ DTF_GUARDED_BY(mutex_) = 0;  // posted and not ended
  bool over_ DTF_GUARDED_BY(mutex_) = false;     // await() has returned
  std::optional<Error> cause_ DTF_GUARDED_BY(mutex_);
  uint64_t kernels_ DTF_GUARDED_BY(mutex_) = 0;
};

bool isOneProgram(std::span<const StepPart> parts) {
  return parts.size() == 1 && parts[0].program->pieces().size() == 1 &&
         parts[0].program->receives().empty();
}

}  // namespace

uint64_t runParts(StepId step, std::span<StepPart> parts, Rendezvous& rendezvous) {
  if (isOneProgram(parts)) {
    StepPart& part = parts[0];
    part.queue->runHere([&part] {
      const auto sends = part.program->run(0, part.inputs);
      DTF_CHECK(sends.empty());  // nobody is there to receive them
    });
    return part.program->pieces()[0].kernels;
  }
  const auto run = std::make_shared<StepRun>(step, parts, rendezvous);
  // Whatever becomes of it, nothing of the step stays behind.
  struct End {
    Rendezvous& rendezvous;
    uint64_t step;
    ~End() { rendezvous.end(step); }
  } const end{rendezvous, step.number};
  run->start();
  return run->await();
}

}  // namespace dtf::engine
