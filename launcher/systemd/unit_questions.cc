#include "launcher/systemd/unit_questions.h"

#include <algorithm>
#include <csignal>

#include "common/base/json.h"
#include "common/base/text.h"
#include "launcher/ssh/message_fields.h"

namespace dtf::launcher {

namespace {

using namespace fields;

// Of a unit's last words, and of those of all: an answer has a limit.
constexpr size_t kUnitStatusBytesMax = 160;
constexpr size_t kFailedBytesMax = 2000;
constexpr size_t kStatusesBytesMax = 32768;
constexpr size_t kUnitProblemBytesMax = 8192;

Json jsonOf(const MeetQuestion& question) {
  return {{"ask", "meet"},
          {"job", question.job},
          {"launch", question.launch},
          {"run_dir", question.run_dir.string()},
          {"folder", question.folder.string()},
          {"units", question.units},
          {"starts", question.starts}};
}

Json jsonOf(const LockQuestion& question) {
  return {{"ask", "lock"}, {"take", question.take}};
}

Json jsonOf(const FreeQuestion& /*question*/) {
  return {{"ask", "free"}};
}

Json jsonOf(const OwnQuestion& question) {
  return {{"ask", "own"}, {"logs", question.logs.string()}};
}

Json jsonOf(const WriteQuestion& question) {
  Json files = Json::array();
  for (const UnitFile& file : question.files) files.push_back(Json::array({file.name, file.text}));
  Json tasks = Json::object();
  for (const auto& [id, task] : question.tasks) tasks[id.name()] = task.address.str();
  return {{"ask", "write"},
          {"units", files},
          {"logs", question.logs},
          {"tasks", tasks},
          {"reachable", question.reachable},
          {"keeps_snapshots", question.keeps_snapshots},
          {"mark", question.mark},
          {"files", filesJson(question.sent)}};
}

Json jsonOf(const ReplaceQuestion& question) {
  return {{"ask", "replace"}, {"files", filesJson(question.sent)}};
}

Json jsonOf(const ControlQuestion& question) {
  return {{"ask", "control"}, {"words", question.words}};
}

Json jsonOf(const RemoveQuestion& question) {
  return {{"ask", "remove"},
          {"only_ended", question.only_ended},
          {"drops_snapshots", question.drops_snapshots}};
}

Json jsonOf(const StatesQuestion& question) {
  return {{"ask", "states"},
          {"wants_files", question.wants_files},
          {"mark", question.mark},
          {"kept", question.kept}};
}

WriteQuestion readWrite(const Json& message) {
  WriteQuestion question;
  for (const Json& file : message.at("units"))
    question.files.push_back({file[0].asString(), file[1].asString()});
  question.logs = message.at("logs").asStrings();
  for (const auto& [name, address] : message.at("tasks").members())
    question.tasks[idOf(name)].address = addressOf(address.asString());
  question.reachable = message.boolAt("reachable");
  question.keeps_snapshots = message.boolAt("keeps_snapshots");
  question.mark = message.stringAt("mark");
  question.sent = readFiles(message);
  return question;
}

MeetQuestion readMeet(const Json& message) {
  MeetQuestion question{message.stringAt("job"),
                        launchOf(message.stringAt("launch")),
                        absoluteOf(message.stringAt("run_dir")),
                        absoluteOf(message.stringAt("folder")),
                        message.at("units").asStrings(),
                        message.boolAt("starts")};
  if (question.units.empty()) refuse("a request without units");
  return question;
}

ControlQuestion readControl(const Json& message) {
  ControlQuestion question{message.at("words").asStrings()};
  if (question.words.empty()) refuse("systemctl without a verb");
  return question;
}

UnitQuestion readQuestion(const Json& message) {
  const std::string& ask = message.stringAt("ask");
  if (ask == "meet") return readMeet(message);
  if (ask == "lock") return LockQuestion{message.boolAt("take")};
  if (ask == "free") return FreeQuestion{};
  if (ask == "own") return OwnQuestion{absoluteOf(message.stringAt("logs"))};
  if (ask == "write") return readWrite(message);
  if (ask == "replace") return ReplaceQuestion{readFiles(message)};
  if (ask == "control") return readControl(message);
  if (ask == "remove")
    return RemoveQuestion{message.boolAt("only_ended"), message.boolAt("drops_snapshots")};
  if (ask == "states")
    return StatesQuestion{message.boolAt("wants_files"), message.stringAt("mark"),
                          sizesOf(message.at("kept"))};
  refuse("unknown question '" + ask + "'");
}

Json stateJson(const UnitState& unit, size_t& room) {
  // Of what JSON writes with six bytes, and that again with seven, nothing is left.
  const std::string status =
      printable(unit.status)
          .substr(0, std::min(room, unit.hasFailed() ? kFailedBytesMax : kUnitStatusBytesMax));
  room -= status.size();
  return {{"name", unit.name},          {"active", unit.active},     {"result", unit.result},
          {"status", status},           {"file", unit.file},         {"code", unit.exit.code},
          {"signal", unit.exit.signal}, {"restarts", unit.restarts}, {"has_job", unit.has_job},
          {"ended", unit.ended_usec}};
}

UnitState readState(const Json& message) {
  UnitState unit;
  unit.name = printable(message.stringAt("name"));
  unit.active = printable(message.stringAt("active"));
  unit.result = printable(message.stringAt("result"));
  unit.status = printable(message.stringAt("status"));
  unit.file = printable(message.stringAt("file"));
  unit.exit.code = message.intAt("code");
  unit.exit.signal = message.intAt("signal");
  unit.restarts = message.uint64At("restarts");
  unit.has_job = message.boolAt("has_job");
  unit.ended_usec = message.uint64At("ended");
  constexpr int kCodeMax = 255;
  if (unit.exit.code < 0 || unit.exit.code > kCodeMax || unit.exit.signal < 0 ||
      unit.exit.signal >= NSIG)
    refuse("no process has this exit code and signal");
  return unit;
}

Json factsJson(const HostFacts& facts) {
  return {{"unit_folder", facts.unit_folder.string()},
          {"systemctl", facts.systemctl},
          {"warning", facts.warning},
          {"psd", facts.psd.string()},
          {"workerd", facts.workerd.string()},
          {"env", facts.env},
          {"work_folder", facts.work_folder.string()},
          {"sent_folder", facts.sent_folder.string()},
          {"attempt", facts.attempt}};
}

// Somebody else's words, some of which a person sees.
HostFacts readFacts(const Json& message) {
  const auto program = [&message](const char* key) {
    const std::string& path = message.stringAt(key);
    return path.empty() ? std::filesystem::path() : absoluteOf(printable(path));
  };
  HostFacts facts;
  facts.unit_folder = absoluteOf(printable(message.stringAt("unit_folder")));
  for (const Json& word : message.at("systemctl"))
    facts.systemctl.push_back(printable(word.asString()));
  facts.warning = printable(message.stringAt("warning"));
  facts.psd = program("psd");
  facts.workerd = program("workerd");
  for (const auto& [name, value] : textsOf(message.at("env")))
    facts.env[printable(name)] = printable(value);
  facts.work_folder = absoluteOf(printable(message.stringAt("work_folder")));
  facts.sent_folder = absoluteOf(printable(message.stringAt("sent_folder")));
  facts.attempt = message.intAt("attempt");
  if (facts.attempt < 1) refuse("logs without a number");
  return facts;
}

UnitAnswer readAnswer(const Json& message) {
  UnitAnswer answer;
  if (message.contains("error")) {
    const Json& error = message.at("error");
    answer.error = Error(codeOf(error.stringAt("code")), error.stringAt("message"));
  }
  if (message.contains("facts")) answer.facts = readFacts(message.at("facts"));
  answer.locked = message.boolAt("locked");
  for (const Json& unit : message.at("states")) answer.states.push_back(readState(unit));
  answer.has_more = message.boolAt("has_more");
  return answer;
}

}  // namespace

std::string questionJson(const UnitQuestion& question) {
  try {
    return std::visit([](const auto& each) { return jsonOf(each); }, question).dumpStrict();
  } catch (const Error&) {
    throw Error(ErrorCode::kBadConfig,
                "bytes that are not UTF-8, in a file of the job, in its path or in a setting, "
                "can't be sent to other hosts: write UTF-8");
  }
}

std::string answerJson(const UnitAnswer& answer) {
  Json states = Json::array();
  size_t room = kStatusesBytesMax;
  for (const UnitState& unit : answer.states) states.push_back(stateJson(unit, room));
  Json message = {{"locked", answer.locked}, {"states", states}, {"has_more", answer.has_more}};
  if (answer.error)
    message["error"] = {{"code", std::string(errorCodeName(answer.error->code()))},
                        {"message", answer.error->message().substr(0, kUnitProblemBytesMax)}};
  if (answer.facts) message["facts"] = factsJson(*answer.facts);
  return message.dump();
}

UnitQuestion parseQuestion(std::string_view text) {
  return parsed(text, readQuestion);
}

UnitAnswer parseAnswer(std::string_view text) {
  return parsed(text, readAnswer);
}

}  // namespace dtf::launcher
