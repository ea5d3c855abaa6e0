// Bytes of a stranger at a port of a task with keys, where TLS's handshake is expected. Without a
// key of the job nothing passes, and the answer is bounded.

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/net/key_folder.h"
#include "common/net/tls_keys.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/reached.h"

namespace {

using dtf::net::TlsSession;

const dtf::fuzz::MustReach kMustReach{"answered", "waits", "refused"};

// Hello, certificate, the request for the peer's and the end of it, or alerts.
constexpr size_t kAnswerBytesMax = 8 << 10;
constexpr size_t kInputBytesMax = 64 << 10;  // as many as a socket takes at once

// Keys of a job of this process's own.
struct Job {
  std::filesystem::path folder;
  std::unique_ptr<dtf::net::TlsKeys> keys;
  Job() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dtf-fuzz-XXXXXX").string();
    FUZZ_CHECK(::mkdtemp(pattern.data()) != nullptr);
    folder = pattern;
    dtf::net::KeyFolder::create(folder, "fuzz", {}).issue("ps/0", "", {});
    keys = std::make_unique<dtf::net::TlsKeys>(folder, "ps/0");
  }
  ~Job() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
};

size_t answerBytes(int fd) {
  std::array<char, 2 * kAnswerBytesMax> bytes;
  const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
  return got < 0 ? 0 : static_cast<size_t>(got);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Job job;
  if (size > kInputBytesMax) return 0;
  int ends[2];
  FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  const dtf::Fd server_end(ends[0]), stranger(ends[1]);
  const std::unique_ptr<TlsSession> server = job.keys->accept(server_end.get());
  // In two pieces: the first one may end anywhere.
  const size_t cut = size / 2;
  TlsSession::Io io = TlsSession::Io::kWantRead;
  for (const auto& [from, to] : {std::pair{size_t{0}, cut}, std::pair{cut, size}}) {
    if (to > from)
      FUZZ_CHECK(::send(stranger.get(), data + from, to - from, MSG_NOSIGNAL) ==
                 static_cast<ssize_t>(to - from));
    if (io == TlsSession::Io::kWantRead) io = server->handshake();
  }
  FUZZ_CHECK(io != TlsSession::Io::kDone && server->peer().empty());
  const size_t answered = answerBytes(stranger.get());
  FUZZ_CHECK(answered <= kAnswerBytesMax);
  if (io == TlsSession::Io::kFailed) {
    FUZZ_CHECK(!server->failure().empty());
    ++dtf::fuzz::reached()["refused"];
  } else {
    ++dtf::fuzz::reached()[answered > 100 ? "answered" : "waits"];
  }
  return 0;
}
