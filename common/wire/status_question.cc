#include "common/wire/status_question.h"

#include <utility>

#include "common/base/check.h"
#include "common/net/buffer_pool.h"
#include "common/net/caller_loop.h"
#include "common/net/connector.h"
#include "common/net/message_stream.h"
#include "common/net/rpc_connection.h"
#include "common/net/timer.h"
#include "common/wire/parts.capnp.h"
#include "common/wire/ps.capnp.h"
#include "common/wire/worker.capnp.h"

namespace dtf::wire {

namespace {

// Some hundred bytes, and thirty for each worker of the job.
constexpr net::Limits kStatusLimits{.bytes_max = 1 << 20};

template <class Gate>
kj::Promise<std::string> jsonOf(net::RpcConnection& connection) {
  return connection.bootstrap().castAs<Gate>().statusRequest().send().then(
      [](auto&& answer) { return std::string(answer.getJson().cStr()); });
}

kj::Promise<std::string> askOne(net::Loop& loop, const ListeningTask& asked, Duration patience) {
  return loop
      .connect(asked.address.host, asked.address.port,
               {.peer_name = asked.task.name(),
                .deadline = patience,
                .certified_task = asked.task.name()},
               kStatusLimits, net::BufferPool::create(0))
      .then([task = asked.task](kj::Own<net::MessageStream> stream) {
        auto connection =
            kj::heap<net::RpcConnection>(kj::mv(stream), net::RpcOptions{.peer = task.name()});
        auto answer = task.job == JobKind::kPs ? jsonOf<schema::PsGate>(*connection)
                                               : jsonOf<schema::WorkerGate>(*connection);
        return answer
            .catch_([&connection = *connection](kj::Exception&& e) -> kj::Promise<std::string> {
              if (e.getType() != kj::Exception::Type::UNIMPLEMENTED) return kj::mv(e);
              return jsonOf<schema::TaskGate>(connection);  // it is in no job, and serves
            })
            .attach(kj::mv(connection));
      });
}

}  // namespace

std::vector<std::optional<std::string>> askStatus(const std::vector<ListeningTask>& tasks,
                                                  Duration patience,
                                                  const net::Credentials& credentials) {
  DTF_CHECK(patience > Duration{0});
  std::vector<std::optional<std::string>> answers(tasks.size());
  net::CallerLoop loop(Duration{0}, credentials);
  loop.call([&] {
    auto asked = kj::heapArrayBuilder<kj::Promise<void>>(tasks.size());
    for (size_t i = 0; i < tasks.size(); ++i)
      asked.add(loop.timer()
                    .timeoutAfter(net::toKj(patience), askOne(loop, tasks[i], patience))
                    .then([&answers, i](std::string json) { answers[i] = std::move(json); },
                          [](kj::Exception&&) {}));
    return kj::joinPromises(asked.finish());
  });
  return answers;
}

}  // namespace dtf::wire
