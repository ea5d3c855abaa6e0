#include "common/net/tls_session.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/net/certificate.h"
#include "common/net/tls_keys.h"

namespace dtf::net {

namespace {

constexpr const char* kClosedEarly =
    "it closed the connection in the TLS handshake; has it keys? Its log says more";
constexpr std::string_view kHowToRenew = "dtf-launch keys renew makes new ones";

TlsSession& sessionOf(BIO* bio) {
  return *static_cast<TlsSession*>(BIO_get_data(bio));
}

int bioWrite(BIO* bio, const char* bytes, size_t count, size_t* written) {
  BIO_clear_retry_flags(bio);
  *written = sessionOf(bio).keep(bytes, count);
  if (*written > 0) return 1;
  BIO_set_retry_write(bio);
  return 0;
}

int bioRead(BIO* bio, char* to, size_t room, size_t* got) {
  BIO_clear_retry_flags(bio);
  const long received = sessionOf(bio).receive(to, room);
  *got = received > 0 ? static_cast<size_t>(received) : 0;
  if (received > 0) return 1;
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    BIO_set_retry_read(bio);
  return 0;
}

long bioControl(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// OpenSSL's own socket BIO would raise SIGPIPE and send each record by itself.
const BIO_METHOD* socketMethod() {
  static const BIO_METHOD* const kMethod = [] {
    BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "dtf socket");
    DTF_CHECK(method != nullptr);
    BIO_meth_set_write_ex(method, bioWrite);
    BIO_meth_set_read_ex(method, bioRead);
    BIO_meth_set_ctrl(method, bioControl);
    return method;
  }();
  return kMethod;
}

int onCertificate(int ok, X509_STORE_CTX* store) {
  if (ok == 1) return 1;
  const auto* ssl = static_cast<const SSL*>(
      X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  static_cast<TlsSession*>(SSL_get_app_data(ssl))
      ->noteCertificate(X509_STORE_CTX_get_error(store), X509_STORE_CTX_get_current_cert(store));
  return 0;
}

}  // namespace

TlsSession::TlsSession(ssl_ctx_st* context, int fd, Side side, std::string job, std::string wanted,
                       std::filesystem::path folder)
    : fd_(fd),
      side_(side),
      job_(std::move(job)),
      wanted_(std::move(wanted)),
      folder_(std::move(folder)),
      ssl_(SSL_new(context)) {
  BIO* bio = BIO_new(socketMethod());
  DTF_CHECK(ssl_ != nullptr && bio != nullptr && fd_ >= 0);
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_app_data(ssl_, this);
  const int refuse_none = side_ == Side::kOpenServer ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  SSL_set_verify(ssl_, SSL_VERIFY_PEER | refuse_none, onCertificate);
  if (side_ == Side::kClient)
    SSL_set_connect_state(ssl_);
  else
    SSL_set_accept_state(ssl_);
}

TlsSession::~TlsSession() {
  SSL_free(ssl_);
}

size_t TlsSession::keep(const char* bytes, size_t count) {
  // A record that does not fit is sent in pieces: OpenSSL retries the rest.
  const size_t room = kOutBytes - std::min(kOutBytes, unsent());
  const size_t kept = std::min(room, count);
  // Sent bytes are dropped when they would make the buffer twice as large as the waiting ones may
  // be.
  if (out_at_ > 0 && (out_at_ == out_.size() || out_.size() + kept > 2 * kOutBytes)) {
    out_.erase(out_.begin(), out_.begin() + static_cast<ptrdiff_t>(out_at_));
    out_at_ = 0;
  }
  // A vector's own growth could double the memory.
  if (const size_t due = out_.size() + kept; due > out_.capacity())
    out_.reserve(std::min(2 * kOutBytes, std::max(due, 2 * out_.capacity())));
  out_.insert(out_.end(), bytes, bytes + kept);
  return kept;
}

long TlsSession::receive(char* to, size_t room) {
  const ssize_t received = ::recv(fd_, to, room, MSG_DONTWAIT);
  if (received == 0) at_end_ = true;
  return received;
}

TlsSession::Io TlsSession::flush() {
  while (unsent() > 0) {
    const ssize_t sent = ::send(fd_, out_.data() + out_at_, unsent(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return Io::kWantWrite;
      return lose(errnoText(errno));
    }
    out_at_ += static_cast<size_t>(sent);
  }
  out_.clear();
  out_at_ = 0;
  return Io::kDone;
}

TlsSession::Io TlsSession::handshake() {
  DTF_CHECK(!established_);
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  const int problem = errno;
  const Io flushed = flush();  // sends an alert, too
  errno = problem;
  if (result != 1) {
    const Io io = after(result);
    return io == Io::kWantRead && flushed == Io::kWantWrite ? Io::kWantWrite : io;
  }
  if (flushed != Io::kDone) return flushed;
  if (!checkPeer()) return Io::kFailed;
  established_ = true;
  // From now on many records may arrive at once; before the handshake a peer doesn't get such a
  // large buffer.
  SSL_set_default_read_buffer_len(ssl_, kInBytes);
  return Io::kDone;
}

TlsSession::Io TlsSession::read(void* to, size_t room, size_t& got) {
  DTF_CHECK(established_ && room > 0);
  ERR_clear_error();
  const int result = SSL_read_ex(ssl_, to, room, &got);
  if (result == 1) return Io::kDone;
  const Io io = after(result);
  if (unsent() > 0 && io == Io::kWantRead) (void)flush();  // the reply to a new key
  return io;
}

TlsSession::Io TlsSession::write(const void* from, size_t bytes, size_t& put) {
  DTF_CHECK(established_ && bytes > 0);
  ERR_clear_error();
  const int result = SSL_write_ex(ssl_, from, bytes, &put);
  if (result != 1) return after(result);
  countRecords(put);
  return Io::kDone;
}

void TlsSession::sayEnd() {
  if (!established_ || !failure_.empty()) return;
  ERR_clear_error();
  (void)SSL_shutdown(ssl_);
  (void)flush();
  ERR_clear_error();
}

// Changes the key between two records. The message about it is sent before the next record.
void TlsSession::countRecords(size_t bytes) {
  records_ += (bytes + SSL3_RT_MAX_PLAIN_LENGTH - 1) / SSL3_RT_MAX_PLAIN_LENGTH;
  if (records_ < records_per_key_) return;
  if (SSL_key_update(ssl_, SSL_KEY_UPDATE_REQUESTED) != 1) return ERR_clear_error();
  records_ = 0;
  ++key_updates_;
}

// Translates the result of OpenSSL's last call.
TlsSession::Io TlsSession::after(int result) {
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      return Io::kWantRead;
    case SSL_ERROR_WANT_WRITE:
      return Io::kWantWrite;
    case SSL_ERROR_ZERO_RETURN:
      return established_ ? Io::kEnd : lose(kClosedEarly);
    case SSL_ERROR_SYSCALL:
      if (at_end_ && established_) return Io::kEnd;
      return lose(!established_ && (at_end_ || errno == ECONNRESET || errno == EPIPE)
                      ? kClosedEarly
                      : errnoText(errno));
    default:
      break;
  }
  if (!problem_.empty()) return fail(problem_);
  if (at_end_ && !established_) return lose(kClosedEarly);
  const unsigned long code = ERR_peek_error();
  const std::string said = alertText(ERR_GET_REASON(code));
  return fail(said.empty() ? "TLS: " + openSslText() : said);
}

TlsSession::Io TlsSession::lose(std::string reason) {
  const Io failed = fail(std::move(reason));
  lost_ = true;
  return failed;
}

TlsSession::Io TlsSession::fail(std::string reason) {
  failure_ = std::move(reason);  // an alert before a broken pipe explains more
  lost_ = false;
  ERR_clear_error();
  return Io::kFailed;
}

// Returns the text of an alert: the peer's reason for rejecting this side's certificate, or a
// failure of TLS.
std::string TlsSession::alertText(int reason) const {
  switch (reason) {
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return expiredText();
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "it says that this side's certificate is signed by another job's CA";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      return "it refuses this side's certificate";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return "it wants a certificate of the job, and this side has shown none";
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return "it has shown no certificate of the job";
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      return "it does not speak TLS 1.3";
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
      return "it does not speak TLS; has it keys?";
    default:
      return {};
  }
}

// The alert does not tell which of the two certificates has expired.
std::string TlsSession::expiredText() const {
  const X509* own = SSL_get_certificate(ssl_);
  if (own != nullptr && hasExpired(*own))
    return fmt::format("it says that this side's certificate has expired; {}", kHowToRenew);
  return fmt::format(
      "it says that this side's certificate or the CA's has expired: this side's ends on {}, so "
      "look at {} there, and at the hosts' clocks; dtf-launch keys show says when each ends",
      own == nullptr ? "an unknown date" : endOf(*own), kAuthorityFile);
}

void TlsSession::noteCertificate(int problem, const x509_st* certificate) {
  if (!problem_.empty()) return;  // the first one is the reason
  if (certificate == nullptr) {
    problem_ = fmt::format("its certificate is not accepted: {}",
                           X509_verify_cert_error_string(static_cast<long>(problem)));
    return;
  }
  const std::optional<CertifiedName> name = nameOf(*certificate);
  const std::string whose =
      name ? fmt::format("its certificate ({} of job '{}')", name->task, name->job)
           : std::string("its certificate");
  switch (problem) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      problem_ = name && name->task == kAuthorityTask
                     ? expiredAuthorityText(*certificate, folder_ / kAuthorityFile)
                     : fmt::format("{} expired on {}: {} in its folder of keys; {}", whose,
                                   endOf(*certificate), name ? keyFileOf(name->task) : "a file",
                                   kHowToRenew);
      return;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      problem_ = fmt::format("{} is not valid before {}: compare the hosts' clocks", whose,
                             startOf(*certificate));
      return;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      problem_ = whose + " is signed by itself, not by this job's CA";
      return;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      problem_ = whose + " is signed by another job's CA";
      return;
    default:
      problem_ = fmt::format("{} is not accepted: {}", whose,
                             X509_verify_cert_error_string(static_cast<long>(problem)));
  }
}

// OpenSSL has verified the signature; this checks the name.
bool TlsSession::checkPeer() {
  const X509* certificate = SSL_get0_peer_certificate(ssl_);
  if (certificate == nullptr && side_ == Side::kOpenServer) return true;
  const std::optional<CertifiedName> name =
      certificate == nullptr ? std::nullopt : nameOf(*certificate);
  if (!name) {
    fail("its certificate names no task of a job");
  } else if (name->job != job_) {
    fail(fmt::format("its certificate is for job '{}', this one is '{}'", name->job, job_));
  } else if (!wanted_.empty() && name->task != wanted_) {
    fail(fmt::format("its certificate is for {}, {} is wanted", name->task, wanted_));
  } else {
    peer_ = name->task;
  }
  return failure_.empty();
}

}  // namespace dtf::net
