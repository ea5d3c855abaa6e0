// The reports of messages.h as JSON, and read from it.

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <functional>

#include "common/base/text.h"
#include "launcher/ssh/message_fields.h"

namespace dtf::launcher {

namespace {

using namespace fields;

// Of a failure: the rest is cut off.
constexpr size_t kReasonBytesMax = 8192;
constexpr size_t kProblemBytesMax = 512;  // of a measurement

json jsonOf(const LackingReport& report) {
  return {{"report", "lacking"}, {"files", report.files}};
}

json jsonOf(const StoredReport& report) {
  return {{"report", "stored"}, {"bytes", report.bytes}};
}

json jsonOf(const ListeningReport& report) {
  json ports = json::object();
  for (const auto& [id, port] : report.ports) ports[id.name()] = port;
  return {{"report", "listening"}, {"ports", ports}, {"programs", report.programs}};
}

json jsonOf(const FailedReport& report) {
  json message = {{"report", "failed"},
                  {"code", std::string(errorCodeName(report.code))},
                  {"message", report.message.substr(0, kReasonBytesMax)}};
  if (report.task) message["task"] = *report.task;
  return message;
}

json jsonOf(const StartedReport& report) {
  return {{"report", "started"}, {"task", report.task}};
}

json jsonOf(const ExitedReport& report) {
  return {{"report", "exited"},
          {"task", report.task},
          {"code", report.status.code},
          {"signal", report.status.signal},
          {"memory_ran_out", report.status.memory_ran_out}};
}

constexpr std::array kFoundWords = {"absent", "same", "there"};

json jsonOf(const FetchedReport& report) {
  return {{"report", "fetched"},
          {"found", kFoundWords.at(static_cast<size_t>(report.found))},
          {"bytes", report.bytes}};
}

json jsonOf(const AliveReport& report) {
  return {{"report", "alive"}, {"suspended", report.suspended}};
}

json jsonOf(const ProbingReport& report) {
  json addresses = json::array();
  for (const ProbeAddress& each : report.addresses)
    addresses.push_back(
        {{"address", each.address}, {"interface", each.interface}, {"port", each.port}});
  return {{"report", "probing"}, {"addresses", addresses}};
}

json jsonOf(const UnitsReport& report) {
  return {{"report", "units"}, {"number", report.number}, {"answer", report.answer}};
}

json jsonOf(const MeasuredReport& report) {
  const Measured& measured = report.measured;
  return {{"report", "measured"},
          {"number", measured.number},
          {"bytes_per_second", measured.bytes_per_second},
          {"round_trip_us", measured.round_trip_us},
          {"problem", measured.problem.substr(0, kProblemBytesMax)}};
}

FailedReport readFailed(const json& message) {
  FailedReport report;
  if (message.contains("task")) report.task = taskOf(message);
  report.code = codeOf(message.at("code").get<std::string>());
  report.message = message.at("message").get<std::string>();
  return report;
}

ExitedReport readExited(const json& message) {
  ExitedReport report{taskOf(message), {}};
  report.status.code = message.at("code").get<int>();
  report.status.signal = message.at("signal").get<int>();
  report.status.memory_ran_out = message.at("memory_ran_out").get<bool>();
  constexpr int kExitCodeMax = 255;
  const bool one = report.status.code == 0 || report.status.signal == 0;
  if (!one || report.status.code < 0 || report.status.code > kExitCodeMax ||
      report.status.signal < 0 || report.status.signal >= NSIG)
    refuse("no process ends like that");
  return report;
}

LackingReport readLacking(const json& message) {
  LackingReport report;
  for (const json& file : message.at("files")) {
    if (!file.is_number_unsigned()) refuse("it lacks a file that has no number");
    report.files.push_back(file.get<size_t>());
  }
  if (report.files.size() > kOfferedFilesMax ||
      std::adjacent_find(report.files.begin(), report.files.end(), std::greater_equal<>()) !=
          report.files.end())
    refuse("files that are lacking twice");
  return report;
}

ListeningReport readListening(const json& message) {
  ListeningReport report;
  report.programs = message.at("programs").get<std::string>();
  for (const auto& [name, port] : message.at("ports").items())
    report.ports[idOf(name)] = portOf(port);
  return report;
}

FetchedReport readFetched(const json& message) {
  const auto word = message.at("found").get<std::string>();
  const auto* const found = std::find(kFoundWords.begin(), kFoundWords.end(), word);
  if (found == kFoundWords.end()) refuse("no file is '" + word + "'");
  return {static_cast<FetchedReport::Found>(found - kFoundWords.begin()),
          bytesOf(message, "bytes")};
}

AliveReport readAlive(const json& message) {
  AliveReport report;
  for (const json& task : message.at("suspended")) report.suspended.push_back(task.get<size_t>());
  return report;
}

ProbingReport readProbing(const json& message) {
  ProbingReport report;
  for (const json& each : message.at("addresses"))
    report.addresses.push_back({printable(each.at("address").get<std::string>()),
                                printable(each.at("interface").get<std::string>()),
                                portOf(each.at("port"))});
  if (report.addresses.empty() || report.addresses.size() > kProbeAddressesMax)
    refuse(std::to_string(report.addresses.size()) + " addresses of one host");
  return report;
}

MeasuredReport readMeasured(const json& message) {
  Measured measured;
  measured.number = message.at("number").get<uint64_t>();
  measured.bytes_per_second = message.at("bytes_per_second").get<double>();
  measured.round_trip_us = message.at("round_trip_us").get<double>();
  measured.problem = printable(message.at("problem").get<std::string>());
  for (const double figure : {measured.bytes_per_second, measured.round_trip_us})
    if (!std::isfinite(figure) || figure < 0) refuse("no measurement has such figures");
  return {measured};
}

AgentReport readReport(const json& message) {
  const auto report = message.at("report").get<std::string>();
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
  if (report == "units")
    return UnitsReport{message.at("number").get<uint64_t>(),
                       message.at("answer").get<std::string>()};
  refuse("there is no report '" + report + "'");
}

}  // namespace

std::string reportJson(const AgentReport& report) {
  return std::visit([](const auto& each) { return jsonOf(each); }, report)
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

AgentReport parseReport(std::string_view json_text) {
  return parsed(json_text, readReport);
}

}  // namespace dtf::launcher
