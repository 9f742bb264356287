#include "config/options.h"

#include <algorithm>
#include <optional>

#include "base/listen_text.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/quantity.h"
#include "config/settings.h"

namespace hawser::config {
namespace {

constexpr std::string_view kCount = "a whole number from 1 to 4294967295, such as 1024";
// Options that an agent would refuse are refused here, where the variable or the line is known. A test of cli opens
// agents with all of them.
constexpr std::uint32_t kTransfersMax = 1u << 24;
constexpr std::uint32_t kNotificationBytesMin = 64 * 1024 + 64;  // One of the largest, and its cost.
constexpr std::string_view kTransfers = "a whole number from 1 to 16777216, such as 1024";
constexpr std::uint32_t kPeerBytesMin = 16u << 20;  // The largest chunk.
constexpr std::string_view kPeerBytes = "a size from 16777216 to 4294967295 bytes, such as 1GiB";
constexpr std::string_view kNotificationBytes = "a size from 65600 to 4294967295 bytes, such as 1MiB";
constexpr std::string_view kDuration = "a duration of at least 1ms with its unit, such as 500ms, 1.5s or 2min";
constexpr Duration kDurationMin = std::chrono::milliseconds(1);
constexpr std::size_t kNameMax = 255;
constexpr std::size_t kPathMax = 4096;
constexpr std::string_view kPem = "the path of a PEM file";

template <typename T>
struct Word {
  std::string_view text;
  T value;
};
constexpr Word<OpenMode> kModes[] = {
    {"auto", OpenMode::kAuto}, {"strict", OpenMode::kStrict}, {"lenient", OpenMode::kLenient}};
constexpr Word<LogFormat> kLogFormats[] = {{"text", LogFormat::kText}, {"json", LogFormat::kJson}};
constexpr Word<Security> kLevels[] = {{"default", Security::kDefault},
                                      {"none", Security::kNone},
                                      {"authenticate", Security::kAuthenticate},
                                      {"encrypt", Security::kEncrypt}};

template <typename T, std::size_t kWords>
bool set_word(T& value, const Word<T> (&words)[kWords], std::string_view text) {
  for (const Word<T>& word : words) {
    if (!base::equal_ignoring_case(word.text, base::trim(text))) continue;
    value = word.value;
    return true;
  }
  return false;
}
template <typename T, std::size_t kWords>
std::string get_word(T value, const Word<T> (&words)[kWords]) {
  for (const Word<T>& word : words) {
    if (word.value == value) return std::string(word.text);
  }
  return "unknown";
}

/// In whichever part of the draft it is.
template <auto kMember>
auto& member(auto& draft) {
  if constexpr (requires { draft.*kMember; }) {
    return draft.*kMember;
  } else if constexpr (requires { draft.config.*kMember; }) {
    return draft.config.*kMember;
  } else if constexpr (requires { draft.config.options.*kMember; }) {
    return draft.config.options.*kMember;
  } else if constexpr (requires { draft.config.options.identity.*kMember; }) {
    return draft.config.options.identity.*kMember;
  } else if constexpr (requires { draft.config.options.limits.*kMember; }) {
    return draft.config.options.limits.*kMember;
  } else {
    return draft.config.etcd.*kMember;
  }
}

template <auto kMember>
constexpr Option duration(std::string_view name, std::string_view variable, std::string_view meaning) {
  return {name,
          variable,
          kDuration,
          meaning,
          [](Draft& draft, std::string_view text) {
            const auto value = base::parse_duration(text);
            if (!value || *value < kDurationMin) return false;
            member<kMember>(draft) = *value;
            return true;
          },
          [](const Draft& draft) { return base::format_duration(member<kMember>(draft)); }};
}

template <auto kMember, std::size_t kMax = kPathMax>
constexpr Option text(std::string_view name, std::string_view variable, std::string_view form,
                      std::string_view meaning) {
  return {name,
          variable,
          form,
          meaning,
          [](Draft& draft, std::string_view text) {
            member<kMember>(draft) = std::string(text);
            return text.size() <= kMax;
          },
          [](const Draft& draft) { return member<kMember>(draft); }};
}

bool set_limit(std::uint32_t& limit, std::optional<std::uint64_t> value, std::uint32_t least, std::uint32_t most) {
  if (!value || *value < least || *value > most) return false;
  limit = static_cast<std::uint32_t>(*value);
  return true;
}

template <auto kMember, std::uint32_t kLeast = 1, std::uint32_t kMost = UINT32_MAX>
constexpr Option limit(std::string_view name, std::string_view variable, std::string_view meaning,
                       std::string_view allowed = kCount) {
  return {name,
          variable,
          allowed,
          meaning,
          [](Draft& draft, std::string_view text) {
            return set_limit(member<kMember>(draft), base::parse_count(text), kLeast, kMost);
          },
          [](const Draft& draft) { return std::to_string(member<kMember>(draft)); }};
}

template <auto kMember, std::uint32_t kLeast>
constexpr Option size_limit(std::string_view name, std::string_view variable, std::string_view meaning,
                            std::string_view allowed = kNotificationBytes) {
  return {name,
          variable,
          allowed,
          meaning,
          [](Draft& draft, std::string_view text) {
            return set_limit(member<kMember>(draft), base::parse_size(text), kLeast, UINT32_MAX);
          },
          [](const Draft& draft) { return base::format_size(member<kMember>(draft)); }};
}

bool set_name(Draft& draft, std::string_view text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (text.empty() || text.size() > kNameMax || std::any_of(text.begin(), text.end(), is_control)) return false;
  draft.config.options.name = std::string(text);
  return true;
}

bool set_backends(Draft& draft, std::string_view text) {
  std::vector<std::string> names;
  draft.config.options.backends.clear();
  if (base::equal_ignoring_case(base::trim(text), "all")) return true;
  if (!split_words(text, names)) return false;
  for (std::string& name : names) draft.config.options.backends.push_back({std::move(name), {}});
  return true;
}

std::string get_backends(const Draft& draft) {
  std::string text;
  for (const BackendSpec& spec : draft.config.options.backends) text.append(text.empty() ? "" : ",").append(spec.name);
  return text.empty() ? "all" : text;
}

bool set_directory(Draft& draft, std::string_view text) {
  text = base::trim(text);
  const bool has_place = text.starts_with("file:") && text.size() > 5;
  const std::size_t scheme = text.starts_with("etcd://") ? 7 : text.starts_with("etcds://") ? 8 : 0;
  const bool has_members = scheme != 0 && text.size() > scheme && text[scheme] != '/';
  if (text != "none" && text != "inproc" && !text.starts_with("inproc:") && !has_place && !has_members) return false;
  draft.directory = std::string(text);
  return true;
}

/// For the backends of sockets, where their own parameters do not say otherwise.
bool set_listen(Draft& draft, std::string_view text) {
  if (base::trim(text).empty()) return true;
  const auto split = base::split_listen(text);
  if (!split) return false;
  for (const char* const backend : {"tcp", "quic"}) {
    Params& params = draft.config.options.backend_params[backend];
    params.try_emplace("listen", split->places);
    if (!split->ports.empty()) params.try_emplace("port", split->ports);
  }
  draft.listen = std::string(base::trim(text));
  return true;
}

bool set_log(Draft& draft, std::string_view text) {
  const Result<LogLevel> level = base::parse_log_level(text);
  if (level) draft.config.options.log.level = *level;
  return level.has_value();
}

bool set_status_page(Draft& draft, std::string_view text) {
  text = base::trim(text);
  for (const std::string_view word : {"auto", "off"}) {
    if (base::equal_ignoring_case(text, word)) text = word;
  }
  if (text != "auto" && text != "off" && !text.starts_with('/')) return false;
  draft.config.options.status_page = std::string(text);
  return text.size() <= kPathMax;
}

bool set_metrics(Draft& draft, std::string_view text) {
  text = base::trim(text);
  const auto split = base::split_listen(text);
  if (!text.empty() && (!split || split->ports.empty())) return false;
  draft.config.options.metrics = std::string(text);
  return true;
}

bool set_plugin_path(Draft& draft, std::string_view text) {
  draft.config.options.plugin_paths.clear();
  while (!text.empty()) {
    const std::size_t colon = text.find(':');
    if (colon != 0) draft.config.options.plugin_paths.emplace_back(text.substr(0, colon));
    text.remove_prefix(colon == std::string_view::npos ? text.size() : colon + 1);
  }
  return true;
}

std::string get_plugin_path(const Draft& draft) {
  std::string text;
  for (const std::string& folder : draft.config.options.plugin_paths)
    text.append(text.empty() ? "" : ":").append(folder);
  return text;
}

constexpr Option kOptions[] = {
    {"name", "HAWSER_NAME", "a name of 1 to 255 bytes without control characters",
     "The agent's name, as peers know it.", set_name, [](const Draft& draft) { return draft.config.options.name; }},
    {"backends", "HAWSER_BACKENDS", "a list of backend names, such as shm,tcp, or all",
     "Backends to open, in order of preference; all opens what works here.", set_backends, get_backends},
    {"mode", "HAWSER_MODE", "one of auto, strict, lenient",
     "Whether a backend that does not open is an error (strict), or is left out (lenient); auto: strict when backends "
     "are named.",
     [](Draft& draft, std::string_view text) { return set_word(draft.config.options.mode, kModes, text); },
     [](const Draft& draft) { return get_word(draft.config.options.mode, kModes); }},
    {"directory", "HAWSER_DIRECTORY",
     "file:/path, etcd://host:port[,host:port...][/prefix] (etcds:// for TLS), inproc:NAME or none",
     "Where the agent's card is published and peers are found.", set_directory,
     [](const Draft& draft) { return draft.directory; }},
    text<&AgentOptions::directory_prefix, 512>("directory_prefix", "HAWSER_DIRECTORY_PREFIX",
                                               "a text of at most 512 bytes", "Put before names in the directory."),
    text<&EtcdOptions::user>("etcd.user", "HAWSER_ETCD_USER", "a text of at most 4096 bytes",
                             "The user that logs in to etcd; empty: no login."),
    text<&Draft::etcd_password_file>(
        "etcd.password_file", "HAWSER_ETCD_PASSWORD_FILE", "the path of a file",
        "Its first line is the user's password; a password itself is no option, for options are shown."),
    text<&EtcdOptions::ca>("etcd.ca", "HAWSER_ETCD_CA", kPem,
                           "Authorities that etcd's certificate may be of; empty: the system's."),
    text<&EtcdOptions::cert>("etcd.cert", "HAWSER_ETCD_CERT", kPem, "The certificate that proves us to etcd."),
    text<&EtcdOptions::key>("etcd.key", "HAWSER_ETCD_KEY", kPem, "The key of that certificate."),
    text<&EtcdOptions::identity>(
        "etcd.identity", "HAWSER_ETCD_IDENTITY", "the path of a folder, or none",
        "A folder with an identity for etcd over TLS: it gives etcd.cert, etcd.key and etcd.ca "
        "where these are empty; empty: the agent's own identity."),
    duration<&EtcdOptions::lease>("etcd.lease", "HAWSER_ETCD_LEASE",
                                  "How long a dead agent's card stays in etcd; whole seconds."),
    duration<&EtcdOptions::timeout>("etcd.timeout", "HAWSER_ETCD_TIMEOUT",
                                    "How long one request to etcd may take, with all its tries."),
    {"listen", "HAWSER_LISTEN",
     "addresses (10.0.0.1), interfaces (eth0) or networks (10.0.0.0/8), several by commas, not those after a ^ "
     "(^docker0); with :PORT or :FIRST-LAST after it if wanted, such as eth0:7000-7100",
     "Where tcp and quic listen for peers of other hosts. backend.tcp.listen and .port win over it, as backend.quic's "
     "do.",
     set_listen, [](const Draft& draft) { return draft.listen; }},
    {"security", "HAWSER_SECURITY", "one of default, none, authenticate, encrypt",
     "default lets in who has the agent's card or ticket, or is the same user on this host; tcp to other hosts is TLS, "
     "and RDMA stays within the host. encrypt: tcp within the host is TLS, too. authenticate: as default, but RDMA may "
     "leave the host in clear. none: nothing is encrypted, and everybody who can connect may use all of the agent's "
     "regions. The stricter of two agents counts.",
     [](Draft& draft, std::string_view text) { return set_word(draft.config.options.security, kLevels, text); },
     [](const Draft& draft) { return get_word(draft.config.options.security, kLevels); }},
    text<&IdentityOptions::folder>(
        "identity", "HAWSER_IDENTITY", "the path of a folder",
        "A folder with the agent's certificate (tls.crt or svid.pem), its key (tls.key or svid_key.pem), the "
        "authorities that are trusted (ca.crt or svid_bundle.pem) and, if there is one, the list of revoked "
        "certificates (ca.crl). With it tcp is TLS everywhere, and lets in only who shows an identity of the same "
        "domain, and this user on this host."),
    text<&IdentityOptions::names>("identity.names", "HAWSER_IDENTITY_NAMES",
                                  "IDENTITY=NAMES, several by commas, with * for any characters, such as "
                                  "spiffe://example.org/ns/prod/*=decoder-*",
                                  "Names of agents that identities may have beside those that their certificates say."),
    duration<&IdentityOptions::look>("identity.look", "HAWSER_IDENTITY_LOOK",
                                     "How often the identity's files are looked at again."),
    text<&LoadedConfig::cost_model>(
        "cost_model", "HAWSER_COST_MODEL", "the path of a file",
        "What `hawser bench coll --tune` measured, by which worlds choose the algorithms of collectives. One rank that "
        "has it tells all others; empty on all: the model that is built in."),
    {"adopt", "HAWSER_ADOPT", "a switch: true or false (on, off, yes, no, 1, 0)",
     "Whole pages of registered private memory are re-mapped in place as shared, so that peers of this host map them; "
     "see below.",
     [](Draft& draft, std::string_view text) {
       const std::optional<bool> value = base::parse_switch(text);
       if (value) draft.config.options.adopt = *value;
       return value.has_value();
     },
     [](const Draft& draft) { return std::string(draft.config.options.adopt ? "true" : "false"); }},
    duration<&AgentOptions::default_deadline>("deadline", "HAWSER_DEADLINE",
                                              "How long a transfer may take that names no deadline."),
    duration<&AgentOptions::heartbeat>(
        "heartbeat", "HAWSER_HEARTBEAT",
        "Between two heartbeats to a driven peer; three without an answer make it suspect."),
    duration<&AgentOptions::peer_timeout>("peer_timeout", "HAWSER_PEER_TIMEOUT",
                                          "How long connecting is tried, also after a connection broke, and how long a "
                                          "driven peer may be silent, before it is down."),
    {"log", "HAWSER_LOG", "one of trace, debug, info, warn, error, off", "Lines below this level are not logged.",
     set_log, [](const Draft& draft) { return std::string(to_string(draft.config.options.log.level)); }},
    {"log_format", "HAWSER_LOG_FORMAT", "one of text, json", "How lines of the log look on stderr.",
     [](Draft& draft, std::string_view text) { return set_word(draft.config.options.log.format, kLogFormats, text); },
     [](const Draft& draft) { return get_word(draft.config.options.log.format, kLogFormats); }},
    {"metrics", "HAWSER_METRICS", "a numeric address and a port or ports, such as 127.0.0.1:9400 or 0.0.0.0:9400-9463",
     "Where figures for Prometheus are served, at /metrics. Of several ports each process takes a free one.",
     set_metrics, [](const Draft& draft) { return draft.config.options.metrics; }},
    {"status_page", "HAWSER_STATUS_PAGE", "auto, off, or the path of a folder",
     "Where the page is that `hawser top` shows of this agent; this user alone can read it.", set_status_page,
     [](const Draft& draft) { return draft.config.options.status_page; }},
    {"status_socket", "HAWSER_STATUS_SOCKET", "a switch: true or false (on, off, yes, no, 1, 0)",
     "Whether `hawser top --live`, `hawser explain --live` and `hawser metrics` may ask this agent, by a socket beside "
     "its page; this user alone can.",
     [](Draft& draft, std::string_view text) {
       const std::optional<bool> value = base::parse_switch(text);
       if (value) draft.config.options.status_socket = *value;
       return value.has_value();
     },
     [](const Draft& draft) { return std::string(draft.config.options.status_socket ? "true" : "false"); }},
    {"plugin_path", "HAWSER_PLUGIN_PATH", "folders with colons between them",
     "Where out-of-tree backends are looked for.", set_plugin_path, get_plugin_path},
    limit<&AgentLimits::transfers, 1, kTransfersMax>("limits.transfers", "HAWSER_LIMITS_TRANSFERS",
                                                     "Transfers in flight at once.", kTransfers),
    limit<&AgentLimits::peers>("limits.peers", "HAWSER_LIMITS_PEERS", "Peers known at once."),
    limit<&AgentLimits::regions>("limits.regions", "HAWSER_LIMITS_REGIONS", "Regions registered at once."),
    limit<&AgentLimits::grants>("limits.grants", "HAWSER_LIMITS_GRANTS",
                                "Grants that are open at once; each counts as a region, too."),
    size_limit<&AgentLimits::notification_bytes, kNotificationBytesMin>(
        "limits.notification_bytes", "HAWSER_LIMITS_NOTIFICATION_BYTES",
        "Notifications of one peer that wait in the inbox; each takes its length and 64 bytes."),
    size_limit<&AgentLimits::notification_bytes_total, kNotificationBytesMin>(
        "limits.notification_bytes_total", "HAWSER_LIMITS_NOTIFICATION_BYTES_TOTAL",
        "Notifications of all peers that wait in the inbox."),
    limit<&AgentLimits::events>("limits.events", "HAWSER_LIMITS_EVENTS", "Peer events waiting to be taken."),
    limit<&AgentLimits::peer_connections>(
        "limits.peer_connections", "HAWSER_LIMITS_PEER_CONNECTIONS",
        "Connections that one peer may have opened here, over tcp and quic together."),
    limit<&AgentLimits::peer_operations>("limits.peer_operations", "HAWSER_LIMITS_PEER_OPERATIONS",
                                         "Chunks that one peer may read and write here at once."),
    size_limit<&AgentLimits::peer_bytes, kPeerBytesMin>("limits.peer_bytes", "HAWSER_LIMITS_PEER_BYTES",
                                                        "Bytes of those chunks.", kPeerBytes),
    limit<&AgentLimits::peer_regions>("limits.peer_regions", "HAWSER_LIMITS_PEER_REGIONS",
                                      "Regions that the card of one peer may tell of."),
};

}  // namespace

std::span<const Option> options() { return kOptions; }

const Option* find_option(std::string_view name) {
  const auto* at =
      std::find_if(std::begin(kOptions), std::end(kOptions), [&](const Option& o) { return o.name == name; });
  return at == std::end(kOptions) ? nullptr : at;
}

std::string option_meant(std::string_view name) {
  std::vector<std::string> names;
  for (const Option& option : kOptions) names.emplace_back(option.name);
  return base::did_you_mean(name, names);
}

std::string variable_meant(std::string_view variable) {
  std::vector<std::string> names;
  for (const Option& option : kOptions) names.emplace_back(option.variable);
  return base::did_you_mean(variable, names);
}

const Option* find_variable(std::string_view variable) {
  const auto* at =
      std::find_if(std::begin(kOptions), std::end(kOptions), [&](const Option& o) { return o.variable == variable; });
  return at == std::end(kOptions) ? nullptr : at;
}

}  // namespace hawser::config
