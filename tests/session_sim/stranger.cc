#include "tests/session_sim/stranger.h"

#include <fmt/format.h>

#include <vector>

#include "common/net/error_bridge.h"
#include "common/net/message_stream.h"
#include "common/net/rpc_connection.h"
#include "common/wire/model_codec.h"
#include "tests/session_sim/served_task_sim.h"

namespace dtf::sim {

namespace {

constexpr TaskId kFrom{JobKind::kWorker, 0}, kTo{JobKind::kPs, 0};
constexpr uint64_t kNever = 1'000'000;  // steps from now
constexpr uint64_t kEarlier = 1 << 16;  // of an incarnation: a second

schema::TensorSink::Client sinkOf(net::RpcConnection& connection, const wire::SessionToken& token,
                                  Incarnation incarnation, kj::WaitScope& scope) {
  auto request = connection.bootstrap().castAs<schema::TaskGate>().tensorsRequest();
  wire::encodeToken(token, request.initToken());
  wire::encodeTask(kFrom, request.initCaller());
  wire::encodeTask(kTo, request.initCallee());
  request.setIncarnation(incarnation.value);
  return request.send().wait(scope).getSink();
}

// Returns true if the tensor was taken. A step that uses it gives a wrong result.
bool isTaken(schema::TensorSink::Client& sink, const SessionTrace& trace, uint64_t step,
             kj::WaitScope& scope) {
  const std::vector<kj::byte> wrong(trace.bytes, 0x42);
  auto request = sink.sendTensorsRequest();
  request.setPlan(trace.plan);
  request.setStep(step);
  auto tensor = request.initTensors(1)[0];
  tensor.setEdge(trace.edge);
  tensor.initBytes(1).set(0, capnp::Data::Reader(wrong.data(), wrong.size()));
  try {
    return !request.send().wait(scope).getOver();
  } catch (const kj::Exception&) {
    return false;
  }
}

}  // namespace

Stranger::Stranger(const Environment& environment, const kj::FiberPool& fibers,
                   StrangerTally& tally, Hooks hooks)
    : environment_(environment),
      tally_(tally),
      hooks_(std::move(hooks)),
      process_(std::make_shared<Process>("stranger")),
      loop_(environment, process_) {
  work_ = fibers
              .startFiber([this](kj::WaitScope& scope) {
                for (;;) {
                  const auto pause = static_cast<int64_t>(5 + environment_.random.below(150));
                  loop_.timer().afterDelay(pause * kj::MILLISECONDS).wait(scope);
                  try {
                    visit(scope);
                  } catch (const kj::Exception&) {  // the task, or the session, is gone
                  }
                }
              })
              .eagerlyEvaluate(nullptr);
}

Stranger::~Stranger() noexcept(false) {
  work_ = nullptr;
}

void Stranger::visit(kj::WaitScope& scope) {
  const std::shared_ptr<SessionTrace> trace = hooks_.pick();
  const std::optional<Incarnation> incarnation = hooks_.worker0();
  if (trace == nullptr || trace->plan == 0 || !incarnation) return;
  const uint64_t kind = environment_.random.below(4);
  auto connected =
      environment_.network
          .connect(process_, loop_.timer(), addressOf(kTo).str(), net::ConnectionKind::kBulk)
          .wait(scope);
  KJ_IF_MAYBE (stream, connected) {
    net::RpcConnection connection(net::wrapStream(kj::mv(*stream)), {.peer = "ps/0"});
    wire::SessionToken token = trace->token;
    Incarnation process = *incarnation;
    if (kind == 0) ++token.secret[1];
    if (kind == 1) process.value -= kEarlier;
    schema::TensorSink::Client sink = nullptr;
    try {
      sink = sinkOf(connection, token, process, scope);
    } catch (const kj::Exception&) {
      tally_.uninvited += kind == 0;
      return;
    }
    if (kind == 0) return hooks_.complain("who doesn't know the secret was let in");
    const uint64_t ended = trace->ended_step;
    if (kind == 1) {
      if (isTaken(sink, *trace, ended + 1, scope))
        hooks_.complain("a tensor of a process that is no more was taken");
      ++tally_.dead;
    } else if (kind == 2 && ended > 0) {
      if (isTaken(sink, *trace, ended, scope))
        hooks_.complain(fmt::format("a tensor of step {} was taken when it had ended", ended));
      ++tally_.late;
    } else if (kind == 3) {
      trace->parked = true;
      if (!isTaken(sink, *trace, ended + kNever, scope)) return;
      if (isTaken(sink, *trace, ended + kNever, scope)) hooks_.complain("a tensor was taken twice");
      ++tally_.doubled;
    }
  }
}

}  // namespace dtf::sim
