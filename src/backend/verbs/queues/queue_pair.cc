#include "backend/verbs/queues/queue_pair.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/fd.h"
#include "base/format.h"

namespace hawser::backend::verbs {
namespace {

constexpr std::uint32_t kLastBit = 1u << 31;
constexpr std::uint32_t kProbeSlot = kLastBit - 1;
/// In the number of a message's request; the rest is its place.
constexpr std::uint32_t kReceiveBit = 1u << 30;
constexpr std::uint32_t kMessageBit = 1u << 29;
/// One entry of a scatter list holds at most this much.
constexpr std::uint64_t kRunMax = 1u << 30;

/// Datagrams carry writes and reads alone.
QueuePairOptions fitted(QueuePairOptions options, const Nic& nic) {
  if (!nic.is_srd()) return options;
  options.send_depth = std::min(options.send_depth, nic.srd.send_depth);
  options.sge_max = std::min(options.sge_max, nic.srd.sge_max);
  options.inline_max = options.messages = options.immediates = 0;
  return options;
}

}  // namespace

bool is_own_fault(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_REM_ACCESS_ERR:
      return true;
    default:
      return false;
  }
}

std::string_view to_string(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return "success";
    case IBV_WC_LOC_LEN_ERR:
      return "local length error";
    case IBV_WC_LOC_QP_OP_ERR:
      return "local queue pair operation error";
    case IBV_WC_LOC_PROT_ERR:
      return "local protection error";
    case IBV_WC_WR_FLUSH_ERR:
      return "flushed";
    case IBV_WC_BAD_RESP_ERR:
      return "bad response";
    case IBV_WC_REM_INV_REQ_ERR:
      return "remote invalid request";
    case IBV_WC_REM_ACCESS_ERR:
      return "remote access error";
    case IBV_WC_REM_OP_ERR:
      return "remote operation error";
    case IBV_WC_RETRY_EXC_ERR:
      return "retries exceeded: no answer";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "receiver not ready";
    case IBV_WC_REM_ABORT_ERR:
      return "remote abort";
    case IBV_WC_FATAL_ERR:
      return "fatal error of the adapter";
    default:
      return "error of the adapter";
  }
}

QueuePair::QueuePair(NicLane& lane, const QueuePairOptions& options)
    : lane_(lane),
      options_(fitted(options, *lane.nic)),
      object_(QueuePairObject::of(*lane.nic, options_)),
      gid_(lane.nic->address().best()) {
  ++lane_.queue_pairs;
}

QueuePair::~QueuePair() {
  --lane_.queue_pairs;
  destroy();
  if (cq_ != nullptr) lane_.queues->give_back(cq_);
}

Status QueuePair::failed(std::string_view doing, int error) const { return call_failed(*lane_.nic, doing, error); }

Status QueuePair::create() {
  const Nic& nic = *lane_.nic;
  if (cq_ != nullptr && lane_.queues->is_broken(cq_)) lane_.queues->give_back(std::exchange(cq_, nullptr));
  if (cq_ == nullptr) {
    Result<ibv_cq*> leased = lane_.queues->lease();
    if (!leased) return leased.error();
    cq_ = *leased;
  }
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq_;
  const auto most = static_cast<std::uint32_t>(std::max(nic.domain->attributes().max_qp_wr, 0));
  message_room_ = most > options_.send_depth ? std::min(options_.messages, most - options_.send_depth) : 0;
  attr.cap.max_send_wr = options_.send_depth + message_room_;
  attr.cap.max_recv_wr = std::max<std::uint32_t>(options_.messages + options_.immediates, 1);
  attr.cap.max_send_sge = std::min(options_.sge_max, static_cast<std::uint32_t>(nic.domain->attributes().max_sge));
  attr.cap.max_recv_sge = 1;
  attr.cap.max_inline_data = options_.inline_max;
  const ibv_qp_cap wanted = attr.cap;
  qp_ = object_->create(&attr);
  if (qp_ == nullptr && options_.inline_max > 0) {  // Some devices have no room for inline data.
    attr.cap = wanted;
    attr.cap.max_inline_data = 0;
    qp_ = object_->create(&attr);
  }
  if (qp_ == nullptr) return failed("making a queue pair", errno);
  inline_max_ = std::min(attr.cap.max_inline_data, options_.inline_max);
  if (slots_.empty()) {
    slots_.resize(options_.send_depth);
    for (std::uint32_t i = options_.send_depth; i > 0; --i) free_.push_back(i - 1);
    batch_.reserve(options_.send_depth);
    pieces_.reserve(std::size_t{options_.send_depth} * wanted.max_send_sge);
  }
  sges_ = read_sges_ = wanted.max_send_sge;
  // A device that tells none (0) has no other for reads.
  const auto reads = static_cast<std::uint32_t>(std::max(nic.domain->attributes().max_sge_rd, 0));
  if (reads > 0) read_sges_ = std::min(sges_, reads);
  return {};
}

Status QueuePair::make(std::uint32_t epoch, base::Rng& rng, const QueuePairAttempt& attempt) {
  if (Status status = create(); !status.ok()) return status;
  epoch_ = epoch;
  lane_.nic->refresh_mtu();
  gid_ = lane_.nic->gid_for(attempt.peer, attempt.further);
  const NicAddress now = lane_.nic->address();
  lid_ = now.lid;
  mtu_ = attempt.mtu_max == 0 ? now.mtu : std::min(now.mtu, attempt.mtu_max);
  lost_full_ = carried_full_ = false;
  fault_ = Status();
  is_fault_own_ = false;
  begin_immediates(0, 0);
  return object_->init(qp_, rng);
}

Status QueuePair::join(const wire::QueuePairEndpoint& peer) {
  wire::QueuePairEndpoint both = peer;
  both.mtu = mtu_ = std::min(mtu_, peer.mtu);
  return object_->join(qp_, gid_, both);
}

Status QueuePair::prove() {
  ibv_sge piece{};
  ibv_send_wr request{};
  request.wr_id = number_of(kProbeSlot, true);
  request.send_flags = IBV_SEND_SIGNALED;
  object_->fill_proof(&request, &piece);
  const int error = object_->post(qp_, &request);
  if (error != 0) return failed("posting the first write", error);
  proving_ = true;
  return {};
}

void QueuePair::drain() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  // Where this fails the time for draining passes, and the object is destroyed all the same.
  if (qp_ != nullptr) lane_.nic->domain->verbs().modify_qp(qp_, &attr, IBV_QP_STATE);
}

void QueuePair::destroy() {
  if (qp_ == nullptr) return;
  Verbs& verbs = lane_.nic->domain->verbs();
  ibv_qp* const qp = std::exchange(qp_, nullptr);
  Domain& domain = *lane_.nic->domain;
  if (const int error = verbs.destroy_qp(qp); domain.has_ended(error)) return object_->release();
  // It stays for now. Reset, it touches no memory any more.
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  const bool is_quiet = verbs.modify_qp(qp, &attr, IBV_QP_STATE) == 0;
  // Else what was posted may touch any of it.
  const auto opened = is_quiet ? Domain::Opened::nothing() : Domain::Opened::all();
  domain.end([&verbs, qp] { return verbs.destroy_qp(qp); }, opened);
  object_->release();
}

void QueuePair::reset(std::vector<Flight>* back) {
  // A new object each time: packets of the old connection that are still under way find nobody by its number.
  destroy();
  batch_.clear();
  pieces_.clear();
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].used) continue;
    back->push_back(std::move(slots_[i].flight));
    free_slot(i);
  }
  for (Flight& flight : failed_) back->push_back(std::move(flight));
  failed_.clear();
  requests_ = messages_ = 0;
  proving_ = false;
}

/// Messages take of the chunks' requests what the device does not have beside them.
std::uint32_t QueuePair::chunk_depth() const {
  return options_.send_depth - std::min(options_.send_depth, messages_ - std::min(messages_, message_room_));
}

bool QueuePair::has_message_room() const {
  return messages_ < options_.messages && requests_ + messages_ < options_.send_depth + message_room_;
}

Status QueuePair::post_message(std::uint32_t place, const ibv_sge& bytes) {
  ibv_sge piece = bytes;
  ibv_send_wr request{};
  request.wr_id = number_of(kMessageBit | place, false);
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  if (bytes.length <= inline_max_) request.send_flags |= IBV_SEND_INLINE;
  ibv_send_wr* bad = nullptr;
  const int error = lane_.nic->domain->verbs().post_send(qp_, &request, &bad);
  if (error != 0) return failed("posting a message", error);
  ++messages_;
  return {};
}

Status QueuePair::post_receive(std::uint32_t place, const ibv_sge& room) {
  ibv_sge piece = room;
  ibv_recv_wr request{};
  request.wr_id = number_of(kReceiveBit | place, false);
  request.sg_list = &piece;
  request.num_sge = room.length == 0 ? 0 : 1;
  ibv_recv_wr* bad = nullptr;
  const int error = lane_.nic->domain->verbs().post_recv(qp_, &request, &bad);
  return error == 0 ? Status() : failed("posting a receive", error);
}

wire::QueuePairEndpoint QueuePair::endpoint() const {
  wire::QueuePairEndpoint end{.number = number(),
                              .lid = lid_,
                              .gid = to_wire(gid_.bytes),
                              .mtu = mtu_,
                              .reads_in = lane_.nic->reads_in,
                              .reads_out = lane_.nic->reads_out};
  object_->tell(&end);
  return end;
}

std::uint64_t QueuePair::number_of(std::uint32_t slot, bool last) const {
  return std::uint64_t{epoch_} << 32 | slot | (last ? kLastBit : 0);
}

std::uint32_t QueuePair::take_slot(const Chunk& chunk) {
  const std::uint32_t index = free_.back();
  free_.pop_back();
  slots_[index].flight = {.chunk = chunk, .cancelled = false, .struck = false, .failure = {}, .immediate = 0};
  slots_[index].used = true;
  slots_[index].failed = false;
  ++used_;
  bytes_posted_ += chunk.bytes;
  return index;
}

void QueuePair::free_slot(std::uint32_t index) {
  Slot& slot = slots_[index];
  slot.used = false;
  requests_ -= std::min(requests_, slot.requests);
  bytes_posted_ -= slot.flight.chunk.bytes;
  free_.push_back(index);
  --used_;
}

bool QueuePair::add_run(Operation op, std::uint64_t remote, std::uint32_t rkey, const Keys& local, std::uint32_t size,
                        std::size_t first) {
  if (pieces_.size() == pieces_.capacity()) return false;  // Requests point into it.
  if (batch_.size() > first) {
    ibv_send_wr& last = batch_.back();
    const bool goes_on = last.wr.rdma.remote_addr + run_bytes_ == remote && run_bytes_ + size <= lane_.nic->message_max;
    ibv_sge& end = pieces_.back();
    if (goes_on && end.lkey == local.lkey && end.addr + end.length == local.iova) {
      end.length += size;
      run_bytes_ += size;
      return true;
    }
    const std::uint32_t most = op == Operation::kWrite ? sges_ : read_sges_;
    if (goes_on && last.num_sge < static_cast<int>(most)) {
      pieces_.push_back({.addr = local.iova, .length = size, .lkey = local.lkey});
      ++last.num_sge;
      run_bytes_ += size;
      return true;
    }
  }
  if (requests_ + (batch_.size() - first) >= chunk_depth()) return false;
  pieces_.push_back({.addr = local.iova, .length = size, .lkey = local.lkey});
  ibv_send_wr& request = batch_.emplace_back();
  request.sg_list = &pieces_.back();
  request.num_sge = 1;
  request.opcode = op == Operation::kWrite ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
  request.wr.rdma.remote_addr = remote;
  request.wr.rdma.rkey = rkey;
  run_bytes_ = size;
  return true;
}

bool QueuePair::add_piece(const Chunk& chunk, const Piece& piece, const RemoteKey& remote, std::size_t first,
                          Status* why) {
  std::uint64_t done = 0;
  while (done < piece.size) {
    const auto address = reinterpret_cast<std::uintptr_t>(piece.local) + done;
    const std::uint64_t most = std::min<std::uint64_t>({piece.size - done, kRunMax, lane_.nic->message_max});
    const Keys local = lane_.memory.find(address, most);
    if (!local) {
      *why = Status(Code::kUnsupported, base::format("the local memory at {:#x} is not registered with {}", address,
                                                     lane_.nic->device.name))
                 .with_scope(Scope::kPath)
                 .with_buffer(BufferState::kUntouched);
      return false;
    }
    from_gpu_ = from_gpu_ || local.gpu >= 0;
    const auto size = static_cast<std::uint32_t>(local.size);
    if (!add_run(chunk.op, remote.iova + piece.remote + done, remote.rkey, local, size, first)) return false;
    done += size;
  }
  return true;
}

void QueuePair::try_inline(const Chunk& chunk, std::size_t first) {
  // The CPU copies what is inlined.
  if (from_gpu_ || chunk.op != Operation::kWrite || chunk.bytes > inline_max_ || batch_.size() != first + 1) return;
  batch_.back().send_flags |= IBV_SEND_INLINE;
}

/// An empty queue has no room for it, so none ever will.
Status QueuePair::never_fits(const Chunk& chunk) const {
  return Status(Code::kUnsupported, base::format("{} pieces need more work requests than the {} of a queue pair",
                                                 chunk.pieces.size(), options_.send_depth))
      .with_scope(Scope::kPath)
      .with_device(lane_.nic->device.name)
      .with_buffer(BufferState::kUntouched)
      .with_advice("raise the parameter send_depth");
}

void QueuePair::begin_immediates(std::uint32_t receives, std::uint32_t credits) {
  words_in_.begin(receives);
  words_out_.begin(credits);
}

/// Writes of no bytes, for the words before the chunk's last one.
bool QueuePair::add_words(std::span<const std::uint32_t> words) {
  for (const std::uint32_t word : words) {
    if (requests_ >= chunk_depth()) return false;
    ibv_send_wr request{};
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request.imm_data = htonl(word);
    batch_.push_back(request);
    ++requests_;
  }
  return true;
}

QueuePair::Staged QueuePair::stage(const Chunk& chunk, const RemoteKey& remote, Status* why) {
  const bool counted = chunk.covered && chunk.op == Operation::kWrite;
  const proto::ImmediateWords words =
      counted ? words_out_.words_for(chunk.transfer, chunk.index) : proto::ImmediateWords();
  return try_stage(chunk, remote, words, why);
}

/// No bytes: still one request, whose end is the chunk's.
bool QueuePair::add_empty(const Chunk& chunk, const RemoteKey& remote) {
  if (requests_ >= chunk_depth()) return false;
  ibv_send_wr request{};
  request.opcode = chunk.op == Operation::kWrite ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
  if (object_->is_unordered()) {  // Reliable connections look at no key then.
    request.wr.rdma.remote_addr = remote.iova;
    request.wr.rdma.rkey = remote.rkey;
  }
  batch_.push_back(request);
  return true;
}

/// Gives the chunk's requests their numbers, and those a signal that tell of its end. How many there are.
std::uint32_t QueuePair::number_requests(std::uint32_t slot, std::size_t first) {
  const auto count = static_cast<std::uint32_t>(batch_.size() - first);
  const bool all = object_->is_unordered();
  for (std::size_t i = first; i < batch_.size(); ++i) {
    const bool tells = all || i + 1 == batch_.size();
    batch_[i].wr_id = number_of(slot, tells);
    if (tells) batch_[i].send_flags |= IBV_SEND_SIGNALED;
  }
  slots_[slot].to_tell = all ? count : 1;
  return count;
}

QueuePair::Staged QueuePair::try_stage(const Chunk& chunk, const RemoteKey& remote, const proto::ImmediateWords& words,
                                       Status* why) {
  const std::uint32_t requests_before = requests_;
  const std::size_t first_of_all = batch_.size();
  const std::size_t first_piece = pieces_.size();
  const std::uint64_t keys_of = lane_.memory.version();
  from_gpu_ = false;
  bool fits = !free_.empty() && (words.count == 0 || add_words(words.all().first(words.count - 1u)));
  const std::size_t first = batch_.size();
  for (std::size_t i = 0; fits && i < chunk.pieces.size(); ++i) {
    fits = add_piece(chunk, chunk.pieces[i], remote, first, why);
  }
  if (fits && batch_.size() == first) {
    fits = add_empty(chunk, remote);
  }
  if (!fits) {
    batch_.resize(first_of_all);
    pieces_.resize(first_piece);
    requests_ = requests_before;
    const bool is_empty = requests_ == 0 && chunk_depth() == options_.send_depth;
    if (why->ok() && is_empty && words.count > 1) return try_stage(chunk, remote, {}, why);
    if (why->ok() && is_empty) *why = never_fits(chunk);
    return why->ok() ? Staged::kNoRoom : Staged::kRefused;
  }
  try_inline(chunk, first);
  const std::uint32_t slot = take_slot(chunk);
  slots_[slot].keys_of = keys_of;
  slots_[slot].requests = number_requests(slot, first_of_all);
  if (words.count > 0) {
    ibv_send_wr& last = batch_.back();
    last.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    last.imm_data = htonl(words.words[words.count - 1u]);
    slots_[slot].flight.immediate = words_out_.sent(words, chunk.transfer);
  }
  requests_ = requests_before + slots_[slot].requests;
  return Staged::kYes;
}

Status QueuePair::flush() {
  if (batch_.empty()) return {};
  for (std::size_t i = 0; i + 1 < batch_.size(); ++i) batch_[i].next = &batch_[i + 1];
  const int error = object_->post(qp_, batch_.data());
  batch_.clear();
  pieces_.clear();
  return error == 0 ? Status() : failed("posting work requests", error);
}

bool QueuePair::cancel(std::uint64_t transfer) {
  bool found = false;
  for (Slot& slot : slots_) {
    if (!slot.used || slot.flight.chunk.transfer != transfer) continue;
    slot.flight.cancelled = true;
    found = true;
  }
  return found;
}

bool QueuePair::has_cancelled() const {
  return std::ranges::any_of(slots_, [](const Slot& slot) { return slot.used && slot.flight.cancelled; });
}

Status QueuePair::failure_of(const ibv_wc& wc) const {
  const std::string text = base::format("{}: queue pair {}: {} (vendor code {:#x})", lane_.nic->describe(), wc.qp_num,
                                        to_string(wc.status), wc.vendor_err);
  Status status;
  switch (wc.status) {
    case IBV_WC_REM_ACCESS_ERR:
      status = Status(Code::kDenied, text)
                   .with_scope(Scope::kRequest)
                   .with_advice("the peer's region was closed, or does not give this right");
      break;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
      status = Status(Code::kFailed, text).with_scope(Scope::kRequest);
      break;
    default:
      status = Status(Code::kDisconnected, text).with_scope(Scope::kPath);
  }
  return status.with_device(lane_.nic->device.name);
}

void QueuePair::count(std::uint64_t QueuePairFlow::*what, std::uint64_t by) {
  flow_.*what += by;
  lane_.flow.*what += by;
}

void QueuePair::count_error(ibv_wc_status status) {
  if (status == IBV_WC_SUCCESS || status == IBV_WC_WR_FLUSH_ERR) return;
  count(&QueuePairFlow::errors);
  if (status == IBV_WC_RNR_RETRY_EXC_ERR) count(&QueuePairFlow::receiver_not_ready);
}

void QueuePair::count_chunk(const Slot& slot) {
  const Chunk& chunk = slot.flight.chunk;
  carried_full_ = carried_full_ || has_full_packets(slot);
  count(chunk.op == Operation::kWrite ? &QueuePairFlow::bytes_out : &QueuePairFlow::bytes_in, chunk.bytes);
  count(&QueuePairFlow::operations, slot.requests);
}

void QueuePair::on_ready() {
  if (was_ready_) count(&QueuePairFlow::reconnects);
  was_ready_ = true;
}

Status QueuePair::view(const Piece& piece, QueuePairView* out) const {
  if (piece.size > 0) {
    const auto address = reinterpret_cast<std::uintptr_t>(piece.local);
    const Keys local = lane_.memory.find(address, piece.size);
    if (!local || local.size < piece.size) {
      return Status(Code::kUnsupported, base::format("the local memory at {:#x} is not registered as one piece with {}",
                                                     address, lane_.nic->device.name))
          .with_scope(Scope::kPath)
          .with_device(lane_.nic->device.name);
    }
    out->local_key = local.lkey;
    out->local_address = local.iova;
  }
  RawQueue raw;
  if (lane_.nic->domain->verbs().raw_queue(qp_, &raw) != 0) return {};
  out->send_queue = raw.entries;
  out->send_queue_entries = raw.count;
  out->send_queue_stride = raw.stride;
  out->doorbell_record = raw.doorbell_record;
  out->doorbell = raw.doorbell;
  return {};
}

bool QueuePair::may_use(std::uintptr_t address, std::size_t size, std::uint64_t before) const {
  const auto lies_there = [&](const Piece& piece) {
    const auto at = reinterpret_cast<std::uintptr_t>(piece.local);
    return at < address ? address - at < piece.size : at - address < size;
  };
  return std::ranges::any_of(slots_, [&](const Slot& slot) {
    return slot.used && slot.keys_of < before && std::ranges::any_of(slot.flight.chunk.pieces, lies_there);
  });
}

Completed QueuePair::on_message(const ibv_wc& wc, std::uint32_t low) {
  Completed result;
  const bool receive = (low & kReceiveBit) != 0;
  if (!receive) messages_ -= std::min(messages_, 1u);
  // Receives that are flushed tell nothing new: whose request failed hears of it, with the cause.
  if (receive && wc.status == IBV_WC_WR_FLUSH_ERR) return result;
  result.place = low & (kMessageBit - 1);
  result.bytes = wc.byte_len;
  result.kind = receive ? Completed::Kind::kReceived : Completed::Kind::kSent;
  if (wc.status == IBV_WC_SUCCESS) {
    if (receive && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
      result.kind = Completed::Kind::kImmediate;
      result.word = ntohl(wc.imm_data);
      return result;
    }
    count(receive ? &QueuePairFlow::messages_in : &QueuePairFlow::messages_out);
    return result;
  }
  if (fault_.ok()) fault_ = failure_of(wc);
  result.kind = Completed::Kind::kFault;
  result.cause = fault_;
  return result;
}

void QueuePair::note_failure(Flight& flight, const ibv_wc& wc, bool is_first) const {
  const bool own = is_own_fault(wc.status);
  const bool strikes = is_first && wc.status != IBV_WC_WR_FLUSH_ERR && flight.failure.ok();
  if (!own && !strikes) return;
  flight.failure = failure_of(wc);
  flight.struck = !own;
}

Completed QueuePair::on_completion(const ibv_wc& wc) {
  Completed result;
  if (wc.wr_id >> 32 != epoch_ || qp_ == nullptr) return result;  // Of an earlier life.
  const auto low = static_cast<std::uint32_t>(wc.wr_id);
  const std::uint32_t index = low & ~kLastBit;
  count_error(wc.status);
  if (index != kProbeSlot && (index & (kReceiveBit | kMessageBit)) != 0) return on_message(wc, index);
  const bool good = wc.status == IBV_WC_SUCCESS;
  // Datagrams go on behind one that was at fault itself; where a device does not, the others come back flushed.
  const bool breaks = !good && (!object_->is_unordered() || index == kProbeSlot || !is_own_fault(wc.status));
  const bool is_first = breaks && fault_.ok();
  if (is_first) {
    lost_full_ = wc.status == IBV_WC_RETRY_EXC_ERR &&
                 std::ranges::any_of(slots_, [this](const Slot& slot) { return slot.used && has_full_packets(slot); });
    fault_ = failure_of(wc);
    is_fault_own_ = index != kProbeSlot && is_own_fault(wc.status);
  }
  if (breaks) {
    result.kind = Completed::Kind::kFault;
    result.cause = fault_;
  }
  if (index == kProbeSlot) {
    proving_ = false;
    if (good) result.kind = Completed::Kind::kProved;
    return result;
  }
  if (index >= slots_.size() || !slots_[index].used) return result;
  Slot& slot = slots_[index];
  if (!good) note_failure(slot.flight, wc, is_first);
  if ((low & kLastBit) == 0) return result;
  slot.failed = slot.failed || breaks;
  if (--slot.to_tell > 0) return result;
  if (!slot.failed) {
    if (slot.flight.failure.ok()) count_chunk(slot);
    result.kind = Completed::Kind::kChunk;
    static_assert(std::is_trivially_copyable_v<Chunk>);  // It stays in the slot: its size is still to be given back.
    result.flight = std::move(slot.flight);
  } else {
    failed_.push_back(slot.flight);
  }
  free_slot(index);
  return result;
}

}  // namespace hawser::backend::verbs
