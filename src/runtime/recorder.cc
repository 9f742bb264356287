#include "runtime/recorder.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>

#include "base/try.h"

namespace hawser::runtime {

Result<Recorder> Recorder::open(const std::string& folder, std::string_view name, const Site& site, Instant now) {
  HAWSER_TRY_ASSIGN(base::LeftFile file, base::LeftFile::create(folder, name, flight_shape()));
  Recorder recorder(std::move(file));
  FlightHeader& header = recorder.header();
  header.version = kFlightVersion;
  header.entries = kFlightEntries;
  header.entry_bytes = sizeof(FlightEntry);
  header.process = static_cast<std::uint32_t>(::getpid());
  header.process_namespace = base::own_process_namespace();
  header.rank = site.rank;
  header.size = site.size;
  header.opened_ns = header.last_ns = now.ns();
  header.opened_wall_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  put_text(header.world_name, site.world);
  put_text(header.agent, site.agent);
  std::atomic_ref(header.magic).store(kFlightMagic, std::memory_order_release);
  return recorder;
}

FlightEntry& Recorder::place(std::uint64_t stamp) {
  auto* const entries = reinterpret_cast<FlightEntry*>(file_.memory().data() + kFlightHeader);
  return entries[(stamp - 1) % kFlightEntries];
}

std::uint64_t Recorder::begin(FlightEntry entry, Instant now) {
  FlightEntry& to = place(++last_);
  std::atomic_ref(to.stamp).store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);  // Whoever sees new bytes sees that there is no stamp.
  entry.stamp = 0;
  entry.state = FlightState::kBegun;
  entry.begun_ns = now.ns();
  entry.ended_ns = 0;
  std::memcpy(&to, &entry, sizeof entry);
  std::atomic_ref(to.stamp).store(last_, std::memory_order_release);
  std::atomic_ref(header().last_ns).store(now.ns(), std::memory_order_relaxed);
  return last_;
}

void Recorder::change_algorithm(std::uint64_t stamp, std::uint32_t algorithm) {
  FlightEntry& entry = place(stamp);
  if (stamp == 0 || std::atomic_ref(entry.stamp).load(std::memory_order_relaxed) != stamp) return;
  std::atomic_ref(entry.algorithm).store(algorithm, std::memory_order_relaxed);
}

void Recorder::end(std::uint64_t stamp, Code code, Instant now) {
  FlightEntry& entry = place(stamp);
  if (stamp == 0 || std::atomic_ref(entry.stamp).load(std::memory_order_relaxed) != stamp) return;
  entry.ended_ns = now.ns();
  entry.code = static_cast<std::uint8_t>(code);
  std::atomic_ref(entry.state).store(FlightState::kEnded, std::memory_order_release);
  std::atomic_ref(header().last_ns).store(now.ns(), std::memory_order_relaxed);
}

}  // namespace hawser::runtime
