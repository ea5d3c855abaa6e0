#pragma once

// Fake ps on pipes, on the test's clock.

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/net/error_bridge.h"
#include "common/wire/ps/rpc_calls.h"
#include "tests/support/still_loop.h"
#include "tests/unit/wire/fake_ps.h"

namespace dtf::wire::fake {

inline constexpr uint64_t kClusterElements = 16;  // of each ps's shard

class FakeCluster : public ::testing::Test {
 protected:
  explicit FakeCluster(uint32_t ps_tasks = 1) : ps_(ps_tasks) {
    loop_.on_connect = [this](uint16_t port) -> kj::Promise<kj::Own<net::MessageStream>> {
      if (away_) return kj::NEVER_DONE;
      return serve(port);
    };
    cluster::JobSpec job;
    job.cluster.worker.resize(1);
    job.cluster.ps.resize(2);
    options_.link = linkOptions(job, {JobKind::kWorker, 0}, Incarnation{1});
    options_.link.share_from_bytes = std::nullopt;
    for (uint32_t i = 0; i < ps_tasks; ++i) {
      options_.ps.push_back({"fake", static_cast<uint16_t>(i + 1)});
      ps_[i].parameters.assign(kClusterElements, static_cast<float>(i));
    }
  }
  ~FakeCluster() noexcept override {}

  // Returns the worker's end of a connection to the ps of that port.
  kj::Own<net::MessageStream> serve(uint16_t port) {
    auto pipe = kj::newTwoWayPipe();
    served_[port].push_back(
        serveFakePs(ps_.at(port - 1), net::wrapStream(kj::mv(pipe.ends[0])), loop_.connecting));
    return net::wrapStream(kj::mv(pipe.ends[1]));
  }

  // Ends the connections of a ps. Unless it is away, it takes new ones.
  void kill(uint32_t ps_task) {
    served_[ps_task + 1].clear();
    loop_.settle();
  }

  // Runs the loop until the promise is done and returns its value. Throws its error as dtf::Error.
  template <class T>
  T get(kj::Promise<T> promise) {
    loop_.settle();
    DTF_CHECK_MSG(promise.poll(loop_.waitScope()), "it waits for something that does not come");
    try {
      return promise.wait(loop_.waitScope());
    } catch (const kj::Exception& exception) {
      throw net::toError(exception);
    }
  }
  // Returns the error that the promise ends with now.
  template <class T>
  Error errorOf(kj::Promise<T> promise) {
    try {
      get(kj::mv(promise));
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "no error";
    return Error(ErrorCode::kInternal, "");
  }

  // One variable on each ps.
  arena::ModelDeclaration model() const {
    const auto ps_tasks = static_cast<uint32_t>(ps_.size());
    std::vector<arena::VariableParts> variables;
    for (uint32_t i = 0; i < ps_tasks; ++i)
      variables.push_back(
          {"v" + std::to_string(i), Shape{kClusterElements}, {{i, 0, kClusterElements}}});
    arena::ModelDeclaration model;
    model.layout = arena::makeLayout(variables, ps_tasks);
    model.steps = 10;
    return model;
  }

  dtf::testing::StillLoop loop_;
  RpcClientOptions options_;
  std::deque<FakePs> ps_;
  bool away_ = false;  // no connection to any ps succeeds
  std::map<uint16_t, std::vector<kj::Own<net::RpcConnection>>> served_;  // by port
};

}  // namespace dtf::wire::fake
