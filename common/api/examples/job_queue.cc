// Jobs in a queue on a ps, which outlives the programs: some fill it, some process its jobs, one
// declares that there are no more. Each is a client with its own session, and could be on another
// host.
// Usage: job_queue PS produce FIRST COUNT  enqueues jobs: compute the roots of FIRST, FIRST + 1, ..
//        job_queue PS consume              processes jobs until the queue is closed and empty
//        job_queue PS close                declares that there are no more
// After four weeks of waiting a program ends with 124.
// PS is dtf://host:port of a `psd --serve`.

#include <dtf/session.h>

#include <cstdio>
#include <cstdlib>

namespace {

// At most four elements: a producer faster than the consumers waits.
dtf::Output jobs(dtf::Graph& graph) {
  const auto on_ps = graph.device("/job:ps/task:0");
  return graph.fifoQueue("jobs", {{DTF_FLOAT32, {}}}, 4);
}

// By default a step fails after 10 minutes of waiting, and a consumer may be idle for longer. A
// long deadline is safer than a retry: a step that ends late may already have taken a job.
dtf_session_options patient() {
  dtf_session_options options = dtf::Session::defaults();
  options.step_seconds = 28.0 * 24 * 60 * 60;
  return options;
}

void produce(const std::string& ps, int first, int count) {
  dtf::Graph graph;
  const dtf::Output job = graph.placeholder("job", DTF_FLOAT32, {});
  const std::string put = graph.name(graph.enqueue(jobs(graph), {job}));
  dtf::Session session(graph, {ps}, patient());
  for (int i = first; i < first + count; ++i)
    session.run({{"job", dtf::Tensor::of<float>({}, std::vector{static_cast<float>(i)})}}, {},
                {put});
}

void consume(const std::string& ps) {
  dtf::Graph graph;
  const dtf::Output job = graph.dequeue(jobs(graph))[0];
  const std::string number = graph.name(job), root = graph.name(graph.op("Sqrt", {job}));
  dtf::Session session(graph, {ps}, patient());
  try {
    while (true) {
      const auto done = session.run({}, {number, root});
      std::printf("the root of %g is %.3f\n", done[0].as<float>()[0], done[1].as<float>()[0]);
      std::fflush(stdout);
    }
  } catch (const dtf::Error& error) {
    if (error.code() != DTF_OUT_OF_RANGE) throw;
    std::printf("no more: %s\n", error.what());
  }
}

void close(const std::string& ps) {
  dtf::Graph graph;
  const std::string close = graph.name(graph.closeQueue(jobs(graph)));
  dtf::Session(graph, {ps}).run({}, {}, {close});
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string role = argc > 2 ? argv[2] : "";
  if (role == "produce" && argc == 5) {
    produce(argv[1], std::atoi(argv[3]), std::atoi(argv[4]));
  } else if (role == "consume" && argc == 3) {
    consume(argv[1]);
  } else if (role == "close" && argc == 3) {
    close(argv[1]);
  } else {
    throw dtf::Error(DTF_USAGE, "usage: job_queue dtf://PS produce FIRST COUNT|consume|close");
  }
} catch (const dtf::Error& error) {
  std::fprintf(stderr, "job_queue: error: %s\n", error.what());
  return error.code();
}
