#include "common/train/run_mark.h"

#include <utility>

#include "common/base/check.h"

namespace dtf::train {
namespace {

// FNV-1a (Fowler, Noll and Vo).
int64_t numberOf(const std::filesystem::path& log_dir) {
  std::filesystem::path folder = log_dir.lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : folder.string())
    hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return static_cast<int64_t>(hash >> 2) + 1;
}

}  // namespace

RunMark::RunMark(const std::filesystem::path& log_dir, bool is_chief)
    : number_(numberOf(log_dir)), takes_any_(!is_chief && log_dir.empty()) {}

void RunMark::place(Open open, std::string counter) {
  close();
  open_ = std::move(open);
  counter_ = std::move(counter);
}

engine::Session& RunMark::session(const engine::Session& model) {
  if (session_ != nullptr) return *session_;
  const graph::Node* const counter = model.graph().find(counter_);
  DTF_CHECK(counter != nullptr && open_);
  graph::Graph mark(model.graph().catalog());
  mark.addNode({.name = kReadyVariable,
                .op = "Variable",
                .inputs = {},
                .attributes = {{"shape", Shape()},
                               {"dtype", DType::kInt64},
                               {"initializer", std::string("zeros")}},
                .device = counter->device});
  session_ = open_(mark);
  return *session_;
}

int64_t RunMark::read(const engine::Session& model) {
  engine::Session& mark = session(model);
  if (!mark.uninitialized().empty()) return 0;
  return mark.run({}, std::vector<std::string>{kReadyVariable})[0].as<int64_t>()[0];
}

void RunMark::write(const engine::Session& model, int64_t value) {
  Tensor number(DType::kInt64, Shape());
  number.as<int64_t>()[0] = value;
  session(model).setVariable(kReadyVariable, number);
}

}  // namespace dtf::train
