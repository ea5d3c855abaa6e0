// The orders of messages.h as JSON, and read from it.

#include <csignal>

#include "launcher/ssh/message_fields.h"
#include "launcher/ssh/model_files.h"
#include "launcher/ssh/sha256.h"

namespace dtf::launcher {

namespace {

using namespace fields;

json jsonOf(const OfferOrder& order) {
  json files = json::array();
  for (const OfferedFile& file : order.files) {
    json each = {{"digest", file.digest}, {"bytes", file.bytes}};
    if (file.program.empty())
      each["path"] = file.path.string();
    else
      each["program"] = file.program;
    files.push_back(std::move(each));
  }
  json folders = json::array();
  for (const auto& folder : order.folders) folders.push_back(folder.string());
  return {{"order", "offer"}, {"dir", order.dir},   {"bytes_max", order.bytes_max},
          {"files", files},   {"folders", folders}, {"is_last", order.is_last}};
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
          {"files", filesJson(order.files)},
          {"tasks", tasks}};
}

json jsonOf(const ProbeOrder& order) {
  return {{"order", "probe"},
          {"job", order.job},
          {"host", order.host},
          {"identity", order.identity},
          {"reachable", order.reachable},
          {"keys", order.keys.string()},
          {"task", order.task},
          {"files", filesJson(order.files)}};
}

json jsonOf(const UnitsOrder& order) {
  return {{"order", "units"}, {"number", order.number}, {"question", order.question}};
}

json jsonOf(const MeasureOrder& order) {
  const Measure& measure = order.measure;
  return {{"order", "measure"},      {"number", measure.number},     {"host", measure.to.host},
          {"port", measure.to.port}, {"identity", measure.identity}, {"task", measure.task}};
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
  return {{"order", "replace"}, {"files", filesJson(order.files)}};
}

json jsonOf(const FetchOrder& order) {
  return {{"order", "fetch"}, {"name", order.name}};
}

json jsonOf(const PingOrder& /*order*/) {
  return {{"order", "ping"}};
}

json jsonOf(const EndOrder& /*order*/) {
  return {{"order", "end"}};
}

OfferedFile readOffered(const json& message) {
  OfferedFile file;
  file.digest = message.at("digest").get<std::string>();
  if (!isSha256(file.digest)) refuse("'" + file.digest + "' is no digest");
  file.bytes = bytesOf(message, "bytes");
  file.program = message.value("program", std::string());
  if (file.program.empty())
    file.path = absoluteOf(message.at("path").get<std::string>());
  else if (!isProgram(file.program))
    refuse("'" + file.program + "' is no program of dtf");
  return file;
}

OfferOrder readOffer(const json& message) {
  OfferOrder order;
  order.dir = message.at("dir").get<std::string>();
  order.bytes_max = bytesOf(message, "bytes_max");
  order.is_last = message.at("is_last").get<bool>();
  for (const json& file : message.at("files")) order.files.push_back(readOffered(file));
  for (const json& folder : message.at("folders"))
    order.folders.push_back(absoluteOf(folder.get<std::string>()));
  if (order.files.size() > kOfferedFilesMax || order.folders.size() > kOfferedFilesMax)
    refuse("too many files at a time");
  return order;
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

ProbeOrder readProbe(const json& message) {
  ProbeOrder order;
  order.job = message.at("job").get<std::string>();
  order.host = message.at("host").get<std::string>();
  order.identity = launchOf(message.at("identity").get<std::string>());
  order.reachable = message.at("reachable").get<bool>();
  const auto keys = message.at("keys").get<std::string>();
  if (!keys.empty()) order.keys = absoluteOf(keys);
  order.task = message.at("task").get<std::string>();
  order.files = readFiles(message);
  return order;
}

MeasureOrder readMeasure(const json& message) {
  Measure measure;
  measure.number = message.at("number").get<uint64_t>();
  measure.to = {message.at("host").get<std::string>(), portOf(message.at("port"))};
  measure.identity = message.at("identity").get<std::string>();
  measure.task = message.at("task").get<std::string>();
  return {measure};
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

FetchOrder readFetch(const json& message) {
  FetchOrder order{message.at("name").get<std::string>()};
  if (!isModelFile(order.name)) refuse("'" + order.name + "' is no file of a model");
  return order;
}

AgentOrder readOrder(const json& message) {
  const auto order = message.at("order").get<std::string>();
  if (order == "offer") return readOffer(message);
  if (order == "open") return readOpen(message);
  if (order == "probe") return readProbe(message);
  if (order == "units")
    return UnitsOrder{message.at("number").get<uint64_t>(),
                      message.at("question").get<std::string>()};
  if (order == "measure") return readMeasure(message);
  if (order == "start") return readStart(message);
  if (order == "signal") return readSignal(message);
  if (order == "release")
    return ReleaseOrder{taskOf(message), idOf(message.at("name").get<std::string>())};
  if (order == "replace") return ReplaceOrder{readFiles(message)};
  if (order == "fetch") return readFetch(message);
  if (order == "ping") return PingOrder{};
  if (order == "end") return EndOrder{};
  refuse("there is no order '" + order + "'");
}

}  // namespace

std::string orderJson(const AgentOrder& order) {
  try {
    return std::visit([](const auto& each) { return jsonOf(each); }, order)
        .dump(-1, ' ', false, json::error_handler_t::strict);
  } catch (const json::exception&) {
    throw Error(ErrorCode::kBadConfig,
                "bytes that are not UTF-8, in a file of the job, in its path or in a setting, "
                "can't be sent to other hosts: write UTF-8");
  }
}

AgentOrder parseOrder(std::string_view json_text) {
  return parsed(json_text, readOrder);
}

}  // namespace dtf::launcher
