// CALL_SITE(): where the calling function was called from.
//
// Only as the direct expression of a function that the program calls, or that such a one
// jumps to, or of one that is always inlined there: the frame is that one's. Its file is compiled
// with frame pointers.

#ifndef MEMTRACE_PRELOAD_CALL_SITE_H_
#define MEMTRACE_PRELOAD_CALL_SITE_H_

#include <cstdint>

#include "preload/arch/arch.h"
#include "preload/recorder.h"

#define CALL_SITE()                                                           \
  ::memtrace::CallSite {                                                      \
    reinterpret_cast<uintptr_t>(__builtin_return_address(0)),                 \
        reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) +             \
            ::memtrace::arch::kFrameAddressToCfa,                             \
        *static_cast<const uintptr_t*>(__builtin_frame_address(0))            \
  }

#endif  // MEMTRACE_PRELOAD_CALL_SITE_H_
