#include "backend/stream/target.h"

#include "base/bytes.h"

namespace hawser::backend::stream {

Target::Target(RegionTable& regions, EventQueue& events, Path* path, FileDesk* files, std::string peer,
               std::uint64_t small_max, std::shared_ptr<PeerAccount> account)
    : events_(events),
      path_(path),
      charges_(std::move(account), std::move(peer)),
      bound_(regions, files, charges_.account()),
      desk_(files, this, path, charges_.account()),
      writes_({.regions = bound_, .charges = charges_, .acks = acks_, .desk = desk_}, events, path),
      reads_({.regions = bound_, .charges = charges_, .acks = acks_, .desk = desk_}, small_max) {}

bool Target::on_landed(std::span<const std::byte> meta) {
  if (meta.size() % 12 != 0) return false;
  base::ByteReader in(meta);
  while (!in.at_end()) {
    const std::uint64_t transfer = in.u64();
    events_.arrival(path_, transfer, in.u32());
  }
  return true;
}

void Target::on_file(FileJob job) {
  if (job.op == Operation::kWrite) {
    writes_.on_file(job);
  } else {
    reads_.on_file(job);
  }
}

void Target::stage_acks(Outlet& control) {
  charges_.stage_quotas(control);
  acks_.stage(control);
}

void Target::recheck(std::span<Inlet> inlets, std::span<Outlet> outlets) {
  writes_.stop_closed(inlets);
  reads_.stop_closed(outlets);
}

bool Target::let_go_region(std::uint32_t index, std::uint32_t generation, std::span<Inlet> inlets,
                           std::span<Outlet> outlets) {
  writes_.stop_region(index, generation, inlets);
  return reads_.stop_region(index, generation, outlets);
}

bool Target::next_keep_period(std::span<Inlet> inlets, std::span<Outlet> outlets) {
  const bool is_late = reads_.is_late();
  reads_.begin_period(++period_);
  if (desk_.held() > 0) {
    writes_.take_back_staged(inlets, period_);
    reads_.take_back_staged(outlets);
  }
  return !is_late;
}

void Target::clear() {
  desk_.abandon();
  writes_.clear();
  reads_.clear();
  desk_.forget_held();
  acks_.clear();
  bound_.clear();
}

}  // namespace hawser::backend::stream
