// Own memory: what the tracer itself needs, from mmap only.
//
// Counted, so that the report can take it off the program's figures, and named
// in /proc/self/maps where the kernel can name anonymous memory. Page faults of
// the tracer are measured around the places that cause them.

#ifndef MEMTRACE_PRELOAD_OWN_MEMORY_H_
#define MEMTRACE_PRELOAD_OWN_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace memtrace {

// Zeroed, page aligned. Null when the kernel refuses. `touch` takes the page
// faults now instead of on the event path.
void* OwnMap(size_t bytes, bool touch);
// The same, untouched, at a multiple of `alignment`, which is a power of two above a page.
void* OwnMapAligned(size_t bytes, size_t alignment);
void OwnUnmap(void* address, size_t bytes);

// The memory that OwnMap() gave out and that is still mapped, and the stack engine's table, as far
// as they are known: of thousands of mappings the latest may be missing.
struct OwnRange {
  uintptr_t begin, end;
};
size_t OwnRanges(OwnRange* out, size_t capacity);

// When memory of ours came and went, for as long as somebody takes notice: a fault there is ours,
// also where libc's memcpy or the kernel took it. A small table; what has no room is lost.
struct OwnMemoryChange {
  uint64_t ns;  // CLOCK_MONOTONIC, before the one and before the other
  uintptr_t begin, end;
  bool came;
};
class OwnMemoryChanges {
 public:
  static void Watch();   // from now on
  static void Forget();  // in a fork child
  static bool AreMany();
  // Takes one out; false: there is none. One thread at a time.
  static bool Take(OwnMemoryChange* change);
};

uint64_t own_bytes();  // mapped
uint64_t own_minor_faults();
// What is private memory of ours in the memory map: all but the rings, which are the trace file's,
// and with the tables of the stack engine that were given back but stay mapped.
uint64_t own_private_bytes();
void CountOwnBytes(int64_t bytes);
void CountRingBytes(int64_t bytes);
void CountOwnMinorFaults(uint64_t faults);
// Page faults of a page of fresh memory that is read first and written then, by trying it:
// 2 where the kernel maps its page of zeros for the reading, else 1.
uint32_t FaultsOfPageReadFirst();
// To be called in a fork child, whose faults the kernel counts from 0 again.
void ForgetOwnMinorFaults();

// Counts the minor faults this thread takes in a scope as the tracer's own.
// Costs two getrusage calls: for slow paths. Scopes may nest; the outermost counts.
class OwnFaultsScope {
 public:
  OwnFaultsScope();
  ~OwnFaultsScope();
  OwnFaultsScope(const OwnFaultsScope&) = delete;
  OwnFaultsScope& operator=(const OwnFaultsScope&) = delete;

  // The thread has left its scopes for good, by a jump.
  static void ForgetOwn();

 private:
  bool outermost_ = false;
  int64_t before_ = -1;  // where the kernel may not be asked
};

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_OWN_MEMORY_H_
