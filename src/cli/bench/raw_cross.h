#pragma once

// Cross-memory attach by hand: process_vm_writev and process_vm_readv with many pieces a call.

#include <sys/types.h>
#include <sys/uio.h>

#include <span>
#include <vector>

#include <hawser/status.h>
#include <hawser/transfer.h>

namespace hawser::cli::bench {

/// Pieces of equal size and number on both sides, piece by piece.
struct CrossLoad {
  pid_t pid = -1;
  Operation operation = Operation::kWrite;
  std::vector<iovec> local, remote;
};

/// The whole load, `batch` pieces a call.
Status cross_copy(const CrossLoad& load, std::size_t batch);

}  // namespace hawser::cli::bench
