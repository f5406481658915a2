#include "preload/unwind/module_epoch.h"

namespace memtrace::unwind {
namespace {

constinit std::atomic<InstanceOfFunction> g_instance_of{nullptr};

// Per tag: the epoch in which it was last verified, plus one. Zero pages until
// a plugin allocates.
constinit std::atomic<uint32_t> g_verified[1 << 16] = {};

}  // namespace

constinit std::atomic<uint64_t> g_epoch_word{0};

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
  g_epoch_word.fetch_sub(1, std::memory_order_seq_cst);
}

bool TagIsCurrent(uint16_t tag, uintptr_t pc) {
  const EpochWord before = CurrentEpoch();
  if (before.closing()) return false;
  const uint32_t mark = before.epoch() + 1;
  if (g_verified[tag].load(std::memory_order_acquire) == mark) return true;
  dl_find_object object;
  bool cacheable;
  if (_dl_find_object(reinterpret_cast<void*>(pc), &object) != 0) return false;
  if (InstanceOfModule(&object, pc, &cacheable) != tag || !cacheable) return false;
  // An unload in between: the answer holds for this stack, not for the epoch.
  if (CurrentEpoch().word == before.word) {
    g_verified[tag].store(mark, std::memory_order_release);
  }
  return true;
}

}  // namespace memtrace::unwind
