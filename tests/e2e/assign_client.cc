// A client for assign_test.cc to kill. It adds the tensor it feeds to a variable, again and again,
// and prints each step that was answered.
// Usage: assign_client TARGET CONTAINER ELEMENTS

#include <algorithm>
#include <cstdio>
#include <string>

#include "common/engine/session.h"
#include "common/wire/session/remote_tasks.h"
#include "tests/e2e/assign_graph.h"

int main(int argc, char** argv) {
  using namespace dtf;
  if (argc != 4) return 2;
  const int64_t elements = std::stoll(argv[3]);
  const graph::Graph graph = testing::makeAddingGraph(argv[2], elements);
  engine::Session session(
      graph, std::make_unique<wire::RemoteTasks>(wire::RemoteTasksOptions{.targets = {argv[1]}}));
  const Tensor ones = testing::filled({elements}, 1);
  for (int step = 1;; ++step) {
    session.run(std::vector<engine::Feed>{{"x", &ones}}, {}, std::vector<std::string>{"add"});
    std::printf("step %d\n", step);
    std::fflush(stdout);
  }
}
