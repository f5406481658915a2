// Fingerprint: a name for an allocating stack that another build gives it as well.
//
// The hash is over what a programmer wrote, and not over what a compiler made of it:
//
//   the function that allocated    malloc, calloc and realloc are one: compilers turn malloc
//                                  and memset into calloc, and realloc of NULL into malloc
//   the project's own frames       each a function and the base name of its file, from the
//                                  innermost; the first kFingerprintFrames different ones.
//                                  Without a name: the module and the place in it
//                                  Of an installed program that is no more than a main() around
//                                  its package's library: the frames of libraries as well, but for
//                                  those that every program is built on. Where a program of a
//                                  package without source lines, as an interpreter, has loaded
//                                  modules that are of none: not the program's own
//
// Left out is what differs from build to build: lines, addresses where there are names, sizes,
// directories; frames of libc, libstdc++, the loader and other modules of the system, and of
// headers in /usr/include; what a just-in-time compiler made, which has no name; the frames of one
// function after its first (recursion that became a loop, the two halves of a constructor); clone
// suffixes; the numbers of lambdas, which GCC and clang count differently. docs/report.md,
// "Fingerprints", has the rules and what was measured. kFingerprintVersion is hashed with the rest,
// for rules after which a fingerprint of before could be another site's.
//
// Pure functions, any thread.

#ifndef MEMTRACE_REPORT_NAMES_FINGERPRINT_H_
#define MEMTRACE_REPORT_NAMES_FINGERPRINT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "format/event_words.h"
#include "report/names/frame.h"

namespace memtrace::report {

inline constexpr int kFingerprintVersion = 2;
inline constexpr size_t kFingerprintFrames = 8;  // deeper ones change with the program's structure

// A function as all compilers name it: "app::{lambda}::operator()(int)" of
// "app::Go(int)::{lambda(int)#1}::operator()(int) const" and of "app::Go(int)::$_0::...";
// without return type, clone suffixes, ABI tags, and default template arguments of std.
std::string FunctionIdentity(absl::string_view demangled);

// A function that the compiler split or specialized is still that function: "foo" of "foo.part.0"
// and of "foo(int) [clone .isra.0]".
absl::string_view WithoutCloneSuffix(absl::string_view function);

// The text that is hashed: a line for the allocating function, one for each frame. Frames
// innermost first, as of ReportView::Frames().
std::string FingerprintText(absl::Span<const Frame* const> stack, format::AllocFunction function,
                            bool with_lines);

// Sixteen hexadecimal digits, in lower case.
std::string Fingerprint(absl::Span<const Frame* const> stack, format::AllocFunction function);
// A fingerprint that also has the lines: two places of one function differ, and so
// does a place that moved.
std::string StrictFingerprint(absl::Span<const Frame* const> stack,
                              format::AllocFunction function);

// Whether `text` is one, as they are written. One that was cut would be of no site.
inline bool IsFingerprint(absl::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_NAMES_FINGERPRINT_H_
