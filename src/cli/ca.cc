// hawser ca: an authority of one's own, for agents' identities. See identity/authority.h.

#include <fmt/format.h>
#include <poll.h>

#include <chrono>
#include <memory>

#include <hawser/directory.h>

#include "agent/inner.h"
#include "base/try.h"
#include "cli/command.h"
#include "cli/json_out.h"
#include "cli/reach.h"
#include "cli/status_exit.h"
#include "cli/table.h"
#include "identity/authority.h"
#include "identity/files.h"
#include "identity/revocation_key.h"
#include "identity/unix_time.h"

namespace hawser::cli {
namespace {

using std::chrono::hours;

constexpr hours kAuthorityLasts{24 * 3650};
constexpr hours kCertificateLasts{24 * 30};
/// A certificate counts from before it was made, for hosts whose clocks are behind.
constexpr std::int64_t kClocksDiffer = 300;

constexpr const char* kCaExamples =
    "  hawser ca init example.org\n"
    "  hawser ca issue store --out /etc/hawser/identity\n"
    "  hawser ca issue worker --san 'worker-*' --ttl 24h\n"
    "  hawser ca revoke worker --out /etc/hawser/identity\n"
    "  hawser ca revoke worker --directory etcds://10.0.0.5:2379\n"
    "  hawser ca show";

struct CaArguments {
  Common common;
  std::string action, name;
  std::string folder = "hawser-ca";
  std::string out;
  std::string directory;  ///< As the option `directory` has it.
  std::vector<std::string> sans;
  std::string key = "ed25519";
  Duration ttl = Duration(-1);  ///< Not given: the usual.
};

std::int64_t end_of(const CaArguments& a, hours usual) {
  const Duration lasts = a.ttl >= Duration::zero() ? a.ttl : Duration(usual);
  return identity::unix_seconds() + std::chrono::duration_cast<std::chrono::seconds>(lasts).count();
}

identity::KeyKind key_kind_of(const std::string& text) {
  if (text == "p256") return identity::KeyKind::kP256;
  return text == "rsa" ? identity::KeyKind::kRsa2048 : identity::KeyKind::kEd25519;
}

Json begin_json(const CaArguments& a) {
  Json json = document("ca");
  json["action"] = a.action;
  json["folder"] = a.folder;
  return json;
}

Json holder_json(const identity::Holder& holder) {
  return {{"id", holder.id.text()},
          {"san", holder.dns},
          {"serial", holder.serial},
          {"begins", identity::time_text(holder.begins)},
          {"ends", identity::time_text(holder.ends)}};
}

Status init(const CaArguments& a) {
  const std::int64_t ends = end_of(a, kAuthorityLasts);
  HAWSER_TRY_ASSIGN(const identity::Authority authority,
                    identity::Authority::init(a.folder, a.name, identity::unix_seconds() - kClocksDiffer, ends));
  if (a.common.json) {
    Json json = begin_json(a);
    json["domain"] = authority.domain();
    json["ends"] = identity::time_text(ends);
    print(json);
    return {};
  }
  fmt::print(
      "the authority of {} is in {}, until {}\n"
      "keep {}/ca.key secret: who has it can be any agent of {}\n"
      "next: hawser ca issue NAME --folder {}\n",
      authority.domain(), a.folder, identity::time_text(ends), a.folder, authority.domain(), a.folder);
  return {};
}

Status issue(const CaArguments& a) {
  const std::string out = a.out.empty() ? a.name : a.out;
  HAWSER_TRY(identity::check_private_folder(out));  // Before a certificate is issued that then lies nowhere.
  HAWSER_TRY_ASSIGN(identity::Authority authority, identity::Authority::open(a.folder));
  HAWSER_TRY_ASSIGN(const identity::Issued issued, authority.issue({.name = a.name,
                                                                    .dns = a.sans,
                                                                    .begins = identity::unix_seconds() - kClocksDiffer,
                                                                    .ends = end_of(a, kCertificateLasts),
                                                                    .key = key_kind_of(a.key)}));
  HAWSER_TRY(issued.write(out));
  if (a.common.json) {
    Json json = begin_json(a);
    json["out"] = out;
    json["certificate"] = holder_json(issued.holder);
    print(json);
    return {};
  }
  fmt::print(
      "{} until {}, in {}\n"
      "on its host: HAWSER_IDENTITY={} hawser serve --name {} --listen auto\n"
      "renew it there before it ends, by the same command and `--out`; agents that run take the new one\n",
      issued.holder.id.text(), identity::time_text(issued.holder.ends), out, out, a.name);
  return {};
}

/// Puts the list of revoked certificates where agents look for it (agent/revocation_watch.h).
Status put_revoked(const CaArguments& a, const identity::Authority& authority) {
  constexpr Duration kPatience = std::chrono::seconds(10);
  HAWSER_TRY_ASSIGN(const AgentOptions options, agent_options({.directory = a.directory}, a.common.config));
  HAWSER_TRY_ASSIGN(const std::string list, authority.revoked());
  const std::string key = identity::revocation_key(authority.domain());
  Directory& directory = *options.directory;
  const Instant deadline = Clock::steady().now() + kPatience;
  const auto answer = agent::inner::ask(directory, directory.put(key, list, PutOptions{}), deadline,
                                        [] { static_cast<void>(::poll(nullptr, 0, 1)); });
  if (answer && answer->status.ok()) return {};
  return Status(answer ? answer->status.code() : Code::kTimedOut,
                fmt::format("hawser ca: the list of revoked certificates could not be put into the {} directory",
                            directory.kind()))
      .with_advice("once the directory can be reached: hawser ca publish --directory " + a.directory)
      .because(answer ? answer->status : Status(Code::kTimedOut, "it did not answer in time"));
}

Status publish(const CaArguments& a) {
  if (a.directory.empty()) {
    return Status(Code::kInvalid, "`hawser ca publish` wants a directory")
        .with_advice("hawser ca publish --directory etcds://10.0.0.5:2379");
  }
  HAWSER_TRY_ASSIGN(const identity::Authority authority, identity::Authority::open(a.folder));
  HAWSER_TRY(put_revoked(a, authority));
  if (a.common.json) {
    print(begin_json(a));
  } else {
    fmt::print("agents with an identity of {} and this directory have the list within 20 s\n", authority.domain());
  }
  return {};
}

Status revoke(const CaArguments& a) {
  HAWSER_TRY_ASSIGN(identity::Authority authority, identity::Authority::open(a.folder));
  HAWSER_TRY_ASSIGN(const std::size_t count, authority.revoke(a.name, identity::unix_seconds()));
  if (!a.out.empty()) HAWSER_TRY(authority.copy_revoked(a.out));
  if (!a.directory.empty()) HAWSER_TRY(put_revoked(a, authority));
  if (a.common.json) {
    Json json = begin_json(a);
    json["revoked"] = count;
    print(json);
    return {};
  }
  fmt::print("{} certificate{} of {} {} revoked now\n", count, count == 1 ? "" : "s", a.name,
             count == 1 ? "is" : "are");
  if (a.out.empty() && a.directory.empty()) {
    fmt::print("copy {}/ca.crl into the identity folder of each agent: they look at it again every 10 s\n", a.folder);
  }
  return {};
}

std::string state_of(const identity::Entry& entry) {
  if (entry.is_revoked) return "revoked";
  return entry.holder.ends <= identity::unix_seconds() ? "expired" : "valid";
}

Status show(const CaArguments& a) {
  HAWSER_TRY_ASSIGN(const identity::Authority authority, identity::Authority::open(a.folder));
  HAWSER_TRY_ASSIGN(const std::vector<identity::Entry> entries, authority.issued());
  if (a.common.json) {
    Json json = begin_json(a);
    json["domain"] = authority.domain();
    json["ends"] = identity::time_text(authority.ends());
    json["certificates"] = Json::array();
    for (const identity::Entry& entry : entries) {
      Json one = holder_json(entry.holder);
      one["state"] = state_of(entry);
      json["certificates"].push_back(std::move(one));
    }
    print(json);
    return {};
  }
  fmt::print("authority of {}, until {}\n", authority.domain(), identity::time_text(authority.ends()));
  Table table({{"name"}, {"state"}, {"ends"}, {"also named"}, {"serial"}});
  for (const identity::Entry& entry : entries) {
    table.add({std::string(entry.holder.id.path()), state_of(entry), identity::time_text(entry.holder.ends),
               fmt::format("{}", fmt::join(entry.holder.dns, " ")), entry.holder.serial});
  }
  if (!table.empty()) fmt::print("{}", table.to_string());
  return {};
}

int run_ca(const CaArguments& a) {
  const bool wants_name = a.action != "show" && a.action != "publish";
  Status status;
  if (wants_name && a.name.empty()) {
    status = Status(Code::kInvalid, fmt::format("`hawser ca {}` wants a name", a.action))
                 .with_advice(fmt::format("hawser ca {} {}", a.action, a.action == "init" ? "example.org" : "store"));
  } else if (a.ttl >= Duration::zero() && a.ttl < std::chrono::seconds(1)) {
    status = Status(Code::kInvalid, "--ttl is below 1s").with_advice("certificates count whole seconds: --ttl 24h");
  } else if (a.action == "init") {
    status = init(a);
  } else if (a.action == "issue") {
    status = issue(a);
  } else if (a.action == "revoke") {
    status = revoke(a);
  } else if (a.action == "publish") {
    status = publish(a);
  } else {
    status = show(a);
  }
  return status.ok() ? kExitOk : fail("ca", a.common.json, status);
}

}  // namespace

void add_ca(Shell& shell) {
  auto a = std::make_shared<CaArguments>();
  CLI::App* command =
      add_command(shell, "ca", "Be an authority that issues identities for agents", kCaExamples, a->common);
  command
      ->add_option(
          "action", a->action,
          "init: make the authority of a domain; issue: make a certificate for a name; "
          "revoke: take back those of a name, or of a serial number; publish: put the list of those taken back "
          "into a directory; show: list them")
      ->required()
      ->check(CLI::IsMember({"init", "issue", "revoke", "publish", "show"}));
  command->add_option("name", a->name, "The domain (init), the agent's name (issue), name or serial number (revoke)");
  command->add_option("--folder", a->folder, "The authority's folder")->capture_default_str();
  command->add_option("--out", a->out,
                      "issue: the folder of the agent's identity (default: its name); revoke: one to which the list of "
                      "revoked certificates is copied");
  command->add_option("--directory", a->directory,
                      "revoke, publish: where agents find the list of revoked certificates: a folder, or "
                      "etcds://host:port[,...][/prefix]");
  command->add_option("--san", a->sans, "issue: a further name or pattern of names (worker-*); may be repeated");
  command->add_option("--key", a->key, "issue: the kind of key")
      ->check(CLI::IsMember({"ed25519", "p256", "rsa"}))
      ->capture_default_str();
  add_duration(command, "--ttl", a->ttl, "How long it counts (default 720h; of an authority ten years)");
  on_run(shell, command, [a] { return run_ca(*a); });
}

}  // namespace hawser::cli
