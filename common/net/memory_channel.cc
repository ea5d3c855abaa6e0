#include "common/net/memory_channel.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::net {

namespace {

// Connections waiting at the door; all but one are strangers.
constexpr int kBacklog = 8;

// The message sent with a descriptor.
struct Note {
  uint64_t key = 0;
  uint64_t bytes = 0;
};

constexpr std::string_view kNameBegin = "dtf-";
constexpr size_t kNameDigits = 32;

[[noreturn]] void failWith(const std::string& doing, int errno_value) {
  throw Error(ErrorCode::kUnavailable, "cannot " + doing + ": " + errnoText(errno_value));
}

// SOCK_SEQPACKET keeps message boundaries, and a descriptor stays with its note.
Fd unixSocket() {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) failWith("make a Unix socket", errno);
  return socket;
}

struct Name {
  sockaddr_un address{};
  socklen_t bytes = 0;
};

bool isDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

// Converts an abstract address, which begins with a zero byte and ends by its length. Rejects
// addresses that are no door's.
Name nameOf(const std::string& address) {
  Name name;
  name.address.sun_family = AF_UNIX;
  if (address.size() != kNameBegin.size() + kNameDigits || !address.starts_with(kNameBegin) ||
      !std::all_of(address.begin() + kNameBegin.size(), address.end(), isDigit))
    throw Error(ErrorCode::kBadData, "a peer sent an invalid address for shared memory");
  std::memcpy(name.address.sun_path + 1, address.data(), address.size());
  name.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address.size());
  return name;
}

void drawRandom(void* to, size_t bytes) {
  DTF_CHECK(::getrandom(to, bytes, 0) == static_cast<ssize_t>(bytes));
}

// A note, with room for one descriptor. Without CMSG_SPACE(): the kernel would put a second
// descriptor into its padding.
struct NoteMessage {
  NoteMessage() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = beside;
    header.msg_controllen = CMSG_LEN(sizeof(int));
  }
  NoteMessage(const NoteMessage&) = delete;
  NoteMessage& operator=(const NoteMessage&) = delete;

  Note note;
  iovec part{.iov_base = &note, .iov_len = sizeof note};
  alignas(cmsghdr) char beside[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
};

// Returns the descriptor of a message; invalid if none.
Fd descriptorOf(msghdr& message) {
  Fd fd;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    if (header->cmsg_len < CMSG_LEN(sizeof(int))) continue;
    int got = -1;
    std::memcpy(&got, CMSG_DATA(header), sizeof got);
    fd = Fd(got);
  }
  return fd;
}

}  // namespace

MemoryChannel MemoryChannel::connect(const std::string& address, const DoorSecret& secret) {
  const Name name = nameOf(address);
  MemoryChannel channel(unixSocket());
  const int fd = channel.socket_.get();
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&name.address), name.bytes) != 0)
    failWith("connect to a peer for shared memory", errno);
  if (::send(fd, secret.data(), sizeof secret, MSG_NOSIGNAL) != sizeof secret)
    failWith("send a peer the secret for shared memory", errno);
  return channel;
}

void MemoryChannel::give(const SharedMemory& memory) {
  NoteMessage message;
  message.note = {.key = memory.key(), .bytes = memory.bytes()};
  cmsghdr* header = CMSG_FIRSTHDR(&message.header);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = memory.descriptor();
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (::sendmsg(socket_.get(), &message.header, MSG_NOSIGNAL) != sizeof(Note))
    failWith("give memory to a peer", errno);
}

std::optional<GivenMemory> MemoryChannel::receive(size_t bytes_max) {
  NoteMessage message;
  const Note& note = message.note;
  const ssize_t received = ::recvmsg(socket_.get(), &message.header, MSG_CMSG_CLOEXEC);
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
  if (received < 0) failWith("receive memory from a peer", errno);
  if (received == 0) throw Error(ErrorCode::kUnavailable, "the peer that gave memory is gone");
  const Fd fd = descriptorOf(message.header);  // closed on any exception
  const bool is_cut = (message.header.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0;
  if (is_cut && !fd.valid() && received == sizeof note)
    throw Error(ErrorCode::kUnavailable,
                "no descriptor is left for the memory that a peer gave: raise `ulimit -n`");
  if (is_cut || received != sizeof note || note.key == 0 || note.bytes == 0)
    throw Error(ErrorCode::kBadData, "a peer gave memory with an invalid note");
  if (note.bytes > bytes_max)
    throw Error(ErrorCode::kBadData, fmt::format("a peer gave {} bytes of memory; the most is {}",
                                                 note.bytes, bytes_max));
  return GivenMemory{note.key, std::make_shared<const MappedMemory>(fd, note.bytes)};
}

MemoryDoor::MemoryDoor() : socket_(unixSocket()) {
  uint64_t random[2] = {};
  drawRandom(random, sizeof random);
  drawRandom(secret_.data(), sizeof secret_);
  address_ = fmt::format("dtf-{:016x}{:016x}", random[0], random[1]);
  const Name name = nameOf(address_);
  if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&name.address), name.bytes) != 0)
    failWith("bind a Unix socket", errno);
  if (::listen(socket_.get(), kBacklog) != 0) failWith("listen on a Unix socket", errno);
}

std::optional<MemoryChannel> MemoryDoor::take() {
  for (;;) {
    Fd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid() && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (!socket.valid()) failWith("accept a connection for shared memory", errno);
    DoorSecret said{};
    if (::recv(socket.get(), said.data(), sizeof said, 0) != sizeof said) continue;
    // Compares in constant time.
    if (((said[0] ^ secret_[0]) | (said[1] ^ secret_[1])) == 0)
      return MemoryChannel(std::move(socket));
  }
}

}  // namespace dtf::net
