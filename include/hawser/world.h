#pragma once

// A World is a number of ranks, each an agent, that send one another messages and run collective operations.
//
// Collectives of a world match by the order in which each rank calls them. Messages match by world, source and tag.
// Each has a class (MessageOptions::priority). Messages of one source, tag and class do not overtake one another, and
// those of a more urgent class may overtake others. Small messages are copied, large ones go straight into the
// receiver's buffer. All ranks are connected when `open` and `local` return; with a sparse topology each rank to its
// neighbours, which pass the messages of the others on.
//
// Failure: when a rank's process dies or does not answer for the agent's peer_timeout, every other rank's collectives
// end with kDisconnected naming it, so do receives from it and from any source; messages between the others go on. A
// collective that ends by its deadline or is cancelled ends the world's collectives on all ranks. `shrink` makes a new
// world of the ranks that live.
//
// Thread rule: thread-safe. A world's ranks are driven by a thread of the library's own, unless they are opened
// without.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/agent.h>
#include <hawser/buffer_pool.h>
#include <hawser/call.h>
#include <hawser/collective.h>
#include <hawser/config.h>
#include <hawser/datatype.h>
#include <hawser/export.h>
#include <hawser/status.h>
#include <hawser/time.h>
#include <hawser/topology.h>
#include <hawser/transfer.h>

namespace hawser::runtime {
class WorldCore;
struct Operation;
}  // namespace hawser::runtime

HAWSER_NAMESPACE_BEGIN

/// Receives from any rank.
inline constexpr std::uint32_t kAnySource = UINT32_MAX;

/// A key-value store that all ranks reach. The ranks find one another there, where they are given no directory. Hawser
/// takes anybody who can write to the store for a rank.
struct WorldStore {
  /// Keys are text, values bytes.
  std::function<Status(const std::string& key, const std::string& value)> set;
  /// The value, once somebody has set it; waits for that up to the timeout (kTimedOut).
  std::function<Result<std::string>(const std::string& key, Duration timeout)> get;
};

/// How many ranks must be left for `shrink` to give them a new world. All ranks open the world with the same value,
/// else `open` is kInvalid.
enum class Quorum : std::uint8_t {
  /// Any: where a network falls into two halves, each may go on.
  kNone,
  /// More than half of the members that are not proven dead: at most one part of a network goes on.
  kMajority,
};

/// What a world does by itself once one of its ranks has failed. All ranks open the world with the same value, else
/// `open` is kInvalid.
enum class RecoveryPolicy : std::uint8_t {
  /// Nothing. The program calls `shrink`.
  kManual,
  /// The runtime shrinks the world on all ranks that live, and gives each of them one event: `World::recovered`.
  kAutomatic,
  /// All operations of the world end, and later ones fail, with kDisconnected naming the rank. The process goes on.
  kAbort,
};

struct WorldOptions {
  std::string name = "world";  ///< Separates worlds that share a directory: 1 to 200 bytes.
  std::uint32_t size = 0;      ///< How many ranks there are; `local` is given it.
  std::uint32_t rank = 0;
  /// Backends, times, security. `name` is made of the world's name and the rank. Where the ranks are processes,
  /// `agent.directory` or `store` is where they find one another.
  AgentOptions agent = {};
  /// Used while `open` runs. The world's keys begin with "hawser/" and its name, so each world needs a name of its own.
  WorldStore store = {};
  /// The address of a seed (see seed.h) where the ranks find one another, in the place of a store or a directory.
  std::string seed = {};
  /// `seed` is "HOST:PORT" of the host that rank 0 is on, and rank 0 opens the seed there while its `open` runs; other
  /// ranks wait for it. Without a token only ranks of this user on that host can use it. For launchers that tell an
  /// address and no secret.
  bool serves_seed = false;
  /// A secret that the seed and all ranks were given: the path of a file of mode 0600, or "fd:N", a descriptor that is
  /// read to its end, which has to come within 5 s. At least 128 random bits as text: 22 characters of base64. It is
  /// never sent and never logged.
  /// With it `seed` needs no ticket ("10.0.0.5:7000"): ranks and seed prove to each other that they have the token.
  /// Empty: none. `open` ends with kDenied on a rank whose token is another than the seed's; other ranks notice
  /// nothing.
  std::string token_file = {};
  /// A file that `hawser bench coll --tune` wrote: what messages and bytes cost, by which the algorithms of collectives
  /// are chosen (docs/collectives.md). `open` tells it to all ranks, so one rank that has it is enough. Where two ranks
  /// are given files with different values, `open` ends with kInvalid on all of them. Errors on this rank: kNotFound,
  /// kInvalid naming the place in the file. Empty, on all ranks: the model that is built in.
  std::string cost_model = {};
  /// A thread of the library makes all progress. Without it only calls of this rank that wait do: others wait for it
  /// while it computes, and a rank that hangs is not found out. For as many ranks as cores. `local` is always driven.
  bool driven = true;
  /// Which ranks have sessions. All ranks are given the same one, else `open` ends with kInvalid on them.
  Topology topology = {};
  /// Of `shrink`. Not given: kMajority where the world recovers by itself, else kNone.
  std::optional<Quorum> quorum = {};
  /// A group of the world inherits kAbort, but does not recover by itself: it ends with its world.
  RecoveryPolicy recovery = RecoveryPolicy::kManual;
  Duration join_timeout = std::chrono::seconds(30);
  Duration timeout = std::chrono::minutes(30);  ///< Of operations that are given none.
  /// Where receives without a buffer get one. Empty: each gets memory of its own.
  BufferPool pool = {};
  /// Where options came from, by their names in World::config: for that call only. launched_world fills it.
  std::map<std::string, std::string, std::less<>> origins = {};
};

/// A received message.
struct Received {
  std::uint32_t source = 0;
  std::uint64_t tag = 0;
  std::uint64_t bytes = 0;
};

struct Recovered;

/// One operation under way. Move-only. Dropping it cancels, and returns when nothing touches its buffers.
class HAWSER_API Request {
 public:
  Request() = default;
  Request(std::shared_ptr<runtime::WorldCore> world, std::shared_ptr<runtime::Operation> operation);
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;
  ~Request();

  bool done() const;
  /// The operation's end, or kTimedOut when it has none yet: it goes on.
  Status wait(Duration timeout);
  /// Good while it is under way.
  Status status() const;
  /// The received message, once the receive ended well.
  Received received() const;
  /// By which algorithm a collective went, once it is over: a name of docs/collectives.md. Empty: it is no collective.
  std::string_view algorithm() const;
  /// The bytes of a receive that was given no buffer, or of a call's answer. They live as long as the request.
  std::span<const std::byte> bytes() const;
  void cancel();

 private:
  friend class World;
  std::shared_ptr<runtime::WorldCore> world_;
  std::shared_ptr<runtime::Operation> operation_;
};

/// What a world holds of one kind.
struct MemoryUse {
  std::string_view kind;  ///< See World::memory.
  std::uint64_t bytes = 0;
};

struct MessageOptions {
  Duration timeout = Duration::zero();  ///< Zero: the world's.
  bool exact = false;                   ///< A receive refuses a shorter message, too.
  Priority priority = Priority::kBulk;  ///< A send's class. A receive takes messages of every class.
};

/// One message of a batch, which this rank sends.
struct OutgoingMessage {
  std::span<const std::byte> bytes;
  std::uint32_t to = 0;
  std::uint64_t tag = 0;
};

/// One message of a batch, which this rank receives.
struct AwaitedMessage {
  std::span<std::byte> into;
  std::uint32_t from = kAnySource;
  std::optional<std::uint64_t> tag = {};
  bool any_size = false;  ///< It gets a buffer of its size, and `into` counts for nothing: see Request::bytes.
};

/// Several messages under way, each with its own request and its own end. Move-only. Dropping it cancels those that
/// have not ended.
class HAWSER_API Batch {
 public:
  Batch() = default;
  explicit Batch(std::vector<Request> requests) : requests_(std::move(requests)) {}

  std::size_t size() const { return requests_.size(); }
  /// The request of one message: sends first, then receives, in the order of the lists that were given.
  Request& operator[](std::size_t index) { return requests_[index]; }
  const Request& operator[](std::size_t index) const { return requests_[index]; }
  /// All have ended.
  bool done() const;
  /// Ok: all have ended well. kTimedOut: some have not ended by then; they go on. Else all have ended, and this is the
  /// end of the first that failed, with its place; `[i].status()` tells of each.
  Status wait(Duration timeout);
  void cancel();
  /// The requests, one for each message: the batch is empty afterwards.
  std::vector<Request> take() { return std::move(requests_); }

 private:
  std::vector<Request> requests_;
};

class HAWSER_API World {
 public:
  World() = default;
  explicit World(std::shared_ptr<runtime::WorldCore> core) : core_(std::move(core)) {}
  World(World&&) noexcept = default;
  World& operator=(World&&) noexcept = default;
  ~World() = default;

  /// `size` ranks in this process, by rank. Collectives take a thread for each, or the `i...` calls of one.
  static Result<std::vector<World>> local(std::uint32_t size, const WorldOptions& options = {});
  /// One rank of several processes; returns when every rank is ready. Its agent listens at all addresses of the host,
  /// unless options.agent says otherwise; what goes to other hosts is TLS. Errors: kInvalid (options), kTimedOut naming
  /// the ranks that are missing.
  static Result<World> open(WorldOptions options);
  /// The same, on an agent of the program's: the world has no agent of its own. Of `options.agent` only the directory
  /// counts; without it the agent's does.
  /// The agent may be in several worlds at once, and goes on with all else that it does: the world takes none of its
  /// notifications, messages and events. The ranks find one another at a store, a seed, or in a directory, where all of
  /// them, or none, have agents of their programs.
  /// The name of the world is one that no world of this agent has, or had before. `options.driven` lends the agent the
  /// library's thread while it is in such worlds, if no driver runs it. Sparse topologies are kUnsupported.
  /// Closing the world leaves the agent open; the other ranks see a failure, as of any world. Closing the agent ends
  /// the world with kCancelled, later calls are kInvalid. The agent is not moved while the call runs.
  static Result<World> open(Agent& agent, WorldOptions options);
  /// The same, of peers that the agent knows: `ranks` is by rank, and at `options.rank` there is Agent::self, or an
  /// empty handle. Nothing is looked up anywhere. `options.size` is 0, or how many there are.
  static Result<World> open(Agent& agent, std::span<const Peer> ranks, WorldOptions options);

  std::uint32_t rank() const;
  std::uint32_t size() const;
  /// The peer behind a rank; empty where there is no such rank.
  Peer peer(std::uint32_t rank) const;
  /// The cost model by which algorithms are chosen, for people: "built in", or who told it and its values. The same
  /// on all ranks, in their groups and in worlds that were shrunk.
  std::string cost_model() const;
  /// Its values by name, in nanoseconds: "message_ns" and so on.
  std::vector<std::pair<std::string, double>> costs() const;
  /// Whether the world was opened with another topology than the full one.
  bool is_sparse() const;
  /// The options that the world has ended up with, for people: each with its name, its value and where it came from
  /// ("default", "caller", "torchrun", "HAWSER_HEARTBEAT", "told by rank 2"). No value is a secret.
  std::vector<ConfigValue> config() const;
  /// Bytes that this rank holds for the world and its groups, by kind: "boards" (for collectives on one host),
  /// "unreceived" (messages that nobody has received yet), "receives" (buffers of receives without one, no pool's),
  /// "pool" (buffers that the pool has made, for all its worlds), "calls" (arguments), "collectives" (copies
  /// that those under way need), "relays" (a sparse world's) and "flight recorder". Memory of `allocate` is the
  /// program's, and is not in it.
  std::vector<MemoryUse> memory() const;
  /// Whether the rank is a neighbour of this one in the topology, which has sessions with neighbours only. False for
  /// this rank itself, and where there is no such rank.
  bool has_direct_peer(std::uint32_t rank) const;
  /// The number of the host that the rank is on: hosts are numbered from 0, in the order of their first ranks. Ranks in
  /// one network namespace of one machine share a host. A rank that there is not: the host of this one.
  std::uint32_t host(std::uint32_t rank) const;
  /// This rank's number among the ranks of its host, from 0, and how many these are. For choosing a GPU or a NIC.
  std::uint32_t local_rank() const;
  std::uint32_t local_size() const;
  /// Ranks that failed, in their order; also those of which this rank hears nothing any more, and whether they or it
  /// have failed is not decided yet. `failures` tells of them once it is.
  std::vector<std::uint32_t> failed() const;

  // Messages. Tags are any 64 bits. Buffers are the operation's until it has ended. Calls with `i` wait for nobody.
  Request isend(std::span<const std::byte> bytes, std::uint32_t to, std::uint64_t tag,
                const MessageOptions& options = {});
  Request ireceive(std::span<std::byte> into, std::uint32_t from, std::optional<std::uint64_t> tag,
                   const MessageOptions& options = {});
  /// Into a buffer of the message's size: see Request::bytes.
  Request ireceive_any_size(std::uint32_t from, std::optional<std::uint64_t> tag, const MessageOptions& options = {});
  Status send(std::span<const std::byte> bytes, std::uint32_t to, std::uint64_t tag,
              const MessageOptions& options = {});
  Result<Received> receive(std::span<std::byte> into, std::uint32_t from, std::optional<std::uint64_t> tag,
                           const MessageOptions& options = {});
  // One message of several spans, one behind the other: at most 65,536. The other side may divide it otherwise. The
  // list of spans is the caller's again when the call returns.
  Request isend_parts(std::span<const std::span<const std::byte>> parts, std::uint32_t to, std::uint64_t tag,
                      const MessageOptions& options = {});
  Request ireceive_parts(std::span<const std::span<std::byte>> parts, std::uint32_t from,
                         std::optional<std::uint64_t> tag, const MessageOptions& options = {});
  Status send_parts(std::span<const std::span<const std::byte>> parts, std::uint32_t to, std::uint64_t tag,
                    const MessageOptions& options = {});
  Result<Received> receive_parts(std::span<const std::span<std::byte>> parts, std::uint32_t from,
                                 std::optional<std::uint64_t> tag, const MessageOptions& options = {});
  /// Begins all of them, the receives first, in one step. Each has its own end: one that cannot be done keeps none of
  /// the others from being done. The options are those of each.
  Batch ibatch(std::span<const OutgoingMessage> sends, std::span<const AwaitedMessage> receives,
               const MessageOptions& options = {});
  /// Waits for all. See Batch::wait.
  Status batch(std::span<const OutgoingMessage> sends, std::span<const AwaitedMessage> receives,
               const MessageOptions& options = {});
  /// The oldest message that fits and has come; it stays. Waits up to `timeout` for one.
  std::optional<Received> probe(std::uint32_t from, std::optional<std::uint64_t> tag,
                                Duration timeout = Duration::zero()) const;

  // Calls of a handler of another rank, or of this one. Each rank may register and call at any time; a group has its
  // own handlers. Errors of a call: those of the handler; kNotFound where there is none of that name, kTimedOut,
  // kDisconnected.
  /// kInvalid: the name is taken here, empty, or longer than 255 bytes. It stays until the world closes;
  /// closing waits for handlers that run.
  Status register_handler(std::string_view name, CallHandler handler, const HandlerOptions& options = {});
  /// By a number in the place of a name. Numbers and names are apart: no number is a name's.
  Status register_handler(std::uint64_t number, CallHandler handler, const HandlerOptions& options = {});
  /// The answer is `bytes` of the request. `arguments` are the call's until it has ended, at most 1 GiB, as the answer.
  Request icall(std::uint32_t to, std::string_view name, std::span<const std::byte> arguments,
                const CallOptions& options = {});
  Result<CallAnswer> call(std::uint32_t to, std::string_view name, std::span<const std::byte> arguments,
                          const CallOptions& options = {});
  Request icall(std::uint32_t to, std::uint64_t number, std::span<const std::byte> arguments,
                const CallOptions& options = {});
  Result<CallAnswer> call(std::uint32_t to, std::uint64_t number, std::span<const std::byte> arguments,
                          const CallOptions& options = {});

  // Memory of this rank that the ranks of its host map: Agent::allocate and Agent::add_region of the rank's agent.
  // Large collectives of ranks that are all on one host read it where it lies, if the buffers of all ranks are in such
  // memory, listed, and may be read. The region is the caller's, and outlives the operations that use its memory.
  /// Memory to map. Errors: kBusy, there is not enough.
  Result<Region> allocate(const AllocateOptions& options);
  /// Registers memory of the caller's. It is mapped where the agent adopts it: AgentOptions::adopt, Region::mappable.
  Result<Region> add_region(const RegionOptions& options);

  // Collectives. Counts are in elements of `type`. Inputs stay as they are, unless they are the output.
  Request ibarrier(const CollectiveOptions& options = {});
  Request ibroadcast(void* data, std::size_t count, DataType type, std::uint32_t root,
                     const CollectiveOptions& options = {});
  /// `out` counts at the root only.
  Request ireduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op, std::uint32_t root,
                  const CollectiveOptions& options = {});
  /// `in` may be `out`.
  Request iall_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op,
                      const CollectiveOptions& options = {});
  /// In place, of several tensors at once: those that follow one another go together, as copies, in collectives of up
  /// to `bucket_bytes`; a larger one goes alone, where it lies. All ranks give the same counts. The requests are of
  /// the buckets, in their order; a tensor is the sum once its own bucket's has ended.
  std::vector<Request> iall_reduce_bucketed(std::span<const Tensor> tensors, DataType type, ReduceOp op,
                                            std::size_t bucket_bytes = kBucketBytes,
                                            const CollectiveOptions& options = {});
  /// Rank r's elements, counts[r] of them, come behind those of the ranks before it.
  Request iall_gather(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type,
                      const CollectiveOptions& options = {});
  /// Combines all ranks' `in` and shares out the result: rank r gets counts[r] elements, in the order of the ranks.
  Request ireduce_scatter(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type, ReduceOp op,
                          const CollectiveOptions& options = {});
  Request igather(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type, std::uint32_t root,
                  const CollectiveOptions& options = {});
  Request iscatter(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type, std::uint32_t root,
                   const CollectiveOptions& options = {});
  /// `out_counts[r]` elements of `in` go to rank r, `in_counts[r]` come from it.
  Request iall_to_all(const void* in, void* out, std::span<const std::uint64_t> out_counts,
                      std::span<const std::uint64_t> in_counts, DataType type, const CollectiveOptions& options = {});
  /// Each rank sends `count` elements to each rank. All ranks call this overload, or all call the one above: ranks that
  /// differ get kInvalid. Between hosts the ranks of one host send their small blocks together.
  Request iall_to_all(const void* in, void* out, std::uint64_t count, DataType type,
                      const CollectiveOptions& options = {});
  /// Combines the ranks up to this one. An exclusive scan leaves this rank out, and its rank 0 keeps the input. `in`
  /// may be `out`.
  Request iscan(const void* in, void* out, std::size_t count, DataType type, ReduceOp op, bool exclusive = false,
                const CollectiveOptions& options = {});

  Status barrier(const CollectiveOptions& options = {});
  Status broadcast(void* data, std::size_t count, DataType type, std::uint32_t root,
                   const CollectiveOptions& options = {});
  Status reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op, std::uint32_t root,
                const CollectiveOptions& options = {});
  Status all_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op,
                    const CollectiveOptions& options = {});
  Status all_reduce_bucketed(std::span<const Tensor> tensors, DataType type, ReduceOp op,
                             std::size_t bucket_bytes = kBucketBytes, const CollectiveOptions& options = {});
  Status all_gather(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type,
                    const CollectiveOptions& options = {});
  Status reduce_scatter(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type, ReduceOp op,
                        const CollectiveOptions& options = {});
  Status gather(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type, std::uint32_t root,
                const CollectiveOptions& options = {});
  Status scatter(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type, std::uint32_t root,
                 const CollectiveOptions& options = {});
  Status all_to_all(const void* in, void* out, std::span<const std::uint64_t> out_counts,
                    std::span<const std::uint64_t> in_counts, DataType type, const CollectiveOptions& options = {});
  Status all_to_all(const void* in, void* out, std::uint64_t count, DataType type,
                    const CollectiveOptions& options = {});
  Status scan(const void* in, void* out, std::size_t count, DataType type, ReduceOp op, bool exclusive = false,
              const CollectiveOptions& options = {});

  // Groups: worlds of some of the ranks over the same connections. They end with the world that they are of.
  /// All ranks call it. Those of one color are a world, in the order of their keys, then of their ranks. A rank without
  /// a color gets an empty handle.
  Result<World> split(std::optional<std::uint32_t> color, std::int64_t key = 0);
  /// Makes another world of the same ranks, with its own messages and collectives. It sends no message.
  Result<World> duplicate();
  /// These ranks in this order; each of them calls it, nobody else, and no message is sent for it. Those who make
  /// several groups of the same ranks make them in the same order.
  Result<World> group(std::span<const std::uint32_t> ranks);
  bool valid() const { return core_ != nullptr; }
  /// The number that a rank of this group has in the world that was opened.
  std::uint32_t root_rank(std::uint32_t rank) const;

  /// Ends the world's collectives on all ranks.
  void revoke(const Status& why);

  // After a failure. Agreements of a world match by the order of the calls, and work in a revoked world.
  /// Gives each rank that lives the AND of all their flags, and the same answer to `failed`, whichever ranks fail
  /// meanwhile. Errors: kTimedOut naming the ranks that did not call it; the next call takes up the same agreement.
  /// kDisconnected where the others hold this rank for failed. `timeout` zero: the world's.
  Result<bool> agree(bool flag, Duration timeout = Duration::zero());
  /// Makes a world of the ranks that have not failed, in the same order; all of them call it. This world is revoked;
  /// groups of it stay as they are. The agent closes with the new world. Ranks in `without` count as failed. Waits for
  /// all others: nobody is left out for being late. Errors: those of `agree`; kDenied without WorldOptions::quorum.
  Result<World> shrink(std::span<const std::uint32_t> without = {}, Duration timeout = Duration::zero());
  /// `iagree` and `ishrink` do not wait. When their request has ended, `agreed` or `shrunk` gives the outcome; before
  /// that kInvalid. A program calls `shrunk` once for each request.
  Request iagree(bool flag, Duration timeout = Duration::zero());
  Result<bool> agreed(const Request& request);
  Request ishrink(std::span<const std::uint32_t> without = {}, Duration timeout = Duration::zero());
  Result<World> shrunk(const Request& request);
  /// With RecoveryPolicy::kAutomatic: the world that the runtime made after a failure. Waits for it up to `timeout`;
  /// zero only looks. A world gives one event, to the first who takes it; the new world gives the next one. So there
  /// are never more events than ranks. From the failure on `agree` and `shrink` of this world are kBusy.
  /// Errors: kTimedOut, there is none yet. kDenied, too few ranks are left (WorldOptions::quorum). kDisconnected, the
  /// others left this rank out. kCancelled, the world was closed. kInvalid, the policy is another one, or the event was
  /// taken.
  Result<Recovered> recovered(Duration timeout = Duration::zero());
  /// Ranks that failed, in the order in which this rank found it, without the first `known` of them. Waits up to
  /// `timeout` for one.
  std::vector<std::uint32_t> failures(std::size_t known, Duration timeout) const;
  /// Receives from any source work again, until another rank fails. Returns the ranks that had failed.
  std::vector<std::uint32_t> acknowledge();
  /// All ranks have the same. The world that was opened has 0, and each group has a number that no other group of its
  /// world has. `shrink` keeps it, so id and epoch together name a world.
  std::uint64_t id() const;
  /// How often the world was shrunk.
  std::uint64_t epoch() const;
  /// The rank's number in the world that `shrink` made this one of. A world of another origin: the same number.
  std::uint32_t old_rank(std::uint32_t rank) const;
  /// A number of a collective in the world that `shrink` made this one of: that collective, and all before it, ended
  /// well on every rank that is left. 0: none did.
  std::uint64_t last_good() const;
  /// The number of the last collective that this rank began here. The first is 1.
  std::uint64_t last_number() const;

  /// Waits until all ranks do the same, so that none finds another one gone, then closes. kTimedOut: some did not; the
  /// error names the ranks that have not called it, and the world is at an end for all.
  Status shutdown(Duration timeout);
  /// Leaves without waiting for the others' calls: once they have what this rank sent, it closes. They do not take it
  /// for failed; what they begin with it afterwards ends with kDisconnected. kTimedOut: some do not have all; the error
  /// names them.
  Status leave(Duration timeout);
  /// Leaves at once; the other ranks see a failure. For a group it ends only this rank's view.
  Status close(Duration timeout);

 private:
  std::shared_ptr<runtime::WorldCore> core_;
};

/// The runtime has shrunk a world after a failure. A program that drops this without using `world` closes its rank.
struct Recovered {
  World world;                        ///< The next one. The world before stays revoked.
  std::uint32_t old_rank = 0;         ///< What this rank was in the world before.
  std::vector<std::uint32_t> failed;  ///< The ranks of the world before that are not in the next one, in their order.
};

HAWSER_NAMESPACE_END
