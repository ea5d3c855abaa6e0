#include "launcher/systemd/unit_questions.h"

#include <algorithm>
#include <csignal>

#include "common/base/text.h"
#include "launcher/ssh/message_fields.h"

namespace dtf::launcher {

namespace {

using namespace fields;

// Of a unit's last words, and of those of all: an answer has a limit.
constexpr size_t kStatusBytesMax = 160;
constexpr size_t kFailedBytesMax = 2000;
constexpr size_t kStatusesBytesMax = 32768;
constexpr size_t kProblemBytesMax = 8192;

json jsonOf(const MeetQuestion& question) {
  return {{"ask", "meet"},
          {"job", question.job},
          {"launch", question.launch},
          {"run_dir", question.run_dir.string()},
          {"folder", question.folder.string()},
          {"units", question.units},
          {"starts", question.starts}};
}

json jsonOf(const LockQuestion& question) {
  return {{"ask", "lock"}, {"take", question.take}};
}

json jsonOf(const FreeQuestion& /*question*/) {
  return {{"ask", "free"}};
}

json jsonOf(const OwnQuestion& question) {
  return {{"ask", "own"}, {"logs", question.logs.string()}};
}

json jsonOf(const WriteQuestion& question) {
  json files = json::array();
  for (const UnitFile& file : question.files) files.push_back({file.name, file.text});
  json tasks = json::object();
  for (const auto& [id, task] : question.tasks) tasks[id.name()] = task.address.str();
  return {{"ask", "write"},
          {"units", files},
          {"logs", question.logs},
          {"tasks", tasks},
          {"reachable", question.reachable},
          {"mark", question.mark},
          {"files", filesJson(question.sent)}};
}

json jsonOf(const ReplaceQuestion& question) {
  return {{"ask", "replace"}, {"files", filesJson(question.sent)}};
}

json jsonOf(const ControlQuestion& question) {
  return {{"ask", "control"}, {"words", question.words}};
}

json jsonOf(const RemoveQuestion& question) {
  return {{"ask", "remove"}, {"only_ended", question.only_ended}};
}

json jsonOf(const StatesQuestion& question) {
  return {{"ask", "states"},
          {"wants_files", question.wants_files},
          {"mark", question.mark},
          {"kept", question.kept}};
}

WriteQuestion readWrite(const json& message) {
  WriteQuestion question;
  for (const json& file : message.at("units"))
    question.files.push_back({file.at(0).get<std::string>(), file.at(1).get<std::string>()});
  question.logs = message.at("logs").get<std::vector<std::string>>();
  for (const auto& [name, address] : message.at("tasks").items())
    question.tasks[idOf(name)].address = addressOf(address.get<std::string>());
  question.reachable = message.at("reachable").get<bool>();
  question.mark = message.at("mark").get<std::string>();
  question.sent = readFiles(message);
  return question;
}

MeetQuestion readMeet(const json& message) {
  MeetQuestion question{message.at("job").get<std::string>(),
                        launchOf(message.at("launch").get<std::string>()),
                        absoluteOf(message.at("run_dir").get<std::string>()),
                        absoluteOf(message.at("folder").get<std::string>()),
                        message.at("units").get<std::vector<std::string>>(),
                        message.at("starts").get<bool>()};
  if (question.units.empty()) refuse("no units are asked about");
  return question;
}

ControlQuestion readControl(const json& message) {
  ControlQuestion question{message.at("words").get<std::vector<std::string>>()};
  if (question.words.empty()) refuse("systemctl without a verb");
  return question;
}

UnitQuestion readQuestion(const json& message) {
  const auto ask = message.at("ask").get<std::string>();
  if (ask == "meet") return readMeet(message);
  if (ask == "lock") return LockQuestion{message.at("take").get<bool>()};
  if (ask == "free") return FreeQuestion{};
  if (ask == "own") return OwnQuestion{absoluteOf(message.at("logs").get<std::string>())};
  if (ask == "write") return readWrite(message);
  if (ask == "replace") return ReplaceQuestion{readFiles(message)};
  if (ask == "control") return readControl(message);
  if (ask == "remove") return RemoveQuestion{message.at("only_ended").get<bool>()};
  if (ask == "states")
    return StatesQuestion{message.at("wants_files").get<bool>(),
                          message.at("mark").get<std::string>(),
                          message.at("kept").get<FileSizes>()};
  refuse("there is no question '" + ask + "'");
}

json stateJson(const UnitState& unit, size_t& room) {
  // Of what JSON writes with six bytes, and that again with seven, nothing is left.
  const std::string status =
      printable(unit.status)
          .substr(0, std::min(room, unit.hasFailed() ? kFailedBytesMax : kStatusBytesMax));
  room -= status.size();
  return {{"name", unit.name},          {"active", unit.active},     {"result", unit.result},
          {"status", status},           {"file", unit.file},         {"code", unit.exit.code},
          {"signal", unit.exit.signal}, {"restarts", unit.restarts}, {"has_job", unit.has_job},
          {"ended", unit.ended_usec}};
}

UnitState readState(const json& message) {
  UnitState unit;
  unit.name = printable(message.at("name").get<std::string>());
  unit.active = printable(message.at("active").get<std::string>());
  unit.result = printable(message.at("result").get<std::string>());
  unit.status = printable(message.at("status").get<std::string>());
  unit.file = printable(message.at("file").get<std::string>());
  unit.exit.code = message.at("code").get<int>();
  unit.exit.signal = message.at("signal").get<int>();
  unit.restarts = message.at("restarts").get<uint32_t>();
  unit.has_job = message.at("has_job").get<bool>();
  unit.ended_usec = message.at("ended").get<uint64_t>();
  constexpr int kCodeMax = 255;
  if (unit.exit.code < 0 || unit.exit.code > kCodeMax || unit.exit.signal < 0 ||
      unit.exit.signal >= NSIG)
    refuse("no process ends like that");
  return unit;
}

json factsJson(const HostFacts& facts) {
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
HostFacts readFacts(const json& message) {
  const auto program = [&message](const char* key) {
    const auto path = message.at(key).get<std::string>();
    return path.empty() ? std::filesystem::path() : absoluteOf(printable(path));
  };
  HostFacts facts;
  facts.unit_folder = absoluteOf(printable(message.at("unit_folder").get<std::string>()));
  for (const json& word : message.at("systemctl"))
    facts.systemctl.push_back(printable(word.get<std::string>()));
  facts.warning = printable(message.at("warning").get<std::string>());
  facts.psd = program("psd");
  facts.workerd = program("workerd");
  for (const auto& [name, value] : message.at("env").get<std::map<std::string, std::string>>())
    facts.env[printable(name)] = printable(value);
  facts.work_folder = absoluteOf(printable(message.at("work_folder").get<std::string>()));
  facts.sent_folder = absoluteOf(printable(message.at("sent_folder").get<std::string>()));
  facts.attempt = message.at("attempt").get<int>();
  if (facts.attempt < 1) refuse("logs without a number");
  return facts;
}

UnitAnswer readAnswer(const json& message) {
  UnitAnswer answer;
  if (message.contains("error")) {
    const json& error = message.at("error");
    answer.error =
        Error(codeOf(error.at("code").get<std::string>()), error.at("message").get<std::string>());
  }
  if (message.contains("facts")) answer.facts = readFacts(message.at("facts"));
  answer.locked = message.at("locked").get<bool>();
  for (const json& unit : message.at("states")) answer.states.push_back(readState(unit));
  answer.has_more = message.at("has_more").get<bool>();
  return answer;
}

}  // namespace

std::string questionJson(const UnitQuestion& question) {
  try {
    return std::visit([](const auto& each) { return jsonOf(each); }, question)
        .dump(-1, ' ', false, json::error_handler_t::strict);
  } catch (const json::exception&) {
    throw Error(ErrorCode::kBadConfig,
                "bytes that are not UTF-8, in a file of the job, in its path or in a setting, "
                "can't be sent to other hosts: write UTF-8");
  }
}

std::string answerJson(const UnitAnswer& answer) {
  json states = json::array();
  size_t room = kStatusesBytesMax;
  for (const UnitState& unit : answer.states) states.push_back(stateJson(unit, room));
  json message = {{"locked", answer.locked}, {"states", states}, {"has_more", answer.has_more}};
  if (answer.error)
    message["error"] = {{"code", std::string(errorCodeName(answer.error->code()))},
                        {"message", answer.error->message().substr(0, kProblemBytesMax)}};
  if (answer.facts) message["facts"] = factsJson(*answer.facts);
  return message.dump(-1, ' ', false, json::error_handler_t::replace);
}

UnitQuestion parseQuestion(std::string_view text) {
  return parsed(text, readQuestion);
}

UnitAnswer parseAnswer(std::string_view text) {
  return parsed(text, readAnswer);
}

}  // namespace dtf::launcher
