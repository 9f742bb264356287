#include "backend/chunk_queue.h"

namespace hawser::backend {

Job* ChunkQueue::make(Path& path, const Chunk& chunk) {
  const auto entry = jobs_.emplace();
  if (!entry) return nullptr;
  entry.value->id = entry.id;
  entry.value->path = &path;
  entry.value->chunk = chunk;
  return entry.value;
}

ChunkQueue::Flow* ChunkQueue::find(const Job& job) {
  for (Flow& flow : flows_of(job)) {
    if (flow.transfer == job.chunk.transfer && flow.path == job.path) return &flow;
  }
  return nullptr;
}

void ChunkQueue::schedule(Job& job) {
  Flow* flow = find(job);
  if (flow == nullptr) {
    const auto entry = flows_.emplace();  // never full: there are no more flows than jobs
    flow = entry.value;
    flow->id = entry.id;
    flow->path = job.path;
    flow->transfer = job.chunk.transfer;
    flows_of(job).push_back(*flow);
  }
  flow->bytes += job.chunk.bytes;
  flow->jobs.push_back(job);
}

Job* ChunkQueue::front() {
  for (Flows& flows : classes_) {
    if (Flow* flow = flows.front()) return flow->jobs.front();
  }
  return nullptr;
}

std::uint64_t ChunkQueue::transfer_bytes(const Job& job) {
  const Flow* flow = find(job);
  return flow == nullptr ? job.chunk.bytes : flow->bytes;
}

void ChunkQueue::rotate(const Job& job) {
  Flow* flow = find(job);
  if (flow == nullptr) return;
  Flows& flows = flows_of(job);
  Flows::erase(*flow);
  flows.push_back(*flow);
}

void ChunkQueue::erase(Job& job) {
  if (job.hook.is_linked()) {
    Flow* flow = find(job);
    job.hook.unlink();
    // A job that waits elsewhere may share its transfer with a flow that still has jobs.
    if (flow != nullptr && flow->jobs.empty()) flows_.erase(flow->id);
  }
  jobs_.erase(job.id);
}

}  // namespace hawser::backend
