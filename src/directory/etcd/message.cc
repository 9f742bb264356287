#include "directory/etcd/message.h"

#include <sodium.h>

#include <charconv>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::directory::etcd {
namespace {

using Json = nlohmann::json;

/// Answers of etcd nest 6 deep.
constexpr int kDepthMax = 16;
constexpr std::size_t kReasonMax = 512;

std::string to_base64(std::string_view bytes) {
  constexpr int kVariant = sodium_base64_VARIANT_ORIGINAL;
  std::string text(sodium_base64_encoded_len(bytes.size(), kVariant), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    kVariant);
  text.pop_back();  // Its final zero.
  return text;
}

bool from_base64(const std::string& text, std::string& bytes) {
  bytes.resize(text.size() / 4 * 3 + 3);
  std::size_t size = 0;
  const char* end = nullptr;
  const int refused = sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                                        text.size(), nullptr, &size, &end, sodium_base64_VARIANT_ORIGINAL);
  if (refused != 0 || end != text.data() + text.size()) return false;
  bytes.resize(size);
  return true;
}

Status corrupt(std::string_view what) {
  return Status(Code::kCorrupt, base::format("etcd: an answer is not as its version 3 gives it: {}", what))
      .with_advice("check that the address is that of an etcd of version 3.4 or later");
}

Result<Json> parse(std::string_view text) {
  bool is_too_deep = false;
  const Json::parser_callback_t look = [&](int depth, Json::parse_event_t, Json&) {
    is_too_deep = is_too_deep || depth > kDepthMax;
    return depth <= kDepthMax;
  };
  Json json = Json::parse(text.begin(), text.end(), look, /*allow_exceptions=*/false);
  if (is_too_deep) return corrupt("it nests too deep");
  if (!json.is_object()) return corrupt("it is no JSON object");
  return json;
}

/// Reads fields of one object; the first that is not of its form sticks.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object), is_good_(object.is_object()) {}
  bool is_good() const { return is_good_; }

  /// Null when it is left out.
  const Json* find(const char* name) {
    if (!is_good_) return nullptr;
    const auto at = object_.find(name);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }
  template <typename T>
  void number(const char* name, T& value) {
    const Json* field = find(name);
    if (field == nullptr) return;
    if (const auto* text = field->get_ptr<const std::string*>()) {
      const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
      is_good_ = is_good_ && error == std::errc() && end == text->data() + text->size();
    } else if (field->is_number_unsigned() && field->get<std::uint64_t>() <= INT64_MAX) {
      value = static_cast<T>(field->get<std::uint64_t>());
    } else {
      is_good_ = false;
    }
  }
  void flag(const char* name, bool& value) {
    const Json* field = find(name);
    if (field == nullptr) return;
    is_good_ = is_good_ && field->is_boolean();
    if (is_good_) value = field->get<bool>();
  }
  void text(const char* name, std::string& value) {
    const Json* field = find(name);
    if (field == nullptr) return;
    const auto* found = field->get_ptr<const std::string*>();
    is_good_ = is_good_ && found != nullptr;
    if (found != nullptr) value = *found;
  }
  void bytes(const char* name, std::string& value) {
    const Json* field = find(name);
    if (field == nullptr) return;
    const auto* found = field->get_ptr<const std::string*>();
    is_good_ = is_good_ && found != nullptr && from_base64(*found, value);
  }
  template <typename Read>
  void each(const char* name, Read read) {
    const Json* field = find(name);
    if (field == nullptr) return;
    is_good_ = is_good_ && field->is_array();
    for (std::size_t i = 0; is_good_ && i < field->size(); ++i) is_good_ = read((*field)[i]);
  }
  template <typename Read>
  void object(const char* name, Read read) {
    if (const Json* field = find(name)) is_good_ = is_good_ && read(*field);
  }

 private:
  const Json& object_;
  bool is_good_;
};

bool read_header(const Json& json, Header& header) {
  Fields fields(json);
  fields.number("cluster_id", header.cluster_id);
  fields.number("revision", header.revision);
  fields.number("raft_term", header.term);
  return fields.is_good();
}

bool read_entry(const Json& json, KeyValue& entry) {
  Fields fields(json);
  fields.bytes("key", entry.key);
  fields.bytes("value", entry.value);
  fields.number("mod_revision", entry.revision);
  fields.number("lease", entry.lease);
  return fields.is_good();
}

bool read_range(const Json& json, RangeAnswer& answer) {
  Fields fields(json);
  fields.object("header", [&](const Json& header) { return read_header(header, answer.header); });
  fields.each("kvs", [&](const Json& entry) { return read_entry(entry, answer.entries.emplace_back()); });
  fields.flag("more", answer.has_more);
  return fields.is_good();
}

bool read_event(const Json& json, WatchEvent& event) {
  Fields fields(json);
  std::string type = "PUT";
  fields.text("type", type);
  fields.object("kv", [&](const Json& entry) { return read_entry(entry, event.entry); });
  event.is_erased = type == "DELETE";
  return fields.is_good() && (event.is_erased || type == "PUT");
}

Json compare(std::string_view key, const char* target, const char* field, std::int64_t value) {
  return {{"key", to_base64(key)}, {"target", target}, {"result", "EQUAL"}, {field, std::to_string(value)}};
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string end_of_prefix(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  if (end.empty()) return std::string(1, '\0');  // etcd's word for: to the last key.
  end.back() = static_cast<char>(end.back() + 1);
  return end;
}

std::string encode_put(const PutRequest& request) {
  Json put = {{"key", to_base64(request.key)}, {"value", to_base64(request.value)}};
  if (request.lease != 0) put["lease"] = std::to_string(request.lease);
  Json compares = Json::array();
  if (request.only_new) compares.push_back(compare(request.key, "CREATE", "create_revision", 0));
  if (request.if_revision) compares.push_back(compare(request.key, "MOD", "mod_revision", *request.if_revision));
  const Json range = {{"key", to_base64(request.key)}};
  return dump({{"compare", compares},
               {"success", Json::array({{{"request_put", put}}})},
               {"failure", Json::array({{{"request_range", range}}})}});
}

std::string encode_range(const RangeRequest& request) {
  // No key is empty in etcd: the range of all begins with a zero byte.
  Json json = {{"key", to_base64(request.key.empty() ? std::string_view("\0", 1) : request.key)}};
  if (!request.end.empty()) json["range_end"] = to_base64(request.end);
  if (request.limit != 0) json["limit"] = std::to_string(request.limit);
  if (request.revision != 0) json["revision"] = std::to_string(request.revision);
  if (request.keys_only) json["keys_only"] = true;
  return dump(json);
}

std::string encode_erase(std::string_view key) { return dump({{"key", to_base64(key)}}); }

std::string encode_erase_if(std::string_view key, std::int64_t revision) {
  const Json named = {{"key", to_base64(key)}};
  return dump({{"compare", Json::array({compare(key, "MOD", "mod_revision", revision)})},
               {"success", Json::array({{{"request_delete_range", named}}})},
               {"failure", Json::array({{{"request_range", named}}})}});
}

std::string encode_grant(std::int64_t ttl_seconds) { return dump({{"TTL", std::to_string(ttl_seconds)}}); }
std::string encode_lease(std::int64_t id) { return dump({{"ID", std::to_string(id)}}); }

std::string encode_login(std::string_view user, std::string_view password) {
  return dump({{"name", std::string(user)}, {"password", std::string(password)}});
}

std::string encode_watch(std::string_view prefix, std::int64_t from_revision, std::int64_t watch_id) {
  const Json create = {{"key", to_base64(prefix.empty() ? std::string_view("\0", 1) : prefix)},
                       {"range_end", to_base64(end_of_prefix(prefix))},
                       {"start_revision", std::to_string(from_revision)},
                       {"watch_id", std::to_string(watch_id)},
                       {"fragment", true}};
  return dump({{"create_request", create}});
}

Result<RangeAnswer> decode_range(std::string_view text) {
  HAWSER_TRY_ASSIGN(const Json json, parse(text));
  RangeAnswer answer;
  if (!read_range(json, answer) || answer.header.revision <= 0) return corrupt("of a range");
  return answer;
}

Result<PutAnswer> decode_put(std::string_view text) {
  HAWSER_TRY_ASSIGN(const Json json, parse(text));
  PutAnswer answer;
  Fields fields(json);
  fields.object("header", [&](const Json& header) { return read_header(header, answer.header); });
  fields.flag("succeeded", answer.is_put);
  RangeAnswer range;
  fields.each("responses", [&](const Json& response) {
    Fields one(response);
    one.object("response_range", [&](const Json& found) { return read_range(found, range); });
    return one.is_good();
  });
  if (!fields.is_good() || answer.header.revision <= 0) return corrupt("of a put");
  if (!range.entries.empty()) answer.holder = std::move(range.entries.front());
  return answer;
}

Result<std::uint64_t> decode_erase(std::string_view text) {
  HAWSER_TRY_ASSIGN(const Json json, parse(text));
  std::uint64_t count = 0;
  Fields fields(json);
  fields.number("deleted", count);
  if (!fields.is_good() || fields.find("header") == nullptr) return corrupt("of an erase");
  return count;
}

Result<LeaseAnswer> decode_lease(std::string_view text) {
  HAWSER_TRY_ASSIGN(const Json json, parse(text));
  LeaseAnswer answer;
  Fields outer(json);
  const Json* result = outer.find("result");
  Fields fields(result != nullptr ? *result : json);
  fields.number("ID", answer.id);
  fields.number("TTL", answer.ttl);
  if (!fields.is_good() || fields.find("header") == nullptr || answer.ttl < 0) return corrupt("of a lease");
  return answer;
}

Result<std::string> decode_login(std::string_view text) {
  HAWSER_TRY_ASSIGN(const Json json, parse(text));
  std::string token;
  Fields fields(json);
  fields.text("token", token);
  // It goes into a header line.
  const bool is_clean = token.find_first_of("\r\n") == std::string::npos && token.find('\0') == std::string::npos;
  if (!fields.is_good() || token.empty() || !is_clean) return corrupt("of a login");
  return token;
}

Result<WatchAnswer> decode_watch(std::string_view line) {
  HAWSER_TRY_ASSIGN(const Json json, parse(line));
  WatchAnswer answer;
  Fields outer(json);
  if (const Json* error = outer.find("error")) {
    const ErrorAnswer decoded = decode_error(line, 200);
    answer.fault = decoded.fault;
    answer.reason = decoded.text;
    answer.is_cancelled = true;
    return error->is_null() ? corrupt("of a watch") : Result<WatchAnswer>(std::move(answer));
  }
  const Json* result = outer.find("result");
  if (result == nullptr) return corrupt("of a watch");
  Fields fields(*result);
  fields.object("header", [&](const Json& header) { return read_header(header, answer.header); });
  fields.number("watch_id", answer.watch_id);
  fields.flag("created", answer.is_created);
  fields.flag("canceled", answer.is_cancelled);
  fields.flag("fragment", answer.is_fragment);
  fields.number("compact_revision", answer.compacted);
  fields.text("cancel_reason", answer.reason);
  fields.each("events", [&](const Json& event) { return read_event(event, answer.events.emplace_back()); });
  if (!fields.is_good()) return corrupt("of a watch");
  answer.reason.resize(std::min(answer.reason.size(), kReasonMax));
  return answer;
}

namespace {

/// gRPC's numbers of errors.
enum Grpc : std::int64_t {
  kCancelled = 1,
  kDeadline = 4,
  kNotFound = 5,
  kPermissionDenied = 7,
  kExhausted = 8,
  kOutOfRange = 11,
  kUnavailable = 14,
  kUnauthenticated = 16,
};

Fault fault_of(std::int64_t code, std::string_view text) {
  const auto says = [&](std::string_view words) { return text.find(words) != std::string_view::npos; };
  if (code == kUnauthenticated || says("invalid auth token") || says("auth store is old")) return Fault::kToken;
  if (code == kPermissionDenied || says("authentication failed") || says("user name is empty") ||
      says("is not enabled"))
    return Fault::kDenied;
  if (says("lease not found")) return Fault::kNoSuchLease;
  if (code == kOutOfRange || says("has been compacted")) return Fault::kCompacted;
  if (says("database space exceeded") || says("exceeds limit") || says("too large")) return Fault::kFinal;
  if (says("leader") || says("too many requests") || says("timed out") || says("unavailable")) return Fault::kTransient;
  const bool is_passing = code == kUnavailable || code == kExhausted || code == kDeadline || code == kCancelled;
  return is_passing ? Fault::kTransient : Fault::kFinal;
}

}  // namespace

ErrorAnswer decode_error(std::string_view text, long http_status) {
  ErrorAnswer answer;
  std::int64_t code = 0;
  if (const Result<Json> json = parse(text)) {
    Fields outer(*json);
    const Json* error = outer.find("error");
    // A stream gives an object, a single answer the text itself.
    const bool is_object = error != nullptr && error->is_object();
    Fields fields(is_object ? *error : *json);
    fields.text("message", answer.text);
    Fields numbers(is_object ? *error : *json);
    numbers.number(is_object ? "grpc_code" : "code", code);
  }
  if (answer.text.empty()) {
    answer.text = base::format("HTTP status {}: {}", http_status, base::shown(text, 200));
    // A proxy before etcd, or a member that is starting.
    answer.fault = http_status >= 500 || http_status == 429 ? Fault::kTransient : Fault::kFinal;
    return answer;
  }
  answer.text.resize(std::min(answer.text.size(), kReasonMax));
  answer.fault = fault_of(code, answer.text);
  answer.text = base::shown(answer.text, kReasonMax);
  return answer;
}

}  // namespace hawser::directory::etcd
