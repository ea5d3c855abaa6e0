// The bytes that dtf-launch and dtf-agent receive from each other, cut in any way: greetings,
// frames, orders, reports, answers to an offer of copies, and questions about units. The first byte
// chooses the receiver, the second the size of the pieces.

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "launcher/ssh/agent_bootstrap.h"
#include "launcher/ssh/copy_sender.h"
#include "launcher/ssh/frames.h"
#include "launcher/ssh/messages.h"
#include "launcher/systemd/unit_questions.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/reached.h"

namespace {

using namespace dtf::launcher;

const dtf::fuzz::MustReach kMustReach{
    "greeting",    "wrong greeting", "shell",      "output",     "file",    "copy",
    "offer",       "open",           "probe",      "units",      "measure", "start",
    "signal",      "release",        "replace",    "fetch",      "ping",    "end",
    "lacking",     "stored",         "listening",  "failed",     "started", "exited",
    "fetched",     "alive",          "probing",    "measured",   "answers", "copied",
    "refused",     "ask meet",       "ask lock",   "ask free",   "ask own", "ask write",
    "ask replace", "ask control",    "ask remove", "ask states", "states",  "facts"};

// In the order of the variants.
constexpr const char* kOrders[] = {"offer",  "open",    "probe",   "units", "measure", "start",
                                   "signal", "release", "replace", "fetch", "ping",    "end"};
constexpr const char* kReports[] = {"lacking", "stored",   "listening", "failed",
                                    "started", "exited",   "fetched",   "alive",
                                    "probing", "measured", "answers"};
constexpr const char* kQuestions[] = {"ask meet",    "ask lock",   "ask free",
                                      "ask own",     "ask write",  "ask replace",
                                      "ask control", "ask remove", "ask states"};
static_assert(std::size(kOrders) == std::variant_size_v<AgentOrder>);
static_assert(std::size(kReports) == std::variant_size_v<AgentReport>);
static_assert(std::size(kQuestions) == std::variant_size_v<UnitQuestion>);
constexpr size_t kFiles = 3;

struct Heard {
  FrameKind kind = FrameKind::kGreeting;
  std::string payload;
  bool operator==(const Heard&) const = default;
};

// The frames that a reader finds in the bytes; the last is "refused" if it rejects the rest.
std::vector<Heard> hear(std::string_view bytes, size_t piece, bool is_launcher) {
  std::vector<Heard> heard;
  FrameReader reader(is_launcher, [&heard](FrameKind kind, std::string_view payload) {
    heard.push_back({kind, std::string(payload)});
  });
  const bool accepted = dtf::fuzz::accepts([&] {
    for (size_t at = 0; at < bytes.size(); at += piece) reader.feed(bytes.substr(at, piece));
  });
  if (!accepted) heard.push_back({FrameKind::kGreeting, "refused"});
  return heard;
}

void listenToGreeting(const std::string& line) {
  ++dtf::fuzz::reached()[wrongGreeting(line).empty() ? "greeting" : "wrong greeting"];
  FUZZ_CHECK(wrongGreeting(line).empty() == (line == agentGreeting()));
  const std::string wrong = wrongBootstrapLine(line, "Linux x86_64");
  if (wrong.empty()) ++dtf::fuzz::reached()["shell"];
  FUZZ_CHECK(wrong.empty() == (line == "dtf-copy 1 Linux x86_64"));
  for (const unsigned char c : wrong) FUZZ_CHECK(c >= ' ' || c == '\t');
  dtf::fuzz::accepts([&] { return wantsAgent(line); });
}

// A parsed message must give the same text when it is parsed and written again.
void listenToQuestion(const std::string& text) {
  const UnitQuestion question = parseQuestion(text);
  ++dtf::fuzz::reached()[kQuestions[question.index()]];
  const std::string again = questionJson(question);
  FUZZ_CHECK(questionJson(parseQuestion(again)) == again);
}

void listenToAnswer(const std::string& text) {
  const UnitAnswer answer = parseAnswer(text);
  if (!answer.states.empty()) ++dtf::fuzz::reached()["states"];
  if (answer.facts) ++dtf::fuzz::reached()["facts"];
  const UnitAnswer again = parseAnswer(answerJson(answer));
  FUZZ_CHECK(again.states.size() == answer.states.size());
}

// Like listenToQuestion().
void listenToOrder(const std::string& payload) {
  dtf::fuzz::accepts([&] {
    const AgentOrder order = parseOrder(payload);
    ++dtf::fuzz::reached()[kOrders[order.index()]];
    const std::string again = orderJson(order);
    FUZZ_CHECK(orderJson(parseOrder(again)) == again);
    if (const auto* offer = std::get_if<OfferOrder>(&order))
      for (const OfferedFile& file : offer->files)
        FUZZ_CHECK(file.program.empty() == file.path.is_absolute() &&
                   file.path.string().find("/../") == std::string::npos);
    if (const auto* units = std::get_if<UnitsOrder>(&order)) listenToQuestion(units->question);
  });
}

void listenToReport(const std::string& payload, CopySender& sender) {
  dtf::fuzz::accepts([&] {
    const AgentReport report = parseReport(payload);
    ++dtf::fuzz::reached()[kReports[report.index()]];
    parseReport(reportJson(report));
    if (const auto* lacking = std::get_if<LackingReport>(&report)) {
      sender.take(*lacking);
      FUZZ_CHECK(!sender.nextOffer());
    }
    if (const auto* stored = std::get_if<StoredReport>(&report)) sender.take(*stored);
    FUZZ_CHECK(sender.storedBytes() <= sender.lackingBytes());
    if (sender.done()) ++dtf::fuzz::reached()["copied"];
    if (const auto* units = std::get_if<UnitsReport>(&report)) listenToAnswer(units->answer);
  });
}

// A parsed frame must give the same bytes when it is written again.
void listenToBytes(const Heard& heard) {
  dtf::fuzz::accepts([&] {
    if (heard.kind == FrameKind::kCopy) {
      ++dtf::fuzz::reached()["copy"];
    } else if (heard.kind == FrameKind::kFile) {
      ++dtf::fuzz::reached()["file"];
      const FilePiece piece = readFilePiece(heard.payload);
      FUZZ_CHECK(fileFrame(piece).substr(5) == heard.payload);
    } else {
      ++dtf::fuzz::reached()["output"];
      const TaskBytes said = readTaskBytes(heard.payload);
      FUZZ_CHECK(bytesFrame(heard.kind, said.task, said.bytes).substr(5) == heard.payload);
    }
  });
}

CopySender newSender() {
  auto files = std::make_shared<CopiedFiles>();
  for (size_t i = 0; i < kFiles; ++i) {
    CopiedFile file;
    file.offered = {std::string(kSha256HexBytes, 'a'), i * 100, "", "/data/x"};
    files->files.push_back(file);
  }
  return {std::move(files), "", 1000};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const bool is_launcher = data[0] % 2 == 1;
  const std::string_view bytes = dtf::fuzz::textOf(data + 2, size - 2);
  const std::vector<Heard> heard = hear(bytes, std::max<size_t>(bytes.size(), 1), is_launcher);
  FUZZ_CHECK(hear(bytes, std::max<size_t>(data[1], bytes.size() / 64 + 1), is_launcher) == heard);
  CopySender sender = newSender();
  sender.nextOffer();
  for (const Heard& each : heard) {
    if (each.kind == FrameKind::kGreeting && each.payload == "refused")
      ++dtf::fuzz::reached()["refused"];
    if (each.kind == FrameKind::kGreeting)
      listenToGreeting(each.payload);
    else if (each.kind != FrameKind::kMessage)
      listenToBytes(each);
    else if (is_launcher)
      listenToReport(each.payload, sender);
    else
      listenToOrder(each.payload);
  }
  return 0;
}
