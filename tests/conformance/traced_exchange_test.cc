// The timeline of a ps shows the same actions of an exchange by message and in shared memory.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "common/base/json.h"
#include "common/base/trace.h"
#include "tests/conformance/rpc_harness.h"

namespace dtf::exchange {
namespace {

constexpr uint64_t kTracedStep = 500;  // by then the ps reads requests in shared memory

// Returns the names of the spans of ps/0 in one step.
std::set<std::string> tracedSpans(bool shares_memory) {
  trace::start({JobKind::kPs, 0}, kTracedStep);
  {
    RpcHarness cluster(1, 1);
    if (shares_memory) cluster.share_from_bytes = 0;
    arena::ModelDeclaration model;
    model.layout = arena::makeLayout({{"v", Shape{}, {{0, 0, 1}}}}, 1);
    model.steps = kTracedStep + 2;
    const auto worker = cluster.connect(0);
    worker->declare(model);
    const std::vector<float> values(16);
    worker->job().initialise(std::vector<std::span<const float>>{values}, replication::kFirstEpoch);
    replication::StepState state = worker->pull();
    while (!state.done) state = pushPull(*worker, state.next_step, state.next_batch, 0);
    worker->job().leave();
  }
  std::set<std::string> names;
  const Json timeline = Json::parse(trace::json());
  for (const Json& event : timeline.at("traceEvents"))
    if (event.at("ph") == "X") names.insert(event.at("name").asString());
  trace::stop();
  return names;
}

TEST(TracedExchanges, HaveTheSameSpansByMessageAndInSharedMemory) {
  const std::set<std::string> wanted = {"take gradient", "apply", "wait for the answer", "reply"};
  for (const bool shares_memory : {false, true}) {
    SCOPED_TRACE(shares_memory ? "in shared memory" : "by message");
    const std::set<std::string> found = tracedSpans(shares_memory);
    for (const std::string& name : wanted) EXPECT_TRUE(found.contains(name)) << name;
  }
}

}  // namespace
}  // namespace dtf::exchange
