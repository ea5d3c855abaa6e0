#include "common/summary/event.h"

#include <cmath>
#include <protozero/pbf_writer.hpp>

#include "common/base/check.h"
#include "common/data/png_encoder.h"
#include "common/summary/crc32c.h"

namespace dtf::summary {

using protozero::pbf_writer;

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
constexpr uint32_t kImage = 4;
constexpr uint32_t kHistogram = 5;
constexpr uint32_t kTensor = 8;
constexpr uint32_t kMetadata = 9;
}  // namespace value
namespace tensor {
constexpr uint32_t kDtype = 1;
constexpr uint32_t kShape = 2;
constexpr uint32_t kStringValue = 8;
constexpr int32_t kString = 7;  // of the enum DataType
}  // namespace tensor
namespace metadata {
constexpr uint32_t kPluginData = 1;
constexpr uint32_t kPluginName = 1;  // of PluginData
constexpr uint32_t kDataClass = 4;
constexpr int32_t kTensorClass = 2;  // of the enum DataClass
}  // namespace metadata
namespace image {
constexpr uint32_t kHeight = 1;
constexpr uint32_t kWidth = 2;
constexpr uint32_t kColorspace = 3;  // the number of channels
constexpr uint32_t kEncoded = 4;
}  // namespace image
namespace session_log {
constexpr uint32_t kStatus = 1;
constexpr uint32_t kCheckpointPath = 2;
}  // namespace session_log

// Returns an Event without content.
std::string eventAt(double wall_time, uint64_t step) {
  DTF_CHECK(std::isfinite(wall_time));
  std::string encoded;
  pbf_writer proto(encoded);
  proto.add_double(event::kWallTime, wall_time);
  proto.add_int64(event::kStep, static_cast<int64_t>(step));
  return encoded;
}

std::string encodeScalar(const Scalar& scalar) {
  std::string encoded;
  pbf_writer proto(encoded);
  proto.add_string(value::kTag, scalar.tag);
  proto.add_float(value::kSimpleValue, static_cast<float>(scalar.value));
  return encoded;
}

std::string encodeHistogram(const StepSummary::Values& measured) {
  Histogram histogram;
  histogram.add(measured.values);
  std::string encoded;
  pbf_writer proto(encoded);
  proto.add_string(value::kTag, measured.tag);
  proto.add_message(value::kHistogram, histogram.encode());
  return encoded;
}

std::string encodeImage(const StepSummary::Image& measured) {
  std::string encoded;
  pbf_writer writer(encoded);
  writer.add_int32(image::kHeight, static_cast<int32_t>(measured.height));
  writer.add_int32(image::kWidth, static_cast<int32_t>(measured.width));
  writer.add_int32(image::kColorspace, static_cast<int32_t>(measured.channels));
  writer.add_bytes(image::kEncoded, data::encodePng(measured.height, measured.width,
                                                    measured.channels, measured.pixels));
  std::string tagged;
  pbf_writer proto(tagged);
  proto.add_string(value::kTag, measured.tag);
  proto.add_message(value::kImage, encoded);
  return tagged;
}

// As tf.summary.text() writes it: a scalar of type string, marked for the text page.
std::string encodeText(const Text& text) {
  std::string encoded;
  pbf_writer writer(encoded);
  writer.add_enum(tensor::kDtype, tensor::kString);
  writer.add_message(tensor::kShape, std::string());
  writer.add_bytes(tensor::kStringValue, text.text);
  std::string plugin, marked, tagged;
  pbf_writer(plugin).add_string(metadata::kPluginName, "text");
  pbf_writer mark(marked);
  mark.add_message(metadata::kPluginData, plugin);
  mark.add_enum(metadata::kDataClass, metadata::kTensorClass);
  pbf_writer proto(tagged);
  proto.add_string(value::kTag, text.tag);
  proto.add_message(value::kTensor, encoded);
  proto.add_message(value::kMetadata, marked);
  return tagged;
}

template <class T>
void appendFixed(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

std::string fileVersionEvent(double wall_time) {
  std::string encoded = eventAt(wall_time, 0);
  pbf_writer(encoded).add_string(event::kFileVersion, "brain.Event:2");
  return encoded;
}

std::string summaryEvent(double wall_time, uint64_t step, const StepSummary& summary) {
  std::string values;
  pbf_writer proto(values);
  for (const Scalar& scalar : summary.scalars)
    proto.add_message(kSummaryValue, encodeScalar(scalar));
  for (const StepSummary::Values& measured : summary.histograms)
    proto.add_message(kSummaryValue, encodeHistogram(measured));
  for (const StepSummary::Image& measured : summary.images)
    proto.add_message(kSummaryValue, encodeImage(measured));
  for (const Text& text : summary.texts) proto.add_message(kSummaryValue, encodeText(text));
  std::string encoded = eventAt(wall_time, step);
  pbf_writer(encoded).add_message(event::kSummary, values);
  return encoded;
}

std::string graphEvent(double wall_time, std::string_view graph_def) {
  std::string encoded = eventAt(wall_time, 0);
  pbf_writer(encoded).add_bytes(event::kGraphDef, graph_def.data(), graph_def.size());
  return encoded;
}

std::string sessionEvent(double wall_time, uint64_t step, SessionStatus status,
                         std::string_view checkpoint_path) {
  std::string log;
  pbf_writer proto(log);
  proto.add_enum(session_log::kStatus, static_cast<int32_t>(status));
  if (!checkpoint_path.empty())
    proto.add_string(session_log::kCheckpointPath, checkpoint_path.data(), checkpoint_path.size());
  std::string encoded = eventAt(wall_time, step);
  pbf_writer(encoded).add_message(event::kSessionLog, log);
  return encoded;
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
