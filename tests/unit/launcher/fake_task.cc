// Stands in for psd and workerd in the launcher's tests: runs the script in DTF_FAKE, command by
// command, separated by ';'. After the last one it exits with 0.
//   out TEXT, err TEXT     a line on stdout, on stderr
//   part TEXT              on stdout, without "\n"
//   flood N                N numbered lines on stdout
//   touch FILE             makes an empty file
//   await FILE             waits until it exists, 30 s at most
//   ready                  reports to the launcher that it is ready
//   notify JSON            sends the launcher that line
//   pause                  waits for a signal, for ever
//   ignore-term            ignores SIGTERM from now on
//   on-term N              exits with N on SIGTERM
//   fork                   a child in the same group that pauses
//   argv, fds, env NAME    print its arguments, descriptors, a variable
//   listening              prints whether DTF_LISTEN_FD listens
//   exit N, kill SIGNAL    end it
//   kill-once FILE         kills it with SIGKILL, unless FILE exists; makes it

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "common/base/json.h"
#include "common/base/notify.h"
#include "common/base/text.h"

namespace {

int term_exit_code = 0;

[[noreturn]] void pauseForEver() {
  for (;;) ::pause();
}

void awaitFile(const std::string& file) {
  for (int i = 0; i < 6000 && !std::filesystem::exists(file); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void showDescriptors() {
  DIR* folder = ::opendir("/proc/self/fd");
  std::vector<int> fds;
  while (const dirent* entry = ::readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd != ::dirfd(folder)) fds.push_back(fd);
  }
  ::closedir(folder);
  std::sort(fds.begin(), fds.end());
  std::string text = "fds";
  for (const int fd : fds) text += " " + std::to_string(fd);
  std::puts(text.c_str());
}

void showListening() {
  const char* fd = std::getenv("DTF_LISTEN_FD");
  int listening = 0;
  socklen_t size = sizeof listening;
  if (fd != nullptr) ::getsockopt(std::atoi(fd), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size);
  std::printf("listening %d\n", listening);
}

void run(const std::string& verb, const std::string& rest, char** argv) {
  if (verb == "out")
    std::puts(rest.c_str());
  else if (verb == "err")
    std::fprintf(stderr, "%s\n", rest.c_str());
  else if (verb == "part")
    std::fputs(rest.c_str(), stdout);
  else if (verb == "flood")
    for (int i = 0; i < std::atoi(rest.c_str()); ++i) std::printf("line %d of a flood\n", i);
  else if (verb == "touch")
    std::ofstream(rest).flush();
  else if (verb == "ready")
    dtf::notify({{"event", "ready"}});
  else if (verb == "notify")
    dtf::notify(dtf::Json::parse(rest));
  else if (verb == "await")
    awaitFile(rest);
  else if (verb == "pause")
    pauseForEver();
  else if (verb == "ignore-term")
    std::signal(SIGTERM, SIG_IGN);
  else if (verb == "on-term") {
    term_exit_code = std::atoi(rest.c_str());
    std::signal(SIGTERM, [](int) { ::_exit(term_exit_code); });
  } else if (verb == "fork") {
    if (::fork() == 0) pauseForEver();
  } else if (verb == "argv") {
    for (char** word = argv; *word != nullptr; ++word) std::puts(*word);
  } else if (verb == "fds")
    showDescriptors();
  else if (verb == "env")
    std::printf("%s=%s\n", rest.c_str(), std::getenv(rest.c_str()));
  else if (verb == "listening")
    showListening();
  else if (verb == "exit")
    std::exit(std::atoi(rest.c_str()));
  else if (verb == "kill-once") {
    if (std::filesystem::exists(rest)) return;
    std::ofstream(rest).flush();
    std::raise(SIGKILL);
  } else if (verb == "kill") {
    std::signal(std::atoi(rest.c_str()), SIG_DFL);  // a sanitizer would catch it
    std::raise(std::atoi(rest.c_str()));
  } else
    std::abort();
  std::fflush(stdout);
}

}  // namespace

int main(int, char** argv) {
  const char* script = std::getenv("DTF_FAKE");
  for (const std::string& command : dtf::split(script == nullptr ? "" : script, ';')) {
    const size_t space = command.find(' ');
    if (!command.empty())
      run(command.substr(0, space), space == std::string::npos ? "" : command.substr(space + 1),
          argv);
  }
  return 0;
}
