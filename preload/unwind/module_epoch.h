// What the stack engine knows of modules that come and go.
//
// A rule of a permanent module is right for ever. A rule of a module that can be
// unloaded carries the tag of its module instance, and is used only while that
// instance is known to be current:
//
//   g_epoch_word = { epoch : 32, closing : 32 }
//     closing   dlclose calls under way: tagged rules are neither used nor kept
//     epoch     real unloads so far: a tag verified in this epoch is current
//
// The wrapper of dlclose does  BeginClose(); real dlclose; EndClose(unloaded). A
// library that was opened with RTLD_DEEPBIND, or in a namespace of its own, calls
// libc's instead: see ExpectUnseenCloses(). A dlopen changes nothing: it cannot make a
// rule wrong whose module is loaded.
//
// Threads: any. No locks, no allocation, no loader calls but _dl_find_object.

#ifndef MEMTRACE_PRELOAD_UNWIND_MODULE_EPOCH_H_
#define MEMTRACE_PRELOAD_UNWIND_MODULE_EPOCH_H_

#include <dlfcn.h>

#include <atomic>
#include <cstdint>

namespace memtrace::unwind {

inline constexpr uint16_t kPermanentTag = 0;
inline constexpr uint16_t kNoTag = 0xffff;

// The instance of the module that covers `pc`: kPermanentTag, a tag that no
// other instance of this process ever has, or kNoTag when it is not known (the
// frame is then recorded without an instance). `*cacheable` is true on entry;
// false means that its rules must not be kept, as for modules that glibc unloads
// by itself. It runs inside a capture: no lock, no allocation, no loader call.
using InstanceOfFunction = uint16_t (*)(const dl_find_object* object, uintptr_t pc,
                                        bool* cacheable);

// Sets the function that gives modules their instances; without one every module is permanent. To
// be called before the first capture.
void SetInstanceOf(InstanceOfFunction function);
uint16_t InstanceOfModule(const dl_find_object* object, uintptr_t pc, bool* cacheable);

// To be called around the real dlclose; `unloaded`: the loader did unmap something. Module
// instances must be brought up to date before EndClose().
void BeginClose();
void EndClose(bool unloaded);
// To be called in a fork child: of the calls that were under way only the
// caller's own may still be.
void ForgetCloses();

// To be called when modules may be unloaded unseen from now on, by code that calls libc's
// dlclose past the wrapper. Then a tag is asked for each time, and no stack through such a
// module is taken again.
void ExpectUnseenCloses();
extern std::atomic<bool> g_unseen_closes;
inline bool ClosesAreUnseen() { return g_unseen_closes.load(std::memory_order_relaxed); }

// No module instance with this tag will ever be there again.
void RetireTag(uint16_t tag);
bool IsRetired(uint16_t tag);
// How many were so far.
uint32_t RetiredTags();

struct EpochWord {
  uint64_t word;
  uint32_t epoch() const { return static_cast<uint32_t>(word >> 32); }
  bool closing() const { return static_cast<uint32_t>(word) != 0; }
};

extern std::atomic<uint64_t> g_epoch_word;
inline EpochWord CurrentEpoch() { return {g_epoch_word.load(std::memory_order_acquire)}; }

// Is `tag` the instance that covers `pc` now? `pc` is on the caller's stack, so
// its module cannot go away meanwhile.
bool TagIsCurrent(uint16_t tag, uintptr_t pc);

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_MODULE_EPOCH_H_
