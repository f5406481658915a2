#include "preload/kept_records.h"

#include <atomic>
#include <cstring>
#include <new>

#include "format/trace_format.h"
#include "preload/own_memory.h"
#include "preload/rounding.h"
#include "preload/signals_blocked.h"

namespace memtrace {
namespace {

// A block's place in time: the segments that were begun when it was written, or one of these.
constexpr uint32_t kNotInTheTrace = 0;
constexpr uint32_t kThereForEver = UINT32_MAX;
constexpr uint32_t kBeingTold = UINT32_MAX - 1;

// What is to be noted in Block::told. The number is read first: a block that a segment begun
// meanwhile has is told once more than it need be.
uint32_t TellRecords(TraceFile& file, const void* records, size_t bytes) {
  const uint32_t begun = file.keeps_newest() ? file.segments_begun() : kNotInTheTrace;
  TraceFile::Keep kept = TraceFile::Keep::kForEver;
  if (!file.AppendRecords(records, bytes, TraceFile::Keep::kForEver, &kept)) return kNotInTheTrace;
  return kept == TraceFile::Keep::kForEver ? kThereForEver : begun;
}

}  // namespace

// A copy of a block.
struct KeptRecords::Block {
  Block* next = nullptr;
  std::atomic<uint32_t> told{kNotInTheTrace};
  std::atomic<bool> needed{true};  // by events to come
  uint32_t bytes = 0;
  uint16_t module = 0;

  // It is not told again, unless it is not in the trace: there it still has to come, for the events
  // that there have been. Of one that is being told who does that sees to it.
  void OnceIsEnough() {
    uint32_t now = told.load(std::memory_order_seq_cst);
    while (now != kNotInTheTrace && now != kBeingTold &&
           !told.compare_exchange_weak(now, kThereForEver, std::memory_order_seq_cst)) {
    }
  }

  uint8_t* records() { return reinterpret_cast<uint8_t*>(this + 1); }
};

// Where copies lie: given out from the start, one piece of memory after another.
struct KeptRecords::Room {
  static constexpr size_t kBytes = 256 << 10;
  std::atomic<size_t> used{sizeof(Room)};
};

void* KeptRecords::RoomFor(size_t bytes) {
  bytes = Up(bytes, alignof(Block));
  if (bytes > Room::kBytes - sizeof(Room)) return nullptr;
  for (;;) {
    Room* room = room_.load(std::memory_order_acquire);
    if (room != nullptr) {
      const size_t at = room->used.fetch_add(bytes, std::memory_order_relaxed);
      if (at + bytes <= Room::kBytes) return reinterpret_cast<char*>(room) + at;
    }
    void* const memory = OwnMap(Room::kBytes, /*touch=*/false);
    if (memory == nullptr) return nullptr;
    auto* const made = new (memory) Room;
    if (!room_.compare_exchange_strong(room, made, std::memory_order_acq_rel)) {
      OwnUnmap(memory, Room::kBytes);
    }
  }
}

void KeptRecords::Append(TraceFile& file, const void* records, size_t bytes, uint16_t module) {
  const SignalsBlocked no_handler;
  const uint32_t told = TellRecords(file, records, bytes);
  if (told == kThereForEver) return;
  Keep(records, bytes, module, /*needed=*/true, told);
  if (told == kNotInTheTrace) NoteLost(file);
}

void KeptRecords::AppendOnce(TraceFile& file, const void* records, size_t bytes) {
  const SignalsBlocked no_handler;
  if (TellRecords(file, records, bytes) != kNotInTheTrace) return;
  Keep(records, bytes, /*module=*/0, /*needed=*/false, kNotInTheTrace);
  NoteLost(file);
}

void KeptRecords::Keep(const void* records, size_t bytes, uint16_t module, bool needed,
                       uint32_t told) {
  void* const memory = RoomFor(sizeof(Block) + bytes);
  if (memory == nullptr) return;
  auto* const block = new (memory) Block;
  block->told.store(told, std::memory_order_relaxed);
  block->needed.store(needed, std::memory_order_relaxed);
  block->bytes = static_cast<uint32_t>(bytes);
  block->module = module;
  memcpy(block->records(), records, bytes);
  Block* head = newest_.load(std::memory_order_relaxed);
  do block->next = head;
  while (!newest_.compare_exchange_weak(head, block, std::memory_order_release,
                                        std::memory_order_relaxed));
}

// Who asks next has to write.
void KeptRecords::NoteLost(TraceFile& file) {
  if (file.keeps_newest()) {
    told_for_.store(0, std::memory_order_relaxed);
  } else {
    file.NoteLostRecords();
  }
}

void KeptRecords::TellAgain(TraceFile& file) {
  Block* block = newest_.load(std::memory_order_acquire);
  if (block == nullptr) return;
  const SignalsBlocked no_handler;
  const uint32_t begun = file.keeps_newest() ? file.segments_begun() : kNotInTheTrace;
  if (file.keeps_newest()) {
    uint32_t last = told_for_.load(std::memory_order_relaxed);
    if (last == begun ||
        !told_for_.compare_exchange_strong(last, begun, std::memory_order_relaxed)) {
      return;
    }
  }
  uint64_t left = file.keeps_newest() ? file.segment_bytes() / 4 : UINT64_MAX;
  for (; block != nullptr; block = block->next) {
    uint32_t told = block->told.load(std::memory_order_relaxed);
    if (told == kThereForEver || told == kBeingTold) continue;
    if (told != kNotInTheTrace && told == begun) continue;
    const uint64_t bytes = Up(sizeof(format::BlockHeader) + block->bytes, format::kBlockAlignment);
    if (bytes > left) continue;
    if (!block->told.compare_exchange_strong(told, kBeingTold, std::memory_order_acquire)) continue;
    left -= bytes;
    const uint32_t now = TellRecords(file, block->records(), block->bytes);
    // In this order: either Drop() finds `now`, or this finds that it was there.
    block->told.store(now, std::memory_order_seq_cst);
    if (!block->needed.load(std::memory_order_seq_cst)) block->OnceIsEnough();
    if (now == kNotInTheTrace) {  // nor would the others be
      NoteLost(file);
      return;
    }
  }
}

void KeptRecords::Drop(uint16_t module) {
  for (Block* block = newest_.load(std::memory_order_acquire); block != nullptr;
       block = block->next) {
    if (block->module != module) continue;
    block->needed.store(false, std::memory_order_seq_cst);
    block->OnceIsEnough();
  }
}

void KeptRecords::Forget() {
  newest_.store(nullptr, std::memory_order_relaxed);
  told_for_.store(0, std::memory_order_relaxed);
  Room* const room = room_.load(std::memory_order_relaxed);
  if (room != nullptr) room->used.store(sizeof(Room), std::memory_order_relaxed);
}

}  // namespace memtrace
