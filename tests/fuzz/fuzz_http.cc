// The head of an HTTP request, as strangers send it to the port of metrics. Bytes behind a request
// do not change it, and half of an incomplete request is incomplete.

#include <string>

#include "common/net/http_message.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/reached.h"

namespace {

const dtf::fuzz::MustReach kMustReach{"request", "incomplete", "400", "405",
                                      "413",     "431",        "501", "505"};

bool isIncomplete(std::string_view text) {
  return std::holds_alternative<dtf::net::HttpIncomplete>(dtf::net::parseHttpRequest(text));
}

void checkRequest(const dtf::net::HttpRequest& request, std::string_view text) {
  FUZZ_CHECK(request.path.starts_with('/') && request.path.find('?') == std::string::npos);
  FUZZ_CHECK(request.host.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string::npos);
  // Bytes behind it change nothing.
  const auto more = dtf::net::parseHttpRequest(std::string(text) + "GET / HTTP/1.1\r\n\r\n");
  const auto* again = std::get_if<dtf::net::HttpRequest>(&more);
  FUZZ_CHECK(again != nullptr && again->path == request.path && again->host == request.host);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtf::net;
  const std::string_view text = dtf::fuzz::textOf(data, size);
  const HttpParsed parsed = parseHttpRequest(text);
  if (std::holds_alternative<HttpIncomplete>(parsed)) {
    ++dtf::fuzz::reached()["incomplete"];
    FUZZ_CHECK(size < kHttpHeadBytesMax);
    FUZZ_CHECK(isIncomplete(text.substr(0, size / 2)));
  } else if (const auto* request = std::get_if<HttpRequest>(&parsed)) {
    ++dtf::fuzz::reached()["request"];
    checkRequest(*request, text);
  } else {
    const auto& refusal = std::get<HttpRefusal>(parsed);
    ++dtf::fuzz::reached()[std::to_string(refusal.status)];
    FUZZ_CHECK(refusal.status >= 400 && refusal.status < 600 && !refusal.reason.empty());
    FUZZ_CHECK(httpText({refusal.status, refusal.reason}).find("Unknown") == std::string::npos);
  }
  return 0;
}
