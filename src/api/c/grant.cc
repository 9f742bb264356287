// The C ABI: grants, of their owners and of their holders.

#include "api/c/objects.h"

namespace hawser::api {
namespace {

Status make_grant(const char* call, hawser_region region, const hawser_grant_options* options, hawser_grant* out) {
  HAWSER_TRY(not_null(call, options, "options"));
  HAWSER_TRY(not_null(call, out, "out"));
  HAWSER_TRY_ASSIGN(const hawser_grant_options given, options_of(call, "hawser_grant_options", options));
  HAWSER_TRY_ASSIGN(const auto its, find<RegionObject>(call, region));
  GrantOptions with;
  HAWSER_TRY_ASSIGN(const Rights rights, rights_of(call, given.rights));
  HAWSER_TRY_ASSIGN(with.single_use, flag_of(call, given.single_use, "single_use"));
  if (given.peer.id != 0) {
    HAWSER_TRY_ASSIGN(const auto peer, find<PeerObject>(call, given.peer));
    with.peer = peer->peer;
  }
  const Duration expiry = given.expiry_ns == HAWSER_FOREVER ? Duration::max() : Duration(given.expiry_ns);
  HAWSER_TRY_ASSIGN(Grant grant, its->region.grant(given.offset, given.bytes, rights, expiry, with));
  return give_handle(call, out, std::make_unique<GrantObject>(std::move(grant)));
}

Status give_granted(const char* call, hawser_granted* out, Result<GrantedRegion> imported) {
  if (!imported) return imported.error();
  return give_handle(call, out, std::make_unique<GrantedObject>(std::move(*imported)));
}

}  // namespace
}  // namespace hawser::api

using namespace hawser;
using namespace hawser::api;

int hawser_region_grant(hawser_region region, const hawser_grant_options* options, hawser_grant* out) {
  return run(__func__, [&](const char* call) -> Status { return make_grant(call, region, options, out); });
}

int hawser_grant_bytes(hawser_grant grant, hawser_buffer* bytes) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<GrantObject>(call, grant));
    return give(call, bytes, its->grant.bytes());
  });
}

int hawser_grant_ended(hawser_grant grant, int* ended) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, ended, "ended"));
    HAWSER_TRY_ASSIGN(const auto its, find<GrantObject>(call, grant));
    *ended = its->grant.ended() ? 1 : 0;
    return {};
  });
}

int hawser_grant_revoke(hawser_grant grant, int64_t timeout_ns) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<GrantObject>(call, grant));
    return its->grant.revoke(timeout_of(timeout_ns));
  });
}

int hawser_grant_release(hawser_grant grant) { return release<GrantObject>(__func__, grant); }

int hawser_agent_import_grant(hawser_agent agent, const void* bytes, size_t size, hawser_granted* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY(not_null(call, bytes, size, "bytes"));
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    return give_granted(call, out, its->agent.import_grant(bytes_of(bytes, size)));
  });
}

int hawser_peer_import_grant(hawser_peer peer, const void* bytes, size_t size, hawser_granted* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY(not_null(call, bytes, size, "bytes"));
    HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, peer));
    return give_granted(call, out, its->peer.import_grant(bytes_of(bytes, size)));
  });
}

int hawser_granted_info_get(hawser_granted granted, hawser_region_info* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<GrantedObject>(call, granted));
    return give(call, "hawser_region_info", out, info_of(region_info(its->granted.whole())));
  });
}

int hawser_granted_peer(hawser_granted granted, hawser_peer* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY_ASSIGN(const auto its, find<GrantedObject>(call, granted));
    Peer owner = its->granted.peer();
    if (!owner.valid()) return Status(Code::kNotFound, std::string(call) + ": the agent has forgotten the owner");
    return give_handle(call, out, std::make_unique<PeerObject>(std::move(owner)));
  });
}

int hawser_granted_blocks(hawser_granted granted, uint64_t block_bytes, hawser_table* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY_ASSIGN(const auto its, find<GrantedObject>(call, granted));
    return give_table(call, out, its->granted.table(block_bytes));
  });
}

int hawser_granted_table(hawser_granted granted, const hawser_strided_range* ranges, size_t count, hawser_table* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY(not_null(call, ranges, count, "ranges"));
    HAWSER_TRY_ASSIGN(const auto its, find<GrantedObject>(call, granted));
    return give_table(call, out, its->granted.table(ranges_of(ranges, count)));
  });
}

int hawser_granted_release(hawser_granted granted) { return release<GrantedObject>(__func__, granted); }
