// The C ABI: files as regions.

#include "api/c/objects.h"

namespace hawser::api {
namespace {

Result<FileOptions> file_options(const char* call, const hawser_file_options& given) {
  constexpr std::uint32_t kFlags = HAWSER_FILE_CREATE | HAWSER_FILE_DESCRIPTOR;
  if ((given.flags & ~kFlags) != 0) return invalid(call, "flags " + std::to_string(given.flags) + " has unknown bits");
  const bool by_descriptor = (given.flags & HAWSER_FILE_DESCRIPTOR) != 0;
  if (by_descriptor == (given.path != nullptr)) {
    return invalid(call, "give either a path or HAWSER_FILE_DESCRIPTOR with a descriptor");
  }
  if (by_descriptor && given.descriptor < 0) return invalid(call, "descriptor is negative");
  if (by_descriptor && (given.flags & HAWSER_FILE_CREATE) != 0) {
    return invalid(call, "HAWSER_FILE_CREATE goes with a path only");
  }
  if (given.direct > HAWSER_DIRECT_REQUIRE) {
    return invalid(call, "direct = " + std::to_string(given.direct) + " is none of HAWSER_DIRECT_*");
  }
  FileOptions options{.name = std::string(text_of(given.name)),
                      .descriptor = by_descriptor ? given.descriptor : -1,
                      .path = std::string(text_of(given.path)),
                      .create = (given.flags & HAWSER_FILE_CREATE) != 0,
                      .size = given.bytes,
                      .direct = static_cast<DirectIo>(given.direct)};
  HAWSER_TRY_ASSIGN(options.rights, rights_of(call, given.rights));
  HAWSER_TRY_ASSIGN(const bool unlisted, flag_of(call, given.unlisted, "unlisted"));
  options.listed = !unlisted;
  return options;
}

Status add_file(const char* call, hawser_agent agent, const hawser_file_options* options, hawser_region* out) {
  HAWSER_TRY(not_null(call, options, "options"));
  HAWSER_TRY(not_null(call, out, "out"));
  HAWSER_TRY_ASSIGN(const hawser_file_options given,
                    options_of(call, "hawser_file_options", options,
                               offsetof(hawser_file_options, unlisted)));  // As in version 1 of the C ABI.
  HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
  HAWSER_TRY_ASSIGN(const FileOptions with, file_options(call, given));
  HAWSER_TRY_ASSIGN(Region region, its->agent.add_file(with));
  return give_handle(call, out, std::make_unique<RegionObject>(std::move(region)));
}

Status give_info(const char* call, hawser_file_info* out, const FileInfo& found) {
  return give(
      call, "hawser_file_info", out,
      hawser_file_info{
          .exists = found.exists ? 1u : 0u, .bytes = found.size, .mode = found.mode, .mtime_ns = found.mtime_ns});
}

}  // namespace
}  // namespace hawser::api

using namespace hawser;
using namespace hawser::api;

int hawser_agent_add_file(hawser_agent agent, const hawser_file_options* options, hawser_region* out) {
  return run(__func__, [&](const char* call) -> Status { return add_file(call, agent, options, out); });
}

int hawser_query_file(const char* path, hawser_file_info* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, path, "path"));
    HAWSER_TRY_ASSIGN(const FileInfo found, query_file(std::string_view(path)));
    return give_info(call, out, found);
  });
}

int hawser_query_descriptor(int descriptor, hawser_file_info* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const FileInfo found, query_file(descriptor));
    return give_info(call, out, found);
  });
}
