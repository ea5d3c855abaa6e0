// The reports of messages.h as JSON, and read from it.

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <functional>

#include "common/base/json.h"
#include "common/base/text.h"
#include "launcher/ssh/message_fields.h"

namespace dtf::launcher {

namespace {

using namespace fields;

// Of a failure: the rest is cut off.
constexpr size_t kReasonBytesMax = 8192;
constexpr size_t kProblemBytesMax = 512;  // of a measurement

Json jsonOf(const LackingReport& report) {
  return {{"report", "lacking"}, {"files", report.files}};
}

Json jsonOf(const StoredReport& report) {
  return {{"report", "stored"}, {"bytes", report.bytes}};
}

Json jsonOf(const ListeningReport& report) {
  Json ports = Json::object();
  for (const auto& [id, port] : report.ports) ports[id.name()] = port;
  return {{"report", "listening"}, {"ports", ports}, {"programs", report.programs}};
}

Json jsonOf(const FailedReport& report) {
  Json message = {{"report", "failed"},
                  {"code", std::string(errorCodeName(report.code))},
                  {"message", report.message.substr(0, kReasonBytesMax)}};
  if (report.task) message["task"] = *report.task;
  return message;
}

Json jsonOf(const StartedReport& report) {
  return {{"report", "started"}, {"task", report.task}};
}

Json jsonOf(const ExitedReport& report) {
  return {{"report", "exited"},
          {"task", report.task},
          {"code", report.status.code},
          {"signal", report.status.signal},
          {"memory_ran_out", report.status.memory_ran_out}};
}

constexpr std::array kFoundWords = {"absent", "same", "there"};

Json jsonOf(const FetchedReport& report) {
  return {{"report", "fetched"},
          {"found", kFoundWords.at(static_cast<size_t>(report.found))},
          {"bytes", report.bytes}};
}

Json jsonOf(const AliveReport& report) {
  return {{"report", "alive"}, {"suspended", report.suspended}};
}

Json jsonOf(const ProbingReport& report) {
  Json addresses = Json::array();
  for (const ProbeAddress& each : report.addresses)
    addresses.push_back(
        {{"address", each.address}, {"interface", each.interface}, {"port", each.port}});
  return {{"report", "probing"}, {"addresses", addresses}};
}

Json jsonOf(const UnitsReport& report) {
  return {{"report", "units"}, {"number", report.number}, {"answer", report.answer}};
}

Json jsonOf(const MeasuredReport& report) {
  const Measured& measured = report.measured;
  return {{"report", "measured"},
          {"number", measured.number},
          {"bytes_per_second", measured.bytes_per_second},
          {"round_trip_us", measured.round_trip_us},
          {"problem", measured.problem.substr(0, kProblemBytesMax)}};
}

FailedReport readFailed(const Json& message) {
  FailedReport report;
  if (message.contains("task")) report.task = taskOf(message);
  report.code = codeOf(message.stringAt("code"));
  report.message = message.stringAt("message");
  return report;
}

ExitedReport readExited(const Json& message) {
  ExitedReport report{taskOf(message), {}};
  report.status.code = message.intAt("code");
  report.status.signal = message.intAt("signal");
  report.status.memory_ran_out = message.boolAt("memory_ran_out");
  constexpr int kExitCodeMax = 255;
  const bool one = report.status.code == 0 || report.status.signal == 0;
  if (!one || report.status.code < 0 || report.status.code > kExitCodeMax ||
      report.status.signal < 0 || report.status.signal >= NSIG)
    refuse("no process has this exit code and signal");
  return report;
}

LackingReport readLacking(const Json& message) {
  LackingReport report;
  for (const Json& file : message.at("files")) {
    if (!file.isUnsigned()) refuse("the number of a requested file is not a whole number");
    report.files.push_back(file.asUint64());
  }
  if (report.files.size() > kOfferedFilesMax ||
      std::adjacent_find(report.files.begin(), report.files.end(), std::greater_equal<>()) !=
          report.files.end())
    refuse("the numbers of requested files do not ascend");
  return report;
}

ListeningReport readListening(const Json& message) {
  ListeningReport report;
  report.programs = message.stringAt("programs");
  for (const auto& [name, port] : message.at("ports").members())
    report.ports[idOf(name)] = portOf(port);
  return report;
}

FetchedReport readFetched(const Json& message) {
  const std::string& word = message.stringAt("found");
  const auto* const found = std::find(kFoundWords.begin(), kFoundWords.end(), word);
  if (found == kFoundWords.end()) refuse("unknown state of a file '" + word + "'");
  return {static_cast<FetchedReport::Found>(found - kFoundWords.begin()),
          bytesOf(message, "bytes")};
}

AliveReport readAlive(const Json& message) {
  AliveReport report;
  for (const Json& task : message.at("suspended")) report.suspended.push_back(task.asUint64());
  return report;
}

ProbingReport readProbing(const Json& message) {
  ProbingReport report;
  for (const Json& each : message.at("addresses"))
    report.addresses.push_back({printable(each.stringAt("address")),
                                printable(each.stringAt("interface")), portOf(each.at("port"))});
  if (report.addresses.empty() || report.addresses.size() > kProbeAddressesMax)
    refuse(std::to_string(report.addresses.size()) + " addresses of one host");
  return report;
}

MeasuredReport readMeasured(const Json& message) {
  Measured measured;
  measured.number = message.uint64At("number");
  measured.bytes_per_second = message.doubleAt("bytes_per_second");
  measured.round_trip_us = message.doubleAt("round_trip_us");
  measured.problem = printable(message.stringAt("problem"));
  for (const double figure : {measured.bytes_per_second, measured.round_trip_us})
    if (!std::isfinite(figure) || figure < 0)
      refuse("a figure of a measurement is negative or not finite");
  return {measured};
}

AgentReport readReport(const Json& message) {
  const std::string& report = message.stringAt("report");
  if (report == "lacking") return readLacking(message);
  if (report == "stored") return StoredReport{bytesOf(message, "bytes")};
  if (report == "listening") return readListening(message);
  if (report == "failed") return readFailed(message);
  if (report == "started") return StartedReport{taskOf(message)};
  if (report == "exited") return readExited(message);
  if (report == "fetched") return readFetched(message);
  if (report == "alive") return readAlive(message);
  if (report == "probing") return readProbing(message);
  if (report == "measured") return readMeasured(message);
  if (report == "units") return UnitsReport{message.uint64At("number"), message.stringAt("answer")};
  refuse("unknown report '" + report + "'");
}

}  // namespace

std::string reportJson(const AgentReport& report) {
  return std::visit([](const auto& each) { return jsonOf(each); }, report).dump();
}

AgentReport parseReport(std::string_view json_text) {
  return parsed(json_text, readReport);
}

}  // namespace dtf::launcher
