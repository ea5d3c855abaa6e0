#include "tests/fuzz/hostile_ps.h"

#include <memory>
#include <optional>
#include <vector>

#include "common/base/checksum.h"
#include "common/net/error_bridge.h"
#include "common/net/memory_channel.h"
#include "common/net/timer.h"
#include "tests/fuzz/reached.h"
#include "tests/fuzz/rpc_messages.h"

namespace dtf::fuzz {

namespace {

constexpr ErrorCode kCodes[] = {
    ErrorCode::kTrainingFailed, ErrorCode::kUsage,     ErrorCode::kBadData,
    ErrorCode::kUnavailable,    ErrorCode::kInternal,  ErrorCode::kCannotWrite,
    ErrorCode::kPermission,     ErrorCode::kBadConfig, ErrorCode::kDeadline};

// An error in place of an answer to a worker.
kj::Exception failure(Arguments& arguments) {
  const uint8_t kind = arguments.byte();
  const kj::StringPtr text = arguments.text();
  if (kind % 16 < std::size(kCodes)) return net::toKj(Error(kCodes[kind % 16], text.cStr()));
  return kj::Exception(static_cast<kj::Exception::Type>(kind % 4), __FILE__, __LINE__,
                       kj::heapString(text));
}

void fillPosition(Arguments& arguments, capnp::List<uint64_t>::Builder position) {
  for (uint32_t i = 0; i < position.size(); ++i) position.set(i, arguments.count());
}

// The common members of every hostile capability.
struct Told {
  Answers& answers;
  const wire::ConnectionRef connection;

  template <class Context, class Fill>
  kj::Promise<void> answer(Asked asked, Context context, Fill fill) const {
    return answers.next(
        asked, [context, fill](Arguments& arguments) mutable { fill(arguments, context); },
        connection);
  }
  template <class Context>
  kj::Promise<void> answer(Asked asked, Context) const {
    return answers.next(
        asked, [](Arguments&) {}, connection);
  }
};

class HostileCheckpoint final : public schema::PsCheckpoint::Server {
 public:
  explicit HostileCheckpoint(Told told) : told_(std::move(told)) {}

 private:
  kj::Promise<void> position(PositionContext context) override {
    return told_.answer(Asked::kCheckpoint, context, [](Arguments& arguments, auto& to) {
      fillPosition(arguments, to.getResults().initPosition(arguments.byte()));
    });
  }
  kj::Promise<void> cut(CutContext context) override {
    return told_.answer(Asked::kCheckpoint, context, [](Arguments& arguments, auto& to) {
      to.getResults().setCaptured(arguments.byte() % 2 == 0);
      to.getResults().setVersion(arguments.count());
    });
  }
  kj::Promise<void> releaseHold(ReleaseHoldContext context) override {
    return told_.answer(Asked::kCheckpoint, context);
  }
  kj::Promise<void> save(SaveContext context) override {
    return told_.answer(Asked::kCheckpoint, context, [](Arguments& arguments, auto& to) {
      auto saved = to.getResults().initSaved();
      saved.setFile(arguments.text());
      saved.setBytes(arguments.count());
      for (auto part : saved.initParts(arguments.byte())) {
        part.setName(arguments.text());
        part.setBegin(arguments.count());
        part.setCount(arguments.count());
        part.setOffset(arguments.count());
      }
      saved.setApplies(arguments.count());
      saved.setBeta1Power(arguments.number<double>());
    });
  }
  kj::Promise<void> restore(RestoreContext context) override {
    return told_.answer(Asked::kCheckpoint, context);
  }
  kj::Promise<void> commitRestore(CommitRestoreContext context) override {
    return told_.answer(Asked::kCheckpoint, context);
  }
  kj::Promise<void> stage(StageContext context) override {
    return told_.answer(Asked::kCheckpoint, context, [](Arguments& arguments, auto& to) {
      auto saved = to.getResults().initSaved();
      saved.setFile(arguments.text());
      saved.setBytes(arguments.count());
      saved.setChecksum(arguments.count());
    });
  }
  kj::Promise<void> fetch(FetchContext context) override {
    return told_.answer(Asked::kCheckpoint, context, [](Arguments& arguments, auto& to) {
      const std::string_view bytes = arguments.take(arguments.byte());
      to.getResults().setData(
          kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()));
      to.getResults().setChecksum(arguments.byte() % 2 == 0 ? checksumOf(bytes) : 0);
    });
  }
  kj::Promise<void> bring(BringContext context) override {
    return told_.answer(Asked::kCheckpoint, context);
  }

  const Told told_;
};

class HostileControl final : public schema::PsControl::Server {
 public:
  explicit HostileControl(Told told) : told_(std::move(told)) {}

 private:
  kj::Promise<void> declare(DeclareContext context) override {
    return told_.answer(Asked::kControl, context);
  }
  kj::Promise<void> waitInitialised(WaitInitialisedContext context) override {
    return told_.answer(Asked::kControl, context);
  }
  kj::Promise<void> heartbeat(HeartbeatContext context) override {
    return told_.answer(Asked::kHeartbeat, context, [](Arguments& arguments, auto& to) {
      to.getResults().setStopWanted(arguments.byte() % 2 == 1);
    });
  }
  kj::Promise<void> barrier(BarrierContext context) override {
    return told_.answer(Asked::kControl, context);
  }
  kj::Promise<void> finish(FinishContext context) override {
    return told_.answer(Asked::kControl, context);
  }
  kj::Promise<void> supervise(SuperviseContext context) override {
    return told_.answer(Asked::kCheckpoint, context,
                        [told = told_](Arguments& arguments, auto& to) {
                          const uint8_t kind = arguments.byte();
                          auto held = to.getResults().initHeld();
                          held.setEpoch(static_cast<uint64_t>(kind % 4) << 40);
                          held.setUpdates(arguments.byte());
                          held.setRestored(kind % 8 > 3);
                          if (kind < 240)
                            to.getResults().setCheckpoint(kj::heap<HostileCheckpoint>(told));
                        });
  }
  kj::Promise<void> requestStop(RequestStopContext context) override {
    return told_.answer(Asked::kControl, context);
  }

  const Told told_;
};

// The memory that a ps shares with the worker, or claims to share.
struct LentArenas {
  std::optional<net::MemoryDoor> door;
  std::optional<net::MemoryChannel> channel;
  std::vector<std::unique_ptr<SharedMemory>> given;  // the newest few

  // Where memory is shared: mostly names an arena as a ps would, in place of the parameters.
  // Elsewhere: may call the parameters a change.
  template <class Results>
  void name(Arguments& arguments, Results results) {
    const uint8_t kind = arguments.byte();
    if (!channel || kind == 1) {
      results.setBase(kind / 4);
      results.setChanged(kind % 4 == 3);
      return;
    }
    if (given.size() == 4) given.erase(given.begin());
    const size_t bytes = kind < 224 ? kElements * sizeof(float) : 1 + arguments.number<uint16_t>();
    given.push_back(std::make_unique<SharedMemory>(bytes));
    if (kind % 16 != 15) channel->give(*given.back());
    results.setKey(kind % 16 == 14 ? arguments.number<uint64_t>() : given.back()->key());
    auto gone = results.initGone(kind % 4);
    for (uint32_t i = 0; i < gone.size(); ++i)
      gone.set(i, kind < 128 ? given.front()->key() : arguments.number<uint64_t>());
    ++reached()["arena named"];
  }
};

class HostileData final : public schema::PsData::Server {
 public:
  explicit HostileData(Told told) : told_(std::move(told)) {}

 private:
  kj::Promise<void> initialise(InitialiseContext context) override {
    return told_.answer(Asked::kData, context);
  }
  kj::Promise<void> pull(PullContext context) override {
    return told_.answer(Asked::kData, context, [lent = lent_](Arguments& arguments, auto& to) {
      fillParameters(arguments, to.getResults());
      lent->name(arguments, to.getResults());
    });
  }
  kj::Promise<void> exchange(ExchangeContext context) override {
    return told_.answer(Asked::kData, context, [lent = lent_](Arguments& arguments, auto& to) {
      fillParameters(arguments, to.getResults());
      lent->name(arguments, to.getResults());
    });
  }
  kj::Promise<void> openDoor(OpenDoorContext context) override {
    return told_.answer(Asked::kData, context, [lent = lent_](Arguments& arguments, auto& to) {
      const uint8_t kind = arguments.byte();
      const net::MemoryDoor& door = lent->door.emplace();
      auto results = to.getResults();
      if (kind < 224)
        results.setAddress(door.address());
      else
        results.setAddress(arguments.text());
      results.setSecret0(kind % 16 == 15 ? arguments.number<uint64_t>() : door.secret()[0]);
      results.setSecret1(door.secret()[1]);
    });
  }
  kj::Promise<void> shareMemory(ShareMemoryContext context) override {
    return told_.answer(Asked::kData, context, [lent = lent_](Arguments&, auto&) {
      if (lent->door) lent->channel = lent->door->take();
    });
  }
  kj::Promise<void> averages(AveragesContext context) override {
    return told_.answer(Asked::kData, context, [](Arguments& arguments, auto& to) {
      fillParameters(arguments, to.getResults());
    });
  }

  const Told told_;
  const std::shared_ptr<LentArenas> lent_ = std::make_shared<LentArenas>();
};

class HostileGate final : public schema::PsGate::Server {
 public:
  explicit HostileGate(Told told) : told_(std::move(told)) {}

 private:
  kj::Promise<void> hello(HelloContext context) override {
    told_.connection->greeted = true;
    return told_.answer(Asked::kControl, context, [told = told_](Arguments& arguments, auto& to) {
      if (arguments.byte() < 240) to.getResults().setControl(kj::heap<HostileControl>(told));
    });
  }

  const Told told_;
};

class HostileDataGate final : public schema::PsDataGate::Server {
 public:
  explicit HostileDataGate(Told told) : told_(std::move(told)) {}

 private:
  kj::Promise<void> hello(HelloContext context) override {
    told_.connection->greeted = true;
    return told_.answer(Asked::kData, context, [told = told_](Arguments& arguments, auto& to) {
      if (arguments.byte() < 240) to.getResults().setData(kj::heap<HostileData>(told));
    });
  }

  const Told told_;
};

}  // namespace

kj::Promise<void> Answers::next(Asked asked, std::function<void(Arguments&)> answer,
                                const wire::ConnectionRef& connection) {
  auto& queue = queues_[index(asked)];
  if (queue.empty()) {
    Arguments none{{}};
    answer(none);
    return kj::READY_NOW;
  }
  const auto bytes = std::make_shared<std::string>(std::move(queue.front()));
  queue.pop_front();
  Arguments arguments(*bytes);
  const uint8_t how = arguments.byte();
  switch (how % 8) {
    case 4:
      return failure(arguments);
    case 5:
      return waiting_.wrap(kj::Promise<void>(kj::NEVER_DONE));
    case 6: {  // late
      const Duration delay = std::chrono::milliseconds(50) * arguments.byte();
      return waiting_.wrap(
          time_.timer().afterDelay(net::toKj(delay)).then([answer, arguments, bytes]() mutable {
            answer(arguments);
          }));
    }
    case 7:  // the peer goes away in the middle of the call
      if (connection->connection != nullptr)
        return waiting_.wrap(connection->connection->stream().end().then(
            []() -> kj::Promise<void> { return kj::NEVER_DONE; }));
      return waiting_.wrap(kj::Promise<void>(kj::NEVER_DONE));
    default:
      answer(arguments);
      return kj::READY_NOW;
  }
}

capnp::Capability::Client hostileGate(Answers& answers, wire::ConnectionRef connection) {
  return schema::PsGate::Client(kj::heap<HostileGate>(Told{answers, std::move(connection)}));
}

capnp::Capability::Client hostileDataGate(Answers& answers, wire::ConnectionRef connection) {
  return schema::PsDataGate::Client(
      kj::heap<HostileDataGate>(Told{answers, std::move(connection)}));
}

}  // namespace dtf::fuzz
