#include "cli/json_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/shown.h"
#include "cli/status_exit.h"

namespace hawser::cli {

std::string exit_code_help() {
  std::string text = "Exit codes: 0 good, 2 wrong usage, and 10 + the status code:";
  for (int code = 1; code <= static_cast<int>(Code::kFailed); ++code) {
    text += fmt::format("{}{} {}", code == 1 ? " " : ", ", kExitStatusBase + code, to_string(static_cast<Code>(code)));
  }
  return text + ".";
}

Json document(std::string_view command) {
  std::string name(command);
  std::ranges::replace(name, ' ', '_');
  Json json;
  json["schema"] = fmt::format("hawser.{}/1", name);
  return json;
}

Json to_json(const Status& status) {
  if (status.ok()) return nullptr;
  Json json;
  json["code"] = to_string(status.code());
  json["number"] = static_cast<int>(status.code());
  json["message"] = status.message();
  json["scope"] = to_string(status.scope());
  if (!status.peer().empty()) json["peer"] = status.peer();
  if (!status.device().empty()) json["device"] = status.device();
  if (!status.advice().empty()) json["advice"] = status.advice();
  if (status.bytes_done() > 0) json["bytes_done"] = status.bytes_done();
  if (status.elapsed() > Duration::zero()) json["elapsed_ns"] = status.elapsed().count();
  if (const Status cause = status.cause(); !cause.ok()) json["because"] = to_json(cause);
  return json;
}

/// From a server, and meant for a terminal.
Status status_from(const Json& json) {
  constexpr std::size_t kTextMax = 4096;
  if (json.is_null()) return Status();
  const int number = json.value("number", static_cast<int>(Code::kFailed));
  const bool known = number > 0 && number <= static_cast<int>(Code::kFailed);
  Status status(known ? static_cast<Code>(number) : Code::kFailed, base::shown(json.value("message", ""), kTextMax));
  if (json.contains("peer")) status = status.with_peer(base::shown(json.value("peer", "")));
  if (json.contains("advice")) status = status.with_advice(base::shown(json.value("advice", ""), kTextMax));
  if (json.contains("because")) status = status.because(status_from(json.at("because")));
  return status;
}

namespace {
// Names and messages may hold bytes that are no UTF-8; they are replaced, never thrown on.
std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}
}  // namespace

void print(const Json& json) { fmt::print("{}\n", text_of(json, 2)); }

void print_line(const Json& json) {
  fmt::print("{}\n", text_of(json, -1));
  std::fflush(stdout);
}

int fail(std::string_view command, bool as_json, const Status& status) {
  if (as_json) {
    Json json = document(command);
    json["ok"] = false;
    json["error"] = to_json(status);
    print(json);
    std::fflush(stdout);
  }
  fmt::print(stderr, "hawser {}: {}\n", command, status.to_string());
  return exit_code(status);
}

}  // namespace hawser::cli
