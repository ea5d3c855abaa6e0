#pragma once

// Codecs turn the values of one shard into the bytes that are sent, and back. A worker and the host
// of the shard make the same codecs from the job's declaration (shard_codecs.h).
//
// Encoded values have the order of the arena. Their size depends only on the shard and on the
// number of rows, so that a receiver checks it before it reads anything. The same values give the
// same bytes with every instruction set, and however they are cut into parts.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "common/arena/parameter_layout.h"
#include "common/cluster/spec.h"

namespace dtf::arena {

// A range of a shard's arena or of a gradient, in elements.
struct ElementRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool operator==(const ElementRange&) const = default;
};

// `replication.transfer` names the codec of a job's parameters and gradients.
using CodecKind = cluster::ReplicationSpec::TransferDtype;

// A codec with its settings.
struct CodecSpec {
  CodecSpec(CodecKind its_kind = CodecKind::kFloat32, double its_top_k = 0)  // a kind is a codec
      : kind(its_kind), top_k(its_top_k) {}
  CodecKind kind;
  double top_k;  // kTopK: the share of a gradient's elements that is sent; above 0, up to 1
  bool operator==(const CodecSpec&) const = default;

  // Whether the codec sends gradients with error feedback, and parameters as changes.
  bool isLossy() const { return kind == CodecKind::kInt8 || kind == CodecKind::kTopK; }
};
// Returns the codec of a job.
CodecSpec codecOf(const cluster::ReplicationSpec& replication);

// Elements of the largest block of a codec. Blocks are counted from the first element of a
// variable. A variable that is cut at multiples of this number has the same blocks as a whole one.
inline constexpr uint64_t kCodecBlock = 1024;

// A lossy codec sends variables of fewer elements as they are: biases and scales are few bytes, and
// an error in one of them moves a whole channel.
inline constexpr int64_t kLossyFromElements = 1024;

// The variables of a shard, as a codec sees them: ranges of its arena, ascending, disjoint. Without
// any, the arena is one variable.
struct ShardRanges {
  std::vector<ElementRange> exact{};   // always sent as float32
  std::vector<ElementRange> slices{};  // the others; of one variable each
};

// Returns the ranges of a shard. Slices of variables with a momentum are exact: rounding would
// leave little of statistics that lie far from zero, and in their moving averages errors don't
// cancel. So are small variables, with a lossy codec. Slices of sparse variables are in neither
// list.
ShardRanges rangesOf(const CodecSpec& codec, const ParameterLayout& layout, uint32_t ps_task);

// Values to be encoded. Borrowed.
struct CodecInput {
  const float* values = nullptr;
  std::span<const uint32_t> row_counts{};  // of each sparse slice; empty for an ElementCodec
  // A codec with state adds its residual, element by element, and leaves the next one here.
  float* residual = nullptr;
};

// One form of values, for one shard or its first elements.
// Immutable, thread-safe. Blocks: never. State belongs to the caller of encode().
class Codec {
 public:
  virtual ~Codec() = default;

  // Returns the name of the form in plans, hellos and logs: "float32".
  virtual std::string_view name() const = 0;
  // Whether encoded bytes are the bytes of the values: a sender refers to the values, and a
  // receiver uses them where they are, instead of encode() and decode().
  virtual bool isIdentity() const { return false; }
  // Whether encode() needs a residual: decode(encode(v)) + residual' = v + residual.
  bool hasState() const { return stateElements() > 0; }
  // Returns the number of elements of that residual.
  virtual uint64_t stateElements() const { return 0; }

  // Returns the number of values with so many rows of each sparse slice.
  virtual uint64_t elements(std::span<const uint32_t> row_counts = {}) const = 0;
  // Returns the size of such values when they are encoded: a multiple of 8.
  virtual uint64_t bytes(std::span<const uint32_t> row_counts = {}) const = 0;

  // Writes the values of `part` to their places in `to`, which has bytes() and is aligned to 4. No
  // part ends inside rows. Returns how many of these bytes are final once all values before
  // part.end have been encoded.
  virtual uint64_t encode(const CodecInput& from, ElementRange part, std::byte* to) const = 0;
  // Reads all values from bytes that were received, aligned to 4, into elements() values. Ids of
  // rows are as they came. Errors: kBadData for another size.
  virtual void decode(std::span<const std::byte> from, std::span<const uint32_t> row_counts,
                      float* to) const = 0;

 protected:
  // Throws kBadData unless `from` has `bytes`.
  static void requireSize(std::span<const std::byte> from, uint64_t bytes);
};

// A codec of elements that are all there, without rows. Rows use its runs for their values.
class ElementCodec : public Codec {
 public:
  // Returns the size of `n` values in a row of their own: a multiple of 4.
  virtual uint64_t runBytes(uint64_t n) const = 0;
  // Writes such a run, without exceptions; returns its size.
  virtual uint64_t encodeRun(const float* values, uint64_t n, std::byte* to) const = 0;
  // Reads such a run; returns its size.
  virtual uint64_t decodeRun(const std::byte* from, uint64_t n, float* to) const = 0;
};

// A codec that can also send values as a change of earlier ones, which both sides have.
class ChangeCodec : public ElementCodec {
 public:
  // Writes the change from `base` to `values` into bytes() at `to`, and `next`, the values that
  // applyChange() makes of it. All have elements().
  virtual void encodeChange(const float* values, const float* base, std::byte* to,
                            float* next) const = 0;
  // Reads a change of `base` from bytes that were received. `next` may be `base`.
  // Errors: kBadData for another size.
  virtual void applyChange(std::span<const std::byte> from, const float* base,
                           float* next) const = 0;
};

// Returns a codec for the first `elements` of an arena. `ranges`: of the whole arena.
std::unique_ptr<const ElementCodec> makeCodec(const CodecSpec& codec, uint64_t elements,
                                              const ShardRanges& ranges);
// Returns the same as a ChangeCodec. Precondition: codec.isLossy().
std::unique_ptr<const ChangeCodec> makeChangeCodec(const CodecSpec& codec, uint64_t elements,
                                                   const ShardRanges& ranges);
// Returns ElementCodec::name() of the kind.
std::string_view codecName(CodecKind kind);
// Returns the names of all codecs of this version, rows too, for the hello.
std::vector<std::string_view> codecNames();

}  // namespace dtf::arena
