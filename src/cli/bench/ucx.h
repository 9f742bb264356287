#pragma once

// ucx_perftest as a neighbour to compare with, where it is installed: found by UCX_PERFTEST or on the PATH.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <hawser/status.h>

namespace hawser::cli::bench {

struct UcxTool {
  std::string program;
  std::string library_path;  ///< For the loader: the folder ../lib beside the program, where there is one.
};
/// kUnsupported tells where it was looked for and how to get it.
Result<UcxTool> find_ucx();

struct UcxTest {
  std::string test;        ///< "ucp_put_bw", "ucp_get", "tag_bw", "ucp_put_lat", ...
  std::uint64_t size = 8;  ///< Bytes of one message.
  std::uint64_t iterations = 1000;
  std::map<std::string, std::string> env;              ///< UCX_TLS and so on.
  std::map<std::string, std::string> server_env = {};  ///< The server's, where it differs.
  bool by_median = false;                              ///< The median time of one; else the mean over all.
};

/// A server and a client, one on each of the bench's cores. Time of one message, ns (of latency tests: half a round
/// trip). Bounded in time.
Result<double> run_ucx(const UcxTool& tool, const UcxTest& test);

}  // namespace hawser::cli::bench
