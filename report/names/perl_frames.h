// What perl does not free at its end, told where a reader would look for a leak of the program.
//
// A perl frees its interpreter, and leaves what that holds to the end of the process: the pointers
// to it are gone with the interpreter, so it counts as lost, for Valgrind as well. The trace does
// not tell what is in the environment, so this is said of every perl that lost something.

#ifndef MEMTRACE_REPORT_NAMES_PERL_FRAMES_H_
#define MEMTRACE_REPORT_NAMES_PERL_FRAMES_H_

#include <string>

#include "report/findings/analysis.h"
#include "report/names/site_symbols.h"

namespace memtrace::report {

inline constexpr char kPerlKeeps[] =
    "perl frees its interpreter at its end, and not what that holds, which then counts as lost, "
    "under Valgrind too. With PERL_DESTRUCT_LEVEL=2 in the environment it frees that as well: what "
    "is lost then is a leak";

// By functions of the executable perl, or of libperl.
bool PassesThroughPerl(const SiteSymbols& symbols, StackId stack);

// kPerlKeeps, where the scan found something lost of which that may be so; else empty.
std::string PerlNote(const SiteSymbols& symbols, const Analysis& analysis, const LeakScan& scan);

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_NAMES_PERL_FRAMES_H_
