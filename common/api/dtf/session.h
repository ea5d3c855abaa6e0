#pragma once

// Runs any part of a graph, on tasks that serve or in this process.

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "graph.h"

namespace dtf {
inline namespace v1 {

struct Feed {
  std::string tensor;  // "x", "layer/Relu:0": any, not only placeholders
  Tensor value;        // shared, not copied
};

// Threads: thread-safe. Steps with the same feeds, fetches and targets run one at a time, others
// concurrently.
// Blocks: the constructor until all targets have replied; run() until the step has ended.
// Errors: as dtf_session_open() and dtf_session_run() in <dtf/dtf.h>. After DTF_UNAVAILABLE the
// state on the lost task is gone: open another session.
class Session {
 public:
  // `targets`: "dtf://host:port" of one task, which provides the addresses of the others in its
  // cluster, or of each; "dtf://host:port/worker/1" for exactly that task; none: the CPU of this
  // process.
  // `options.keys`: for tasks with keys; read before this returns.
  explicit Session(const Graph& graph, const std::vector<std::string>& targets = {},
                   const dtf_session_options& options = defaults()) {
    const std::vector<const char*> texts = textsOf(targets);
    dtf_session* made = nullptr;
    check(dtf_session_open(graph.get(), texts.data(), texts.size(), &options, &made));
    handle_.reset(made);
  }

  // Returns the values of `fetches`, in order. `targets`: nodes to run as well.
  std::vector<Tensor> run(const std::vector<Feed>& feeds, const std::vector<std::string>& fetches,
                          const std::vector<std::string>& targets = {}) {
    std::vector<dtf_feed> fed;
    for (const Feed& feed : feeds) fed.push_back({feed.tensor.c_str(), feed.value.get()});
    const std::vector<const char*> fetched = textsOf(fetches), also = textsOf(targets);
    std::vector<dtf_tensor*> values(fetches.size());
    check(dtf_session_run(handle_.get(), fed.data(), fed.size(), fetched.data(), fetched.size(),
                          values.data(), also.data(), also.size()));
    std::vector<Tensor> taken;
    taken.reserve(values.size());
    for (dtf_tensor* const value : values) taken.emplace_back(value);
    return taken;
  }

  // Aborts the steps run by other threads; see dtf_session_abort().
  void abort(const std::string& why) { check(dtf_session_abort(handle_.get(), why.c_str())); }
  // Resets a container's variables and queues on all of the session's tasks; "": those without a
  // container.
  void reset(const std::string& container = {}) {
    check(dtf_session_reset(handle_.get(), container.c_str()));
  }
  static dtf_session_options defaults() {
    dtf_session_options options{};
    options.size = sizeof(options);
    return options;
  }
  // Gives every variable of the graph its initial value; see dtf_session_initialize().
  void initialize(uint64_t seed = 0) { check(dtf_session_initialize(handle_.get(), seed)); }
  // Returns the names of the variables without a value.
  std::vector<std::string> uninitialized() {
    size_t bytes = 0;
    std::string text(4096, 0);
    check(dtf_session_uninitialized(handle_.get(), text.data(), text.size(), &bytes));
    if (bytes > text.size()) {
      text.resize(bytes);
      check(dtf_session_uninitialized(handle_.get(), text.data(), text.size(), &bytes));
    }
    std::vector<std::string> names;
    for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) < bytes; begin = end + 1)
      names.push_back(text.substr(begin, end - begin));
    return names;
  }
  // Effective from the next step on.
  void setVariable(const std::string& name, const Tensor& value) {
    check(dtf_session_set_variable(handle_.get(), name.c_str(), value.get()));
  }

  dtf_session* get() { return handle_.get(); }

 private:
  static std::vector<const char*> textsOf(const std::vector<std::string>& texts) {
    std::vector<const char*> pointers;
    for (const std::string& text : texts) pointers.push_back(text.c_str());
    return pointers;
  }

  struct Free {
    void operator()(dtf_session* session) const { dtf_session_free(session); }
  };
  std::unique_ptr<dtf_session, Free> handle_;
};

}  // namespace v1
}  // namespace dtf
