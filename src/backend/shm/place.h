#pragma once

// Place: where an agent of this host is found: a unix socket in a folder that only its user can enter.
//
// The socket's name is the incarnation, so a path in a card names one life of one agent. Beside it lies a lock file
// that its process holds; whoever opens a place removes what processes that died left there (or a part, where
// there is much).
//
// Thread rule: a Place is opened and closed by its backend; its socket is the port's. Lifetime: its files go with it.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "backend/shm/fork_list.h"
#include "base/id128.h"

namespace hawser::backend::shm {

/// What a card tells: opaque bytes of this backend.
struct Address {
  base::Id128 boot;        ///< Names one boot of one kernel: the host.
  std::uint32_t user = 0;  ///< Effective user id.
  std::string socket;      ///< Path in the file system.
};
std::string encode(const Address& address);
/// kInvalid when these are no bytes of encode().
Result<Address> decode_address(std::string_view bytes);

/// The id of this boot of this kernel.
Result<base::Id128> boot_id();

/// Whether an agent with this address can be reached from here, whose boot id is `boot`, and why not.
Status reach(const Address& address, const base::Id128& boot);

class Place {
 public:
  struct Where {
    std::string folder = {};       ///< Empty: chosen (home.h).
    std::string runtime_dir = {};  ///< The user's, for the choice.
  };
  static Result<std::unique_ptr<Place>> open(Where where, const base::Id128& incarnation, ForkList& forks);
  ~Place() { close(); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  int socket() const { return socket_.get(); }
  const std::string& path() const { return path_; }
  /// What its user should know of the folder that was chosen; mostly empty.
  const std::string& warning() const { return warning_; }
  /// Nobody finds it any more. Idempotent.
  void close();

 private:
  Place() = default;
  ForkFd socket_;
  ForkFd lock_;
  std::string path_;
  std::string warning_;
  std::string lock_path_;
};

/// Starts connecting; never blocks. kBusy: the peer's queue is full, try again later. kDisconnected with Scope::kPeer:
/// the socket is there and no process holds it. kUnsupported with Scope::kPath: there is no such socket here.
Result<base::Fd> connect_to(const std::string& path);

/// Who is at the other end of a connected socket.
struct Credentials {
  int process = 0;  ///< 0: it lives in a process-id namespace that we do not see.
  std::uint32_t user = 0;
};
Result<Credentials> peer_credentials(int socket);
/// Becomes readable when the process at the other end is gone. Empty where the kernel cannot tell.
base::Fd peer_process(int socket, int process);

}  // namespace hawser::backend::shm
