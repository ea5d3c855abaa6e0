#include "launcher/ssh/messages.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/cluster/address.h"

namespace dtf::launcher {

namespace {

using nlohmann::json;

constexpr std::string_view kGreetingStart = "dtf-agent ";
constexpr std::string_view kProtocol = "2";
constexpr size_t kTasksMax = 4096;  // of a job: twice what a cluster file may have
constexpr size_t kGreetingShown = 80;
constexpr int kDepthMax = 4;  // one more than the deepest has
// Of a failure: the rest is cut off.
constexpr size_t kReasonBytesMax = 8192;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kBadData, what);
}

std::string dump(const json& message, json::error_handler_t on_error) {
  return message.dump(-1, ' ', false, on_error);
}

size_t taskOf(const json& message) {
  const auto task = message.at("task").get<uint64_t>();
  if (task >= kTasksMax) refuse("there is no task " + std::to_string(task));
  return task;
}

TaskId idOf(const std::string& name) {
  const size_t slash = name.find('/');
  const std::optional<JobKind> job = parseJobName(name.substr(0, slash));
  if (slash != std::string::npos && job)
    for (uint32_t index = 0; index < kTasksMax; ++index)
      if (const TaskId id{*job, index}; id.name() == name) return id;
  refuse("there is no task '" + name + "'");
}

std::filesystem::path absoluteOf(const std::string& text) {
  const std::filesystem::path path(text);
  if (!path.is_absolute() || path != path.lexically_normal())
    refuse("'" + text + "' is no absolute path");
  return path;
}

// It becomes part of a file's name.
std::string launchOf(const std::string& text) {
  constexpr size_t kLaunchBytesMax = 64;
  const bool is_plain =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c); });
  if (text.empty() || text.size() > kLaunchBytesMax || !is_plain)
    refuse("'" + text + "' names no launch");
  return text;
}

double secondsOf(const json& message, const char* key) {
  constexpr double kSecondsMax = 86400;
  const auto seconds = message.at(key).get<double>();
  if (!(seconds > 0 && seconds <= kSecondsMax)) refuse(std::string(key) + " can't be");
  return seconds;
}

cluster::Address addressOf(const std::string& text) {
  cluster::Address address;
  const std::string wrong = cluster::parseAddress(text, address);
  if (!wrong.empty()) refuse("'" + text + "' is no address: " + wrong);
  return address;
}

json jsonOf(const SentFiles& files) {
  json named = json::object();
  for (const auto& [path, text] : files) named[path.string()] = text;
  return named;
}

json jsonOf(const OpenOrder& order) {
  json tasks = json::object();
  for (const auto& [id, task] : order.tasks) tasks[id.name()] = task.address.str();
  return {{"order", "open"},
          {"job", order.job},
          {"launch", order.launch},
          {"run_dir", order.run_dir.string()},
          {"is_first", order.is_first},
          {"reachable", order.reachable},
          {"lease_seconds", order.lease_seconds},
          {"mark", order.mark},
          {"kept", order.kept},
          {"files", jsonOf(order.files)},
          {"tasks", tasks}};
}

json jsonOf(const StartOrder& order) {
  return {{"order", "start"},
          {"task", order.task},
          {"name", order.command.id.name()},
          {"argv", order.command.argv},
          {"env", order.command.env},
          {"folder", order.command.folder.string()}};
}

json jsonOf(const SendSignalOrder& order) {
  return {{"order", "signal"}, {"task", order.task}, {"signal", order.signal}};
}

json jsonOf(const ReleaseOrder& order) {
  return {{"order", "release"}, {"task", order.task}, {"name", order.id.name()}};
}

json jsonOf(const ReplaceOrder& order) {
  return {{"order", "replace"}, {"files", jsonOf(order.files)}};
}

json jsonOf(const PingOrder& /*order*/) {
  return {{"order", "ping"}};
}

json jsonOf(const EndOrder& /*order*/) {
  return {{"order", "end"}};
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

json jsonOf(const AliveReport& report) {
  return {{"report", "alive"}, {"suspended", report.suspended}};
}

SentFiles readFiles(const json& message) {
  SentFiles files;
  for (const auto& [path, text] : message.at("files").items())
    files[absoluteOf(path)] = text.get<std::string>();
  return files;
}

OpenOrder readOpen(const json& message) {
  OpenOrder order;
  order.job = message.at("job").get<std::string>();
  order.launch = launchOf(message.at("launch").get<std::string>());
  order.run_dir = absoluteOf(message.at("run_dir").get<std::string>());
  order.is_first = message.at("is_first").get<bool>();
  order.reachable = message.at("reachable").get<bool>();
  order.lease_seconds = secondsOf(message, "lease_seconds");
  // One that says nothing of files takes none.
  order.mark = message.value("mark", std::string());
  order.kept = message.value("kept", FileSizes());
  order.files = readFiles(message);
  for (const auto& [name, address] : message.at("tasks").items())
    order.tasks[idOf(name)].address = addressOf(address.get<std::string>());
  return order;
}

StartOrder readStart(const json& message) {
  StartOrder order;
  order.task = taskOf(message);
  order.command.id = idOf(message.at("name").get<std::string>());
  order.command.argv = message.at("argv").get<std::vector<std::string>>();
  order.command.env = message.at("env").get<std::map<std::string, std::string>>();
  order.command.folder = absoluteOf(message.at("folder").get<std::string>());
  if (order.command.argv.empty()) refuse("a command without a program");
  return order;
}

SendSignalOrder readSignal(const json& message) {
  const SendSignalOrder order{taskOf(message), message.at("signal").get<int>()};
  if (order.signal < 1 || order.signal >= NSIG)
    refuse("there is no signal " + std::to_string(order.signal));
  return order;
}

ErrorCode codeOf(const std::string& word) {
  for (const ErrorCode code : {ErrorCode::kTrainingFailed, ErrorCode::kUsage, ErrorCode::kBadData,
                               ErrorCode::kInternal, ErrorCode::kCannotWrite,
                               ErrorCode::kPermission, ErrorCode::kBadConfig, ErrorCode::kDeadline})
    if (errorCodeName(code) == word) return code;
  return ErrorCode::kUnavailable;
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

ListeningReport readListening(const json& message) {
  ListeningReport report;
  report.programs = message.at("programs").get<std::string>();
  for (const auto& [name, port] : message.at("ports").items()) {
    constexpr uint64_t kPortMax = 65535;
    const auto number = port.get<uint64_t>();
    if (number < 1 || number > kPortMax) refuse("there is no port " + std::to_string(number));
    report.ports[idOf(name)] = static_cast<uint16_t>(number);
  }
  return report;
}

AliveReport readAlive(const json& message) {
  AliveReport report;
  for (const json& task : message.at("suspended")) report.suspended.push_back(task.get<size_t>());
  return report;
}

AgentOrder readOrder(const json& message) {
  const auto order = message.at("order").get<std::string>();
  if (order == "open") return readOpen(message);
  if (order == "start") return readStart(message);
  if (order == "signal") return readSignal(message);
  if (order == "release")
    return ReleaseOrder{taskOf(message), idOf(message.at("name").get<std::string>())};
  if (order == "replace") return ReplaceOrder{readFiles(message)};
  if (order == "ping") return PingOrder{};
  if (order == "end") return EndOrder{};
  refuse("there is no order '" + order + "'");
}

AgentReport readReport(const json& message) {
  const auto report = message.at("report").get<std::string>();
  if (report == "listening") return readListening(message);
  if (report == "failed") return readFailed(message);
  if (report == "started") return StartedReport{taskOf(message)};
  if (report == "exited") return readExited(message);
  if (report == "alive") return readAlive(message);
  refuse("there is no report '" + report + "'");
}

template <class Read>
auto parsed(std::string_view text, Read read) {
  try {
    return read(json::parse(text, [](int depth, json::parse_event_t /*event*/, json& /*value*/) {
      if (depth > kDepthMax)
        refuse("a message of more than " + std::to_string(kDepthMax) + " levels");
      return true;
    }));
  } catch (const json::exception& error) {
    refuse(std::string("a message that can't be read: ") + error.what());
  }
}

}  // namespace

std::string agentGreeting() {
  return std::string(kGreetingStart) + std::string(kProtocol) + " " + DTF_VERSION;
}

std::string wrongGreeting(std::string_view greeting) {
  if (greeting == agentGreeting()) return "";
  if (!greeting.starts_with(kGreetingStart))
    return "it says '" + printable(greeting.substr(0, kGreetingShown)) +
           "' before dtf-agent says anything: what its shell runs at the start (~/.bashrc) must "
           "print nothing for ssh";
  const std::vector<std::string> words = split(greeting, ' ');
  if (words.back() == DTF_VERSION)
    return "it has another build of dtf " DTF_VERSION ": install the same programs on all hosts";
  return "it has dtf " + printable(words.back().substr(0, kGreetingShown)) + ", and here is dtf " +
         DTF_VERSION +
         ": install one version on all hosts, or name the folder of this one there with "
         "launch.binary_dir";
}

std::string orderJson(const AgentOrder& order) {
  try {
    return dump(std::visit([](const auto& each) { return jsonOf(each); }, order),
                json::error_handler_t::strict);
  } catch (const json::exception&) {
    throw Error(ErrorCode::kBadConfig,
                "bytes that are not UTF-8, in a file of the job, in its path or in a setting, "
                "can't be sent to other hosts: write UTF-8");
  }
}

std::string reportJson(const AgentReport& report) {
  return dump(std::visit([](const auto& each) { return jsonOf(each); }, report),
              json::error_handler_t::replace);
}

AgentOrder parseOrder(std::string_view json_text) {
  return parsed(json_text, readOrder);
}

AgentReport parseReport(std::string_view json_text) {
  return parsed(json_text, readReport);
}

}  // namespace dtf::launcher
