#include "launcher/ssh/messages.h"

#include "common/base/text.h"

namespace dtf::launcher {

namespace {
constexpr std::string_view kGreetingStart = "dtf-agent ";
constexpr std::string_view kProtocol = "4";
constexpr size_t kGreetingShown = 80;
}  // namespace

bool isProgram(std::string_view name) {
  return name == "psd" || name == "workerd" || name == kGpuPlugin;
}

std::string agentGreeting() {
  return std::string(kGreetingStart) + std::string(kProtocol) + " " + DTF_VERSION;
}

std::string wrongGreeting(std::string_view greeting) {
  if (greeting == agentGreeting()) return "";
  if (!greeting.starts_with(kGreetingStart))
    return "it prints '" + printable(greeting.substr(0, kGreetingShown)) +
           "' before dtf-agent starts: its shell's start files (~/.bashrc) must print nothing for "
           "ssh";
  const std::vector<std::string> words = split(greeting, ' ');
  if (words.back() == DTF_VERSION)
    return "it has another build of dtf " DTF_VERSION ": install the same programs on all hosts";
  return "it has dtf " + printable(words.back().substr(0, kGreetingShown)) +
         ", and this host has dtf " + DTF_VERSION +
         ": install one version on all hosts, or name the folder of this version there with "
         "launch.binary_dir";
}

}  // namespace dtf::launcher
