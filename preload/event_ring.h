// EventRing: the events of one thread that are not in the trace file yet.
//
// A buffer in a shared mapping of the trace file: filled from the start by
// the thread that owns it, written out as a block by the same thread when full
// (spool), then filled from the start again. Nobody else touches it while the
// process lives; whoever reads the file after the process died finds what was
// not written out. So there is one hand-over, thread -> kernel -> reader:
//
//   the thread writes the event's words, then stores committed_bytes (release);
//   SIGKILL stops it between two instructions, and the pages stay;
//   the reader takes the words below committed_bytes.
//
// Reuse keeps the pages touched, so the steady state takes no page faults. A thread
// begins with a small ring and gets a large one when it has filled that: a process
// may have ten thousand threads that allocate a little.
// docs/event-ring.md tells the states and what a kill at each point leaves.

#ifndef MEMTRACE_PRELOAD_EVENT_RING_H_
#define MEMTRACE_PRELOAD_EVENT_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "format/trace_format.h"

namespace memtrace {

class EventRing {
 public:
  // The sizes that a ring's mapping may have, RingHeader and words together. Both have room for any
  // one event and any one stack behind a Restart().
  static constexpr size_t kBytes = 64 << 10;
  static constexpr size_t kSmallBytes = 12 << 10;

  // Takes `mapping` of `bytes` for block `sequence` of `thread`.
  void Attach(void* mapping, size_t bytes, uint32_t thread, uint32_t sequence) {
    header_ = static_cast<format::RingHeader*>(mapping);
    begin_ = reinterpret_cast<uint64_t*>(header_ + 1);
    bytes_ = bytes;
    Restart(thread, sequence, 0);
    Open();
  }
  void Detach() {
    header_ = nullptr;
    begin_ = next_ = nullptr;
    bytes_ = 0;
    limit_.store(nullptr, std::memory_order_relaxed);
  }
  bool attached() const { return header_ != nullptr; }
  void* mapping() const { return header_; }
  size_t bytes() const { return bytes_; }

  bool HasRoom(size_t words) const {
    return next_ + words <= limit_.load(std::memory_order_relaxed);
  }

  // Any thread: the ring has no room, so that its owner spools before its next event. Open()
  // takes it back; the owner alone does that.
  void AskToSpool() { limit_.store(nullptr, std::memory_order_relaxed); }
  void Open() {
    limit_.store(reinterpret_cast<uint64_t*>(reinterpret_cast<char*>(header_) + bytes_),
                 std::memory_order_relaxed);
  }
  uint64_t* next() const { return next_; }

  // Publishes the `words` written at next(): from here on they survive the process.
  void Commit(size_t words) {
    next_ += words;
    std::atomic_ref(header_->committed_bytes)
        .store(static_cast<uint32_t>(used_bytes()), std::memory_order_release);
  }

  const uint64_t* begin() const { return begin_; }
  size_t used_bytes() const {
    return static_cast<size_t>(reinterpret_cast<char*>(next_) - reinterpret_cast<char*>(begin_));
  }
  bool empty() const { return next_ == begin_; }

  // The owner was stopped anywhere and does not go on: what it had not committed is none.
  void DropUncommitted() { next_ = begin_ + header_->committed_bytes / sizeof(uint64_t); }

  // The content of the ring in `mapping` is in the file and another ring has taken over: a
  // reader that finds this mapping in the file passes it over.
  static void Disown(void* mapping) {
    std::atomic_ref(static_cast<format::RingHeader*>(mapping)->magic)
        .store(0, std::memory_order_release);
  }

  // For another thread than the owner: the block that the ring will become, and the bytes of whole
  // events that are in it now.
  struct Content {
    uint32_t thread, sequence, dropped_events, bytes;
  };
  // In the opposite order of Restart(): what is of two blocks has a number that is over.
  Content content() const {
    const uint32_t sequence = std::atomic_ref(header_->sequence).load(std::memory_order_acquire);
    const uint32_t dropped =
        std::atomic_ref(header_->dropped_events).load(std::memory_order_acquire);
    const uint32_t thread = std::atomic_ref(header_->thread).load(std::memory_order_acquire);
    return {thread, sequence, dropped,
            std::atomic_ref(header_->committed_bytes).load(std::memory_order_acquire)};
  }
  // Whether all that was copied since `before` was looked at is of that block: the owner has added
  // to it at most.
  bool StillHas(const Content& before) const {
    std::atomic_thread_fence(std::memory_order_acquire);
    const Content now = content();
    return now.thread == before.thread && now.sequence == before.sequence &&
           now.dropped_events == before.dropped_events && now.bytes >= before.bytes;
  }

  // The content is in the file: begin block `sequence`. Emptied first, numbered
  // second: a kill in between leaves an empty ring of a block that exists.
  void Restart(uint32_t thread, uint32_t sequence, uint32_t dropped_events) {
    next_ = begin_;
    std::atomic_ref(header_->committed_bytes).store(0, std::memory_order_release);
    std::atomic_ref(header_->thread).store(thread, std::memory_order_relaxed);
    std::atomic_ref(header_->dropped_events).store(dropped_events, std::memory_order_relaxed);
    header_->capacity_bytes = static_cast<uint32_t>(bytes() - sizeof(format::RingHeader));
    std::atomic_ref(header_->sequence).store(sequence, std::memory_order_release);
    std::atomic_ref(header_->magic).store(format::kRingMagic, std::memory_order_release);
  }
  void set_clock(uint64_t ticks, uint64_t ns) {
    header_->clock_ticks = ticks;
    header_->monotonic_ns = ns;
  }

 private:
  format::RingHeader* header_ = nullptr;
  uint64_t* begin_ = nullptr;
  uint64_t* next_ = nullptr;
  std::atomic<uint64_t*> limit_{nullptr};  // null: asked to spool, or detached
  size_t bytes_ = 0;
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_EVENT_RING_H_
