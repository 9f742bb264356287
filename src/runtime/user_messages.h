#pragma once

// UserMessages: what the user of a rank sends to the other ranks of one world and receives from them.
//
// Thread rule: any thread. Lifetime: its world's. What the Site names outlives it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/world.h>

#include "runtime/failure_desk.h"
#include "runtime/operation.h"
#include "runtime/requests.h"
#include "runtime/roster.h"

namespace hawser::runtime {

class UserMessages {
 public:
  struct Site {
    std::uint64_t world = 0;
    std::string name;
    const Requests* requests = nullptr;
    const Roster* roster = nullptr;  ///< Open.
    RankSeat* seat = nullptr;
    const FailureDesk* failures = nullptr;
    const BufferSource* buffers = nullptr;  ///< Of receives that are given none.
    /// Not ok: all operations end so. Under the lane.
    const Status* aborted = nullptr;
  };
  void open(Site site) { site_ = std::move(site); }

  Request send(std::span<const std::byte> bytes, std::uint32_t to, std::uint64_t tag,
               const MessageOptions& options) const;
  Request send_parts(std::span<const std::span<const std::byte>> parts, std::uint32_t to, std::uint64_t tag,
                     const MessageOptions& options) const;
  /// Without `into` a buffer is made.
  Request receive(std::optional<std::span<std::byte>> into, std::uint32_t from, std::optional<std::uint64_t> tag,
                  const MessageOptions& options) const;
  Request receive_parts(std::span<const std::span<std::byte>> parts, std::uint32_t from,
                        std::optional<std::uint64_t> tag, const MessageOptions& options) const;
  /// A request for each message: sends first, then receives.
  std::vector<Request> batch(std::span<const OutgoingMessage> sends, std::span<const AwaitedMessage> receives,
                             const MessageOptions& options) const;
  std::optional<Received> probe(std::uint32_t from, std::optional<std::uint64_t> tag, Duration timeout) const;
  /// What a receive has got that has ended well.
  Received received(const Receive& receive) const;

 private:
  Request begin_send(std::shared_ptr<Send> operation, std::uint32_t to, std::uint64_t tag,
                     const MessageOptions& options) const;
  Request begin_receive(std::shared_ptr<Receive> operation, std::uint32_t from, std::optional<std::uint64_t> tag,
                        const MessageOptions& options) const;
  Status prepare(Send& send, std::uint32_t to, std::uint64_t tag, const MessageOptions& options) const;
  Status prepare(Receive& receive, std::uint32_t from, std::optional<std::uint64_t> tag,
                 const MessageOptions& options) const;
  // Under the lane.
  agent::inner::Need start(Send& send, std::uint32_t to, Duration timeout, Instant now) const;
  agent::inner::Need start(Receive& receive, std::uint32_t from, Duration timeout, Instant now) const;
  void start_receive(Receive& receive, std::uint32_t from, Instant deadline, Instant now) const;
  Pattern pattern_of(std::uint32_t from, std::optional<std::uint64_t> tag) const;
  Status check_rank(std::string_view call, std::uint32_t rank) const;

  Site site_;
};

}  // namespace hawser::runtime
