#include "preload/unwind/module_epoch.h"

namespace memtrace::unwind {
namespace {

constinit std::atomic<InstanceOfFunction> g_instance_of{nullptr};

// Per tag: the epoch in which it was last verified, plus one. Zero pages until
// a plugin allocates.
constinit std::atomic<uint32_t> g_verified[1 << 16] = {};
constexpr uint32_t kRetired = UINT32_MAX;
constinit std::atomic<uint32_t> g_retired{0};

}  // namespace

constinit std::atomic<uint64_t> g_epoch_word{0};
constinit std::atomic<bool> g_unseen_closes{false};

void ExpectUnseenCloses() {
  if (g_unseen_closes.exchange(true)) return;
  BeginClose();
  EndClose(true);  // what was kept is not asked for
}

void SetInstanceOf(InstanceOfFunction function) {
  g_instance_of.store(function, std::memory_order_release);
}

uint16_t InstanceOfModule(const dl_find_object* object, uintptr_t pc, bool* cacheable) {
  *cacheable = true;
  const InstanceOfFunction function = g_instance_of.load(std::memory_order_acquire);
  return function == nullptr ? kPermanentTag : function(object, pc, cacheable);
}

void BeginClose() { g_epoch_word.fetch_add(1, std::memory_order_seq_cst); }

void EndClose(bool unloaded) {
  // The epoch first: between the two steps tagged rules are still refused.
  if (unloaded) g_epoch_word.fetch_add(uint64_t{1} << 32, std::memory_order_seq_cst);
  uint64_t word = g_epoch_word.load(std::memory_order_relaxed);
  while (EpochWord{word}.closing() &&  // or it began before a fork
         !g_epoch_word.compare_exchange_weak(word, word - 1, std::memory_order_seq_cst)) {
  }
}

void ForgetCloses() {
  // Another thread may have unloaded something, and not told.
  g_epoch_word.store(uint64_t{CurrentEpoch().epoch() + 1} << 32, std::memory_order_seq_cst);
}

void RetireTag(uint16_t tag) {
  if (g_verified[tag].exchange(kRetired, std::memory_order_acq_rel) != kRetired)
    g_retired.fetch_add(1);
}

bool IsRetired(uint16_t tag) { return g_verified[tag].load(std::memory_order_relaxed) == kRetired; }

uint32_t RetiredTags() { return g_retired.load(std::memory_order_relaxed); }

bool TagIsCurrent(uint16_t tag, uintptr_t pc) {
  const EpochWord before = CurrentEpoch();
  if (before.closing()) return false;
  const uint32_t mark = before.epoch() + 1;
  uint32_t verified = g_verified[tag].load(std::memory_order_acquire);
  if (verified == mark && !ClosesAreUnseen()) return true;
  if (verified == kRetired) return false;
  dl_find_object object;
  bool cacheable;
  if (_dl_find_object(reinterpret_cast<void*>(pc), &object) != 0) return false;
  if (InstanceOfModule(&object, pc, &cacheable) != tag || !cacheable) return false;
  // An unload in between: the answer holds for this stack, not for the epoch.
  if (CurrentEpoch().word == before.word) {
    g_verified[tag].compare_exchange_strong(verified, mark, std::memory_order_release);
  }
  return true;
}

}  // namespace memtrace::unwind
