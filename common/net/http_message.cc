#include "common/net/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

// After <utility>, as asio.h has it.
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

#include "common/base/check.h"

namespace dtf::net {

namespace http = boost::beast::http;

namespace {

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

HttpRefusal refusalOf(const boost::beast::error_code& error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return {431, fmt::format("the request's head is longer than {} bytes", kHttpHeadBytesMax)};
  if (error == http::error::body_limit) return {413, "a request with a body"};
  if (error == http::error::bad_version) return {505, "only HTTP/1.0 and HTTP/1.1 are supported"};
  return {400, "no HTTP request: " + error.message()};
}

// Returns the host of "Localhost:9400" and "[::1]:9400", without port, in lower case.
std::string hostOf(std::string_view field) {
  const bool is_bracketed = field.starts_with('[');
  std::string host(field.substr(is_bracketed ? 1 : 0));
  host.resize(std::min(host.find(is_bracketed ? ']' : ':'), host.size()));
  for (char& c : host)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return host;
}

bool hasBody(const http::request_parser<http::empty_body>& parser) {
  return parser.chunked() || parser.content_length().value_or(0) > 0;
}

}  // namespace

std::string originHost(std::string_view origin) {
  std::string_view rest;
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme)) rest = origin.substr(scheme.size());
  const bool is_plain = std::all_of(rest.begin(), rest.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._:[]").find(c) != std::string_view::npos;
  });
  return is_plain ? hostOf(rest) : "";
}

HttpParsed parseHttpRequest(std::string_view received) {
  if (received.empty()) return HttpIncomplete{};
  // A method is an upper-case word. A client with another protocol is rejected without waiting for
  // the deadline.
  if (received[0] < 'A' || received[0] > 'Z') return HttpRefusal{400, "no HTTP request"};
  http::request_parser<http::empty_body> parser;
  parser.header_limit(kHttpHeadBytesMax);
  parser.skip(true);  // bodies aren't read
  boost::beast::error_code error;
  parser.put(boost::asio::buffer(received.data(), received.size()), error);
  if (error == http::error::need_more) {
    if (received.size() < kHttpHeadBytesMax) return HttpIncomplete{};
    error = http::error::header_limit;
  }
  if (error) return refusalOf(error);
  DTF_CHECK(parser.is_header_done());
  const auto& request = parser.get();
  const bool is_head = request.method() == http::verb::head;
  if (request.method() == http::verb::unknown)
    return HttpRefusal{501, "an unknown method: only GET is answered"};
  if (request.method() != http::verb::get) return HttpRefusal{405, "only GET is answered", is_head};
  if (hasBody(parser)) return HttpRefusal{413, "a request with a body"};
  const auto host = request.find(http::field::host);
  if (request.version() >= 11 && host == request.end())
    return HttpRefusal{400, "an HTTP/1.1 request without a Host header"};
  const std::string_view target = view(request.target());
  if (!target.starts_with('/')) return HttpRefusal{400, "the request's target is not a path"};
  const auto origin = request.find(http::field::origin);
  return HttpRequest{std::string(target.substr(0, target.find('?'))),
                     host == request.end() ? "" : hostOf(view(host->value())),
                     origin == request.end() ? "" : std::string(view(origin->value()))};
}

std::string httpText(const HttpResponse& response, bool with_body) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\n"
      "Content-Type: {}\r\n"
      "Content-Length: {}\r\n"
      "Cache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\n"
      "{}{}{}"
      "Connection: close\r\n\r\n{}",
      response.status,
      view(http::obsolete_reason(http::int_to_status(static_cast<unsigned>(response.status)))),
      response.content_type, response.body.size(), response.status == 405 ? "Allow: GET\r\n" : "",
      response.policy.empty() ? ""
                              : fmt::format("Content-Security-Policy: {}\r\n", response.policy),
      response.readable_from.empty()
          ? ""
          : fmt::format(
                "Access-Control-Allow-Origin: {}\r\nAccess-Control-Allow-Credentials: true\r\n",
                response.readable_from),
      with_body ? response.body : "");
}

}  // namespace dtf::net
