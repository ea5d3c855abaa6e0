#pragma once

// TLS 1.3 on one connected socket. Who it is with is checked in both directions; see tls_keys.h.

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

// The records of one connection. What is to be sent is encrypted at once and kept until the socket
// takes it, so that many records leave in one call.
// Owns: OpenSSL's state, encrypted bytes that have not left.
// Borrows: the socket's descriptor, which must not block, until it is destroyed; it may change
// loops meanwhile.
// Threads: one at a time.
// Blocks: never.
// Errors: kFailed, then failure() says why; after it there is nothing but to close.
class TlsSession {
 public:
  // kOpenServer: asks for a certificate, but takes who shows none, whose peer() is empty then.
  enum class Side : uint8_t { kClient, kServer, kOpenServer };
  // kWantRead, kWantWrite: again when the socket is readable, or writable.
  enum class Io : uint8_t { kDone, kWantRead, kWantWrite, kEnd, kFailed };

  // `wanted`: the task that the peer's certificate must name; empty: any of the job. `job`: of
  // both.
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
  // kDone: `put` bytes, at least one, were taken, and need not be given again. kWantWrite: none,
  // what was taken before must leave first.
  Io write(const void* from, size_t bytes, size_t& put);
  // Gives the socket what was taken. kDone: all of it.
  Io flush();
  // Says that nothing follows, as far as the socket takes it.
  void sayEnd();
  size_t unsent() const { return out_.size() - out_at_; }
  // What the bytes that wait take of memory, with those that have left.
  size_t bufferBytes() const { return out_.capacity(); }

  // After so many records under one key this side asks for new ones, of both directions. Of AES-GCM
  // 2^24.5 are safe (RFC 8446, section 5.5).
  static constexpr uint64_t kRecordsPerKey = uint64_t{1} << 24;
  void setRecordsPerKey(uint64_t records) { records_per_key_ = records; }  // for tests
  uint64_t keyUpdates() const { return key_updates_; }                     // that this side began

  // The task that the peer's certificate names, after the handshake: "worker/1".
  const std::string& peer() const { return peer_; }
  // In words, of the peer: "its certificate expired on 2027-01-01 12:00 UTC".
  const std::string& failure() const { return failure_; }
  // Whether that is the connection's end, as a peer that dies makes it, not a refusal.
  bool lost() const { return lost_; }

  // For OpenSSL's call-backs.
  void noteCertificate(int problem, const x509_st* certificate);
  size_t keep(const char* bytes, size_t count);  // of encrypted ones; 0: the socket must take some
  long receive(char* to, size_t room);           // as recv()

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
  uint64_t records_ = 0;  // sent under the key in use
  uint64_t records_per_key_ = kRecordsPerKey;
  uint64_t key_updates_ = 0;
  bool established_ = false;
  bool at_end_ = false;
  std::string problem_;  // of the peer's certificate, as OpenSSL's check has found it
  std::string peer_;
  std::string failure_;
  bool lost_ = false;
};

}  // namespace dtf::net
