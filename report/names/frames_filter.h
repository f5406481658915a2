// What of a stack a person wants to see: not the allocator's own frames at the
// inner end, not what runs before main at the outer one.
//
// Nothing here hides what happened: a renderer says how many frames it left out
// and which option shows them. Pure functions, any thread.

#ifndef MEMTRACE_REPORT_NAMES_FRAMES_FILTER_H_
#define MEMTRACE_REPORT_NAMES_FRAMES_FILTER_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "report/names/frame.h"

namespace memtrace::report::names {

FrameRole RoleOf(const Frame& frame, uint32_t module_flags);

// Names that allocate for their callers, whatever file they are in.
bool IsAllocatorFunction(absl::string_view demangled);
// Whether it starts a program or a thread, by its name alone, which a function of the program may
// have as well: RoleOf() knows more.
bool IsStartFunction(absl::string_view demangled);
// Whether `function` of this module starts a program or a thread: a clone() or start_thread() of
// the program's own does not.
bool IsStartOf(absl::string_view function, absl::string_view module);
bool IsSystemModule(absl::string_view path);
// glibc's libc, by the name of the file.
bool IsLibc(absl::string_view path);
// Whether it is of a library of the system, and of none that every program is built on, as libc is.
bool IsOfASystemLibrary(const Frame& frame);
// Of a program of a package without source lines, as interpreters are.
bool IsOfABareProgram(const Frame& frame);
// Of a module of the project's own, which such a program has loaded: what is called by way of it is
// its, and not the program's.
bool IsOfAnExtension(const Frame& frame);
// Whether the loader runs constructors by this function: frames further in are
// not the loader's own.
bool RunsConstructors(absl::string_view function);

// The index of the first frame of libc's start code, which runs main or a thread's function; all
// frames outside of it belong to that code. The size of the stack: there is none.
size_t StartBegin(absl::Span<const Frame* const> stack);

// The part [begin, end) of a stack that is worth reading.
struct Cut {
  size_t begin = 0;
  size_t end = 0;
  // The first frame in it of the project, in an extension of an interpreter of that; `begin` when
  // there is none.
  size_t caller = 0;
  // An installed program is here no more than a main() around its package's library, and `caller`
  // the first frame of that.
  bool is_in_library = false;
  // The function of namespace std that `begin` called, just before it; else `begin`. It
  // tells a push_back from a make_shared on the same line.
  size_t via = 0;
};
// What a frame without a name is that one of the listed allocators called within its own file: a
// part of it, or a frame worth reading. So are helpers of a program's own operator new: fingerprints
// have both.
enum class Nameless { kOfTheirCaller, kFrames };
Cut CutStack(absl::Span<const Frame* const> stack, Nameless nameless = Nameless::kOfTheirCaller);

}  // namespace memtrace::report::names

#endif  // MEMTRACE_REPORT_NAMES_FRAMES_FILTER_H_
