// What is read out of glibc's struct pthread, whose layout is not public: a field is found by the
// value that it must have: the thread's id, or the bounds of a stack that ends near the struct.

#ifndef MEMTRACE_PRELOAD_UNWIND_THREAD_DESCRIPTOR_H_
#define MEMTRACE_PRELOAD_UNWIND_THREAD_DESCRIPTOR_H_

#include <cstdint>

namespace memtrace::unwind {

// The struct is smaller, and so is where its fields are looked for.
inline constexpr uintptr_t kDescriptorBytes = 2304;
// What FindStackBlock() looks for ends before this: at 1712 in glibc 2.26 to 2.40. The page behind
// the one that it is in may be another's, and to look at that may have effects: memory comes into
// being, or, with a userfaultfd or a file system of the program's own, a thread waits for itself.
inline constexpr uintptr_t kStackBlockEnd = 1792;

// Where in it the thread id is: found in the one of this thread, whose id is `tid`. 0: not found.
uintptr_t FindTidOffset(uintptr_t descriptor, int tid);

// The stack that pthread_create made or was given, as the descriptor at its upper end says
// (struct pthread: stackblock, stackblock_size, guardsize, reported_guardsize). Nothing at or
// above `readable_end` is read. `*guard`: so many bytes at its begin are one. False: there is none,
// as for the first thread.
bool FindStackBlock(uintptr_t descriptor, uintptr_t readable_end, uintptr_t* begin,
                    uintptr_t* end, uintptr_t* guard = nullptr);

}  // namespace memtrace::unwind

#endif  // MEMTRACE_PRELOAD_UNWIND_THREAD_DESCRIPTOR_H_
