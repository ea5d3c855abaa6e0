// Ops that read labels and indices; the semantics are in common/graph/standard_nn_ops.cc,
// standard_array_ops.cc and standard_state_ops.cc.

#include <cmath>

#include "gpu/element_kernels.h"
#include "gpu/labels.h"

namespace dtf::gpu {
namespace {

// Handles the logits of a row. `backprop` may be the logits themselves: each thread reads its own
// elements before it writes them, and no others.
struct SparseCrossEntropyAt {
  const float* logits;
  Labels labels;
  float* loss;
  float* backprop;
  int64_t columns;
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t row) const {
    const float* const x = logits + row * columns;
    float* const to = backprop + row * columns;
    const int64_t label = labels.at(row);
    float mine = x[0];
    for (int64_t i = team.rank(); i < columns; i += team.size())
      mine = x[i] > mine || x[i] != x[i] ? x[i] : mine;
    const float max = team.max(mine);
    float sum = 0, of_label = 0;
    for (int64_t i = team.rank(); i < columns; i += team.size()) {
      if (i == label) of_label = x[i] - max;
      to[i] = expf(x[i] - max);
      sum += to[i];
    }
    const float total = team.sum(sum), logit = team.sum(of_label);
    if (team.rank() == 0) loss[row] = logf(total) - logit;
    for (int64_t i = team.rank(); i < columns; i += team.size())
      to[i] = to[i] / total - (i == label ? 1.0f : 0.0f);
  }
};

class SparseCrossEntropyKernel final : public Kernel {
 public:
  explicit SparseCrossEntropyKernel(const Operation& o)
      : rows_(o.inputs[0].rows()), columns_(o.inputs[0].lastDim()), labels_(o, 1, columns_) {}
  void prepare(Device& device) override { labels_.prepare(device); }
  void launch(Device& device, const Arguments& a) override {
    forTeams(device, rows_, columns_,
             SparseCrossEntropyAt{a.in(0), labels_.bound(device, a), a.out(0), a.out(1), columns_});
  }
  // Only backprop has the size of the logits.
  bool canOverwrite(int output, int input) const override { return output == 1 && input == 0; }

 private:
  const int64_t rows_, columns_;
  LabelInput labels_;
};

struct OneHotAt {
  Labels labels;
  float* y;
  int64_t depth;
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    y[i] = labels.at(i / depth) == i % depth ? 1.0f : 0.0f;
  }
};

class OneHotKernel final : public Kernel {
 public:
  explicit OneHotKernel(const Operation& o)
      : depth_(o.outputs[0].lastDim()), labels_(o, 0, depth_) {}
  void prepare(Device& device) override { labels_.prepare(device); }
  void launch(Device& device, const Arguments& a) override {
    forElements(device, labels_.count() * depth_,
                OneHotAt{labels_.bound(device, a), a.out(0), depth_});
  }

 private:
  const int64_t depth_;
  LabelInput labels_;
};

// One team for the whole batch; hits are counted as integers.
struct AccuracyAt {
  const float* logits;
  Labels labels;
  float* y;
  int64_t rows, columns;
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t) const {
    float hits = 0;
    for (int64_t row = team.rank(); row < rows; row += team.size()) {
      const float* const x = logits + row * columns;
      int64_t best = 0;
      for (int64_t i = 1; i < columns; ++i) best = x[i] > x[best] ? i : best;
      hits += best == labels.at(row) ? 1.0f : 0.0f;
    }
    const float all = team.sum(hits);
    if (team.rank() == 0) *y = all / static_cast<float>(rows);
  }
};

class AccuracyKernel final : public Kernel {
 public:
  explicit AccuracyKernel(const Operation& o)
      : rows_(o.inputs[0].rows()), columns_(o.inputs[0].lastDim()), labels_(o, 1, columns_) {}
  void prepare(Device& device) override { labels_.prepare(device); }
  void launch(Device& device, const Arguments& a) override {
    forTeams(device, 1, labels_.count(),
             AccuracyAt{a.in(0), labels_.bound(device, a), a.out(0), labels_.count(), columns_});
  }

 private:
  const int64_t rows_, columns_;
  LabelInput labels_;
};

struct GatherAt {
  const float* table;
  Labels rows;
  float* y;
  int64_t width;
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    y[i] = table[rows.at(i / width) * width + i % width];
  }
};

class GatherKernel final : public Kernel {
 public:
  explicit GatherKernel(const Operation& o)
      : width_(o.inputs[0].rowWidth()),
        rows_(o, 1, o.inputs[0].dims[0], LabelInput::Kind::kIndices) {}
  void prepare(Device& device) override { rows_.prepare(device); }
  void launch(Device& device, const Arguments& a) override {
    forElements(device, rows_.count() * width_,
                GatherAt{a.in(0), rows_.bound(device, a), a.out(0), width_});
  }

 private:
  const int64_t width_;
  LabelInput rows_;
};

// Checks every index first, so that nothing changes if one is bad.
struct CheckAt {
  Labels rows;
  DTF_HOST_DEVICE void operator()(int64_t i) const { (void)rows.at(i); }
};

enum class Change : uint8_t { kAdd, kUpdate };

// A thread for each column of the table handles all indices in order: the same bits each time, and
// the last of several updates of a row wins.
struct ScatterAt {
  Labels rows;
  const float* updates;
  float* table;
  int64_t width, count;
  Change change;
  DTF_HOST_DEVICE void operator()(int64_t column) const {
    if (rows.bad->raised != 0) return;
    for (int64_t i = 0; i < count; ++i) {
      float* const to = table + rows.at(i) * width + column;
      const float update = updates[i * width + column];
      *to = change == Change::kAdd ? *to + update : update;
    }
  }
};

struct CopyFloatAt {
  const float* from;
  float* to;
  DTF_HOST_DEVICE void operator()(int64_t i) const { to[i] = from[i]; }
};
struct ClearAt {
  float* to;
  DTF_HOST_DEVICE void operator()(int64_t i) const { to[i] = 0; }
};

template <Change kChange>
class ScatterKernel final : public Kernel {
 public:
  explicit ScatterKernel(const Operation& o)
      : n_(o.outputs[0].elements()),
        width_(o.outputs[0].rowWidth()),
        rows_(o, 1, o.outputs[0].dims[0], LabelInput::Kind::kIndices) {}
  void prepare(Device& device) override { rows_.prepare(device); }
  void launch(Device& device, const Arguments& a) override {
    const Labels rows = rows_.bound(device, a);
    forElements(device, rows_.count(), CheckAt{rows});
    if (a.outputs[0] != a.inputs[0]) forElements(device, n_, CopyFloatAt{a.in(0), a.out(0)});
    forElements(device, width_, ScatterAt{rows, a.in(2), a.out(0), width_, rows_.count(), kChange});
  }
  bool canOverwrite(int, int input) const override { return input == 0; }

 private:
  const int64_t n_, width_;
  LabelInput rows_;
};

class SegmentSumKernel final : public Kernel {
 public:
  explicit SegmentSumKernel(const Operation& o)
      : n_(o.outputs[0].elements()),
        width_(o.outputs[0].rowWidth()),
        rows_(o, 1, o.outputs[0].dims[0], LabelInput::Kind::kIndices) {}
  void prepare(Device& device) override { rows_.prepare(device); }
  void launch(Device& device, const Arguments& a) override {
    forElements(device, n_, ClearAt{a.out(0)});
    forElements(
        device, width_,
        ScatterAt{rows_.bound(device, a), a.in(0), a.out(0), width_, rows_.count(), Change::kAdd});
  }

 private:
  const int64_t n_, width_;
  LabelInput rows_;
};

}  // namespace

void addLabelKernels(KernelTable& table) {
  table["SparseSoftmaxCrossEntropyWithLogits"] = make<SparseCrossEntropyKernel>;
  table["OneHot"] = make<OneHotKernel>;
  table["Accuracy"] = make<AccuracyKernel>;
  table["Gather"] = make<GatherKernel>;
  table["UnsortedSegmentSum"] = make<SegmentSumKernel>;
  table["ScatterAdd"] = make<ScatterKernel<Change::kAdd>>;
  table["ScatterUpdate"] = make<ScatterKernel<Change::kUpdate>>;
}

}  // namespace dtf::gpu
