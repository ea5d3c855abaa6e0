// A loop that ends depending on its values, and a derivative through it: the years until a sum with
// interest has doubled, and how the final sum depends on the rate. All years are one call of the
// worker.
// Usage: doubling WORKER [KEYS]             dtf://host:port of a `workerd --serve`; its folder of
//                                           keys, if the worker has keys

#include <dtf/session.h>

#include <cstdio>

int main(int argc, char** argv) try {
  if (argc != 2 && argc != 3) throw dtf::Error(DTF_USAGE, "usage: doubling dtf://WORKER [KEYS]");

  // One year: from the sum and the rate to the sum.
  dtf::Graph year;
  const dtf::Output sum = year.placeholder("sum", DTF_FLOAT32, {});
  const dtf::Output rate = year.placeholder("rate", DTF_FLOAT32, {});
  const dtf::Output grown = year.add(sum, year.mul(sum, rate));

  // Whether another year follows.
  dtf::Graph test;
  const dtf::Output now = test.placeholder("sum", DTF_FLOAT32, {});
  const dtf::Output same_rate = test.placeholder("rate", DTF_FLOAT32, {});
  const dtf::Output not_yet = test.less(now, test.constant({}, 2));

  dtf::Graph graph;
  const auto on_worker = graph.device("/job:worker/task:0");
  const dtf::Output given = graph.placeholder("given", DTF_FLOAT32, {});
  const dtf::LoopResults years = graph.whileLoop({.carried = {graph.constant({}, 1)},
                                                  .sequences = {},
                                                  .captured = {given},
                                                  .body = {&year, {sum, rate}, {grown}},
                                                  .cond = {&test, {now, same_rate}, {not_yet}},
                                                  .max_iterations = 1000,
                                                  .keep_carried = true});
  const dtf::Output end = years.carried[0];
  const dtf::Output slope = graph.gradients(end, {given})[0];

  dtf_session_options options = dtf::Session::defaults();
  if (argc == 3) options.keys = argv[2];
  dtf::Session session(graph, {argv[1]}, options);
  for (const float percent : {1.0F, 5.0F, 12.0F}) {
    dtf::Tensor fed(DTF_FLOAT32, {});
    fed.as<float>()[0] = percent / 100;
    const auto made = session.run(
        {{"given", fed}}, {graph.name(years.iterations), graph.name(end), graph.name(slope)});
    std::printf("%.0f %%: %lld years, then %.4f; d/d(rate) %.2f\n", static_cast<double>(percent),
                static_cast<long long>(made[0].as<int64_t>()[0]),
                static_cast<double>(made[1].as<float>()[0]),
                static_cast<double>(made[2].as<float>()[0]));
  }
} catch (const dtf::Error& error) {
  std::fprintf(stderr, "doubling: error: %s\n", error.what());
  return error.code();
}
