#pragma once

// TLS 1.3 on one connected socket. Both sides verify each other; see tls_keys.h.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

// OpenSSL's own types, without its headers.
struct bio_st;
struct ssl_ctx_st;
struct ssl_st;
struct x509_st;

namespace dtf::net {

// The records of one connection. Bytes to send are encrypted at once and kept until the socket
// takes them, so that many records are sent in one call.
// Owns: OpenSSL's state, encrypted bytes that have not been sent.
// Borrows: the socket's non-blocking descriptor, until it is destroyed; the socket may change loops
// meanwhile.
// Threads: one at a time.
// Blocks: never.
// Errors: kFailed, with the reason in failure(); after it the session can only be closed.
class TlsSession {
 public:
  // kOpenServer: requests a certificate, but also accepts clients without one, with an empty
  // peer().
  enum class Side : uint8_t { kClient, kServer, kOpenServer };
  // kWantRead, kWantWrite: call again when the socket is readable, or writable.
  enum class Io : uint8_t { kDone, kWantRead, kWantWrite, kEnd, kFailed };

  // `wanted`: the task that the peer's certificate must name; empty: any of the job. `job`: of both
  // sides.
  // `folder`: of this side's keys, for messages.
  TlsSession(ssl_ctx_st* context, int fd, Side side, std::string job, std::string wanted,
             std::filesystem::path folder);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  Io handshake();
  bool established() const { return established_; }
  // kDone: `got` bytes, at least one. kEnd: the peer has closed.
  Io read(void* to, size_t room, size_t& got);
  // kDone: `put` bytes, at least one, were taken and must not be passed again. kWantWrite: none
  // were taken; earlier ones must be sent first.
  Io write(const void* from, size_t bytes, size_t& put);
  // Passes taken bytes to the socket. kDone: all of them.
  Io flush();
  // Announces the end to the peer, as far as the socket takes it.
  void sayEnd();
  size_t unsent() const { return out_.size() - out_at_; }
  // Returns the memory of the buffer: waiting bytes and sent ones.
  size_t bufferBytes() const { return out_.capacity(); }

  // After so many records with one key this side requests new keys for both directions. AES-GCM is
  // safe for 2^24.5 records (RFC 8446, section 5.5).
  static constexpr uint64_t kRecordsPerKey = uint64_t{1} << 24;
  void setRecordsPerKey(uint64_t records) { records_per_key_ = records; }  // for tests
  uint64_t keyUpdates() const { return key_updates_; }                     // begun by this side

  // Returns the task in the peer's certificate, after the handshake: "worker/1".
  const std::string& peer() const { return peer_; }
  // Returns a sentence about the peer: "its certificate expired on 2027-01-01 12:00 UTC".
  const std::string& failure() const { return failure_; }
  // Returns whether the failure is a lost connection, as from a peer that dies, not a rejection.
  bool lost() const { return lost_; }

  // Called by OpenSSL.
  void noteCertificate(int problem, const x509_st* certificate);
  // encrypted bytes; returns 0 if the socket must take some first
  size_t keep(const char* bytes, size_t count);
  long receive(char* to, size_t room);  // like recv()

 private:
  Io after(int result);
  void countRecords(size_t bytes);
  std::string expiredText() const;
  Io fail(std::string reason);
  Io lose(std::string reason);  // the connection
  std::string alertText(int reason) const;
  bool checkPeer();

  static constexpr size_t kOutBytes = 256 << 10;
  static constexpr size_t kInBytes = 128 << 10;

  const int fd_;
  const Side side_;
  const std::string job_;
  const std::string wanted_;
  const std::filesystem::path folder_;
  ssl_st* ssl_;
  std::vector<char> out_;
  size_t out_at_ = 0;
  uint64_t records_ = 0;  // sent with the current key
  uint64_t records_per_key_ = kRecordsPerKey;
  uint64_t key_updates_ = 0;
  bool established_ = false;
  bool at_end_ = false;
  std::string problem_;  // the problem with the peer's certificate that OpenSSL found
  std::string peer_;
  std::string failure_;
  bool lost_ = false;
};

}  // namespace dtf::net
