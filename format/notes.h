// Words of the library's notes (RecordTag::kNote), and names of its counters (RecordTag::kCounter), by
// which a reader knows what they are about.
// Traces have them: they stay as they are.

#ifndef MEMTRACE_FORMAT_NOTES_H_
#define MEMTRACE_FORMAT_NOTES_H_

namespace memtrace::format {

// Behind the path of a library, as the program gave it to dlopen: its calls of malloc pass by.
inline constexpr char kOpenedWithDeepBind[] = " was opened with RTLD_DEEPBIND";

// Counter, 1: an allocator that is not glibc's has called malloc or its kin by name within a call of
// the program's. What it took so is not in the trace, but its free may be.
inline constexpr char kAllocatorCallsItself[] = "allocator_calls_itself";

}  // namespace memtrace::format

#endif  // MEMTRACE_FORMAT_NOTES_H_
