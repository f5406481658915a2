// Stacks of two tools, made comparable: the same call sites have the same key, whatever
// demangler, debug information or build the names came from.
//
// Pure functions; any thread.

#ifndef MEMTRACE_REPORT_VALGRIND_STACK_KEY_H_
#define MEMTRACE_REPORT_VALGRIND_STACK_KEY_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "report/render/valgrind_losses.h"

namespace memtrace::report::valgrind {

// "push_back" of "std::vector<int, std::allocator<int> >::push_back(int&&)", of its mangled
// name, and of "push_back" (Valgrind gives inlined functions no more): no scope, template
// arguments, parameters, versions, or the compiler's suffixes. Of a lambda "operator()"; of
// Fortran's "__m_MOD_f", Ada's "_ada_f" and GNU C's "f.0" of a function within another "f".
std::string BareFunction(absl::string_view function);

// How stacks were found to be the same, the strictest first. kCalls: of the machine's calls, each
// the function that was not inlined and the innermost line; which functions were inlined there
// one side may not know, as Valgrind 3.19 of clang's DWARF 5. kPlaces: of these calls the file
// and line alone; a Fortran program is MAIN__ for the linker and has the name that it was given
// in its debug information. kFiles: functions, and of the system's code that has no names the file
// alone. kShape: the same with the program's own code that has none, which is too little for a
// pair: such stacks may be of other call sites, or of the same ones in another build.
enum class MatchStage { kNone, kLines, kCalls, kPlaces, kFunctions, kFiles, kProject, kShape };

// A stack as a list of words, one for each frame that counts, innermost first. What allocates,
// what runs main or a thread, and what returns from a signal is left out: the tools differ in it.
// A frame without a name is its file and where in a page its call is. Modules are loaded at whole
// pages, so that this is the same in every run of one build, as the rest of the address is not.
struct StackWords {
  std::vector<std::string> words;
  bool cut = false;  // more frames followed
};
StackWords WordsOf(const render::Loss& loss, MatchStage stage);

// Whether the frame is of the program or its libraries, and not of the system, an
// allocator or a thread's start.
bool IsProjectFrame(const render::LossFrame& frame);

}  // namespace memtrace::report::valgrind

#endif  // MEMTRACE_REPORT_VALGRIND_STACK_KEY_H_
