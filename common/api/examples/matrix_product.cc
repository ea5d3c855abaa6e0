// A product of matrices on two workers: each computes half of the columns, and the result equals
// the product computed here.
// Usage: matrix_product WORKER WORKER         dtf://host:port of two `workerd --serve`

#include <dtf/session.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace {

constexpr int64_t kSize = 512;

// a x b, in two halves; `devices` of them.
dtf::Output product(dtf::Graph& graph, const std::vector<std::string>& devices) {
  const dtf::Output a = graph.placeholder("a", DTF_FLOAT32, {kSize, kSize});
  const dtf::Output b = graph.placeholder("b", DTF_FLOAT32, {kSize, kSize});
  const int64_t columns = kSize / static_cast<int64_t>(devices.size());
  std::vector<dtf::Output> parts;
  for (const std::string& device : devices) {
    const auto here = graph.device(device);
    const int64_t begin = columns * static_cast<int64_t>(parts.size());
    const dtf::Output half = graph.op(
        "Slice", {b}, {{"begin", dtf::Dims{0, begin}}, {"size", dtf::Dims{kSize, columns}}});
    parts.push_back(graph.matMul(a, half));
  }
  return graph.op("Concat", parts, {{"axis", int64_t{1}}}, "product");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) throw dtf::Error(DTF_USAGE, "usage: matrix_product dtf://WORKER dtf://WORKER");
  dtf::Tensor a(DTF_FLOAT32, {kSize, kSize}), b(DTF_FLOAT32, {kSize, kSize});
  for (size_t i = 0; i < a.as<float>().size(); ++i) {
    a.as<float>()[i] = static_cast<float>(i % 7) - 3;
    b.as<float>()[i] = static_cast<float>(i % 11) - 5;
  }
  const std::vector<dtf::Feed> feeds = {{"a", a}, {"b", b}};

  dtf::Graph split, alone;
  product(split, {"/job:worker/task:0", "/job:worker/task:1"});
  product(alone, {""});
  dtf::Session both(split, {argv[1], argv[2]});
  dtf::Session here(alone);
  const auto theirs = both.run(feeds, {"product"}), ours = here.run(feeds, {"product"});
  float apart = 0;
  for (size_t i = 0; i < ours[0].as<float>().size(); ++i)
    apart = std::max(apart, std::abs(ours[0].as<float>()[i] - theirs[0].as<float>()[i]));
  std::printf("%lld x %lld on two workers: at most %g from one process\n",
              static_cast<long long>(kSize), static_cast<long long>(kSize), apart);
  return apart < 1e-3F ? 0 : 1;
} catch (const dtf::Error& error) {
  std::fprintf(stderr, "matrix_product: error: %s\n", error.what());
  return error.code();
}
