#pragma once

// Event files, record by record: TensorFlow's Event messages in its record framing.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/summary/histogram.h"

namespace dtf::summary {

// The status of a session. At START, TensorBoard drops events of an earlier process beyond that
// step, because training repeats those steps.
enum class SessionStatus : uint8_t { kStart = 1, kStop = 2, kCheckpoint = 3 };

// Shown by TensorBoard's text page, as Markdown.
struct Text {
  std::string tag;
  std::string text;
};

struct Scalar {
  std::string tag;  // "eval/accuracy"
  double value = 0;
};

// The measurements of one step, as the training thread passes them on: histograms as values and
// images as pixels, so that another thread encodes them. Value type.
struct StepSummary {
  struct Values {
    std::string tag;
    std::vector<float> values;
  };
  // One byte for each pixel and channel, row by row; grey, RGB or RGBA.
  struct Image {
    std::string tag;
    int64_t height = 0, width = 0, channels = 0;
    std::vector<uint8_t> pixels;
  };
  std::vector<Scalar> scalars;
  std::vector<Values> histograms;
  std::vector<Image> images;
  std::vector<Text> texts;
};

// Each returns one encoded Event. `wall_time`: seconds since 1970.
std::string fileVersionEvent(double wall_time);  // the first of every file
std::string summaryEvent(double wall_time, uint64_t step, const StepSummary& summary);
std::string graphEvent(double wall_time, std::string_view graph_def);
std::string sessionEvent(double wall_time, uint64_t step, SessionStatus status,
                         std::string_view checkpoint_path);

// Returns `data` as one record: its length, the length's masked checksum, `data`, its masked
// checksum.
std::string encodeRecord(std::string_view data);

}  // namespace dtf::summary
