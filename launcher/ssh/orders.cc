// The orders of messages.h as JSON, and read from it.

#include <csignal>

#include "common/base/json.h"
#include "launcher/ssh/message_fields.h"
#include "launcher/ssh/model_files.h"
#include "launcher/ssh/sha256.h"

namespace dtf::launcher {

namespace {

using namespace fields;

Json jsonOf(const OfferOrder& order) {
  Json files = Json::array();
  for (const OfferedFile& file : order.files) {
    Json each = {{"digest", file.digest}, {"bytes", file.bytes}};
    if (file.program.empty())
      each["path"] = file.path.string();
    else
      each["program"] = file.program;
    files.push_back(std::move(each));
  }
  Json folders = Json::array();
  for (const auto& folder : order.folders) folders.push_back(folder.string());
  return {{"order", "offer"}, {"dir", order.dir},   {"bytes_max", order.bytes_max},
          {"files", files},   {"folders", folders}, {"is_last", order.is_last}};
}

Json jsonOf(const OpenOrder& order) {
  Json tasks = Json::object();
  for (const auto& [id, task] : order.tasks) tasks[id.name()] = task.address.str();
  return {{"order", "open"},
          {"job", order.job},
          {"launch", order.launch},
          {"run_dir", order.run_dir.string()},
          {"drops_snapshots", order.drops_snapshots},
          {"reachable", order.reachable},
          {"lease_seconds", order.lease_seconds},
          {"mark", order.mark},
          {"kept", order.kept},
          {"files", filesJson(order.files)},
          {"tasks", tasks}};
}

Json jsonOf(const ProbeOrder& order) {
  return {{"order", "probe"},
          {"job", order.job},
          {"host", order.host},
          {"identity", order.identity},
          {"reachable", order.reachable},
          {"keys", order.keys.string()},
          {"task", order.task},
          {"files", filesJson(order.files)}};
}

Json jsonOf(const UnitsOrder& order) {
  return {{"order", "units"}, {"number", order.number}, {"question", order.question}};
}

Json jsonOf(const MeasureOrder& order) {
  const Measure& measure = order.measure;
  return {{"order", "measure"},       {"number", measure.number},     {"host", measure.to.host},
          {"port", measure.to.port},  {"identity", measure.identity}, {"task", measure.task},
          {"brief", measure.is_brief}};
}

Json jsonOf(const StartOrder& order) {
  return {{"order", "start"},
          {"task", order.task},
          {"name", order.command.id.name()},
          {"argv", order.command.argv},
          {"env", order.command.env},
          {"folder", order.command.folder.string()}};
}

Json jsonOf(const SendSignalOrder& order) {
  return {{"order", "signal"}, {"task", order.task}, {"signal", order.signal}};
}

Json jsonOf(const ReleaseOrder& order) {
  return {{"order", "release"}, {"task", order.task}, {"name", order.id.name()}};
}

Json jsonOf(const ReplaceOrder& order) {
  return {{"order", "replace"}, {"files", filesJson(order.files)}};
}

Json jsonOf(const FetchOrder& order) {
  return {{"order", "fetch"}, {"name", order.name}};
}

Json jsonOf(const PingOrder& /*order*/) {
  return {{"order", "ping"}};
}

Json jsonOf(const EndOrder& order) {
  return {{"order", "end"}, {"drops_snapshots", order.drops_snapshots}};
}

OfferedFile readOffered(const Json& message) {
  OfferedFile file;
  file.digest = message.stringAt("digest");
  if (!isSha256(file.digest)) refuse("'" + file.digest + "' is not a digest");
  file.bytes = bytesOf(message, "bytes");
  file.program = message.stringOr("program", "");
  if (file.program.empty())
    file.path = absoluteOf(message.stringAt("path"));
  else if (!isProgram(file.program))
    refuse("'" + file.program + "' is not a program of dtf");
  return file;
}

OfferOrder readOffer(const Json& message) {
  OfferOrder order;
  order.dir = message.stringAt("dir");
  order.bytes_max = bytesOf(message, "bytes_max");
  order.is_last = message.boolAt("is_last");
  for (const Json& file : message.at("files")) order.files.push_back(readOffered(file));
  for (const Json& folder : message.at("folders"))
    order.folders.push_back(absoluteOf(folder.asString()));
  if (order.files.size() > kOfferedFilesMax || order.folders.size() > kOfferedFilesMax)
    refuse("too many files at a time");
  return order;
}

OpenOrder readOpen(const Json& message) {
  OpenOrder order;
  order.job = message.stringAt("job");
  order.launch = launchOf(message.stringAt("launch"));
  order.run_dir = absoluteOf(message.stringAt("run_dir"));
  order.drops_snapshots = message.boolAt("drops_snapshots");
  order.reachable = message.boolAt("reachable");
  order.lease_seconds = secondsOf(message, "lease_seconds");
  // One that says nothing of files takes none.
  order.mark = message.stringOr("mark", "");
  if (const Json* const kept = message.find("kept")) order.kept = sizesOf(*kept);
  order.files = readFiles(message);
  for (const auto& [name, address] : message.at("tasks").members())
    order.tasks[idOf(name)].address = addressOf(address.asString());
  return order;
}

ProbeOrder readProbe(const Json& message) {
  ProbeOrder order;
  order.job = message.stringAt("job");
  order.host = message.stringAt("host");
  order.identity = launchOf(message.stringAt("identity"));
  order.reachable = message.boolAt("reachable");
  const std::string& keys = message.stringAt("keys");
  if (!keys.empty()) order.keys = absoluteOf(keys);
  order.task = message.stringAt("task");
  order.files = readFiles(message);
  return order;
}

MeasureOrder readMeasure(const Json& message) {
  Measure measure;
  measure.number = message.uint64At("number");
  measure.to = {message.stringAt("host"), portOf(message.at("port"))};
  measure.identity = message.stringAt("identity");
  measure.task = message.stringAt("task");
  const Json* const brief = message.find("brief");  // agents of 0.1.0 do not send it
  measure.is_brief = brief != nullptr && *brief == true;
  return {measure};
}

StartOrder readStart(const Json& message) {
  StartOrder order;
  order.task = taskOf(message);
  order.command.id = idOf(message.stringAt("name"));
  order.command.argv = message.at("argv").asStrings();
  order.command.env = textsOf(message.at("env"));
  order.command.folder = absoluteOf(message.stringAt("folder"));
  if (order.command.argv.empty()) refuse("a command without a program");
  return order;
}

SendSignalOrder readSignal(const Json& message) {
  const SendSignalOrder order{taskOf(message), message.intAt("signal")};
  if (order.signal < 1 || order.signal >= NSIG)
    refuse("there is no signal " + std::to_string(order.signal));
  return order;
}

FetchOrder readFetch(const Json& message) {
  FetchOrder order{message.stringAt("name")};
  if (!isModelFile(order.name)) refuse("'" + order.name + "' is not a file of a model");
  return order;
}

AgentOrder readOrder(const Json& message) {
  const std::string& order = message.stringAt("order");
  if (order == "offer") return readOffer(message);
  if (order == "open") return readOpen(message);
  if (order == "probe") return readProbe(message);
  if (order == "units") return UnitsOrder{message.uint64At("number"), message.stringAt("question")};
  if (order == "measure") return readMeasure(message);
  if (order == "start") return readStart(message);
  if (order == "signal") return readSignal(message);
  if (order == "release") return ReleaseOrder{taskOf(message), idOf(message.stringAt("name"))};
  if (order == "replace") return ReplaceOrder{readFiles(message)};
  if (order == "fetch") return readFetch(message);
  if (order == "ping") return PingOrder{};
  if (order == "end") return EndOrder{message.boolAt("drops_snapshots")};
  refuse("unknown order '" + order + "'");
}

}  // namespace

std::string orderJson(const AgentOrder& order) {
  try {
    return std::visit([](const auto& each) { return jsonOf(each); }, order).dumpStrict();
  } catch (const Error&) {
    throw Error(ErrorCode::kBadConfig,
                "bytes that are not UTF-8, in a file of the job, in its path or in a setting, "
                "can't be sent to other hosts: write UTF-8");
  }
}

AgentOrder parseOrder(std::string_view json_text) {
  return parsed(json_text, readOrder);
}

}  // namespace dtf::launcher
