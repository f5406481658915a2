// Words of the library's notes (RecordTag::kNote) by which a reader knows what they are about.
// Traces have them: they stay as they are.

#ifndef MEMTRACE_FORMAT_NOTES_H_
#define MEMTRACE_FORMAT_NOTES_H_

namespace memtrace::format {

// Behind the path of a library, as the program gave it to dlopen: its calls of malloc pass by.
inline constexpr char kOpenedWithDeepBind[] = " was opened with RTLD_DEEPBIND";

}  // namespace memtrace::format

#endif  // MEMTRACE_FORMAT_NOTES_H_
