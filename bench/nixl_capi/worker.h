#pragma once

// The worker: one of the two processes that hold a library. It does what the controller says over a socket.

namespace nixl_bench {

/// The exit status. Its commands are the functions in worker.cc.
int run_worker(int socket);

}  // namespace nixl_bench
