#include "common/summary/event.h"

#include "common/summary/crc32c.h"
#include "common/summary/proto_writer.h"

namespace dtf::summary {

namespace {

// Field numbers of tensorflow.Event, Summary, Summary.Value and SessionLog.
namespace event {
constexpr uint32_t kWallTime = 1;
constexpr uint32_t kStep = 2;
constexpr uint32_t kFileVersion = 3;
constexpr uint32_t kGraphDef = 4;
constexpr uint32_t kSummary = 5;
constexpr uint32_t kSessionLog = 7;
}  // namespace event
constexpr uint32_t kSummaryValue = 1;
namespace value {
constexpr uint32_t kTag = 1;
constexpr uint32_t kSimpleValue = 2;
constexpr uint32_t kHistogram = 5;
}  // namespace value
namespace session_log {
constexpr uint32_t kStatus = 1;
constexpr uint32_t kCheckpointPath = 2;
}  // namespace session_log

ProtoWriter eventAt(double wall_time, uint64_t step) {
  ProtoWriter proto;
  proto.number(event::kWallTime, wall_time);
  proto.integer(event::kStep, static_cast<int64_t>(step));
  return proto;
}

template <class T>
void appendFixed(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

std::string fileVersionEvent(double wall_time) {
  ProtoWriter proto = eventAt(wall_time, 0);
  proto.bytes(event::kFileVersion, "brain.Event:2");
  return proto.encoded();
}

std::string summaryEvent(double wall_time, uint64_t step, const StepSummary& summary) {
  ProtoWriter values;
  for (const Scalar& scalar : summary.scalars) {
    ProtoWriter one;
    one.bytes(value::kTag, scalar.tag);
    one.single(value::kSimpleValue, static_cast<float>(scalar.value));
    values.message(kSummaryValue, one);
  }
  for (const StepSummary::Values& measured : summary.histograms) {
    Histogram histogram;
    histogram.add(measured.values);
    ProtoWriter one;
    one.bytes(value::kTag, measured.tag);
    one.message(value::kHistogram, histogram.encode());
    values.message(kSummaryValue, one);
  }
  ProtoWriter proto = eventAt(wall_time, step);
  proto.message(event::kSummary, values);
  return proto.encoded();
}

std::string graphEvent(double wall_time, std::string_view graph_def) {
  ProtoWriter proto = eventAt(wall_time, 0);
  proto.bytes(event::kGraphDef, graph_def);
  return proto.encoded();
}

std::string sessionEvent(double wall_time, uint64_t step, SessionStatus status,
                         std::string_view checkpoint_path) {
  ProtoWriter log;
  log.integer(session_log::kStatus, static_cast<int64_t>(status));
  if (!checkpoint_path.empty()) log.bytes(session_log::kCheckpointPath, checkpoint_path);
  ProtoWriter proto = eventAt(wall_time, step);
  proto.message(event::kSessionLog, log);
  return proto.encoded();
}

std::string encodeRecord(std::string_view data) {
  std::string record;
  record.reserve(data.size() + 16);
  appendFixed(record, uint64_t{data.size()});
  appendFixed(record, maskedCrc32c(record));
  record.append(data);
  appendFixed(record, maskedCrc32c(data));
  return record;
}

}  // namespace dtf::summary
