// Which functions are of Rust's own library, that a reader of a report is not looking for.
//
// Generic ones are compiled with the program that uses them, and lie in its module under names that
// begin with the program's types. Pure functions, any thread.

#ifndef MEMTRACE_REPORT_NAMES_RUST_NAMES_H_
#define MEMTRACE_REPORT_NAMES_RUST_NAMES_H_

#include "report/names/frame.h"

namespace memtrace::report::names {

// False where the function is of the program, and where it is not of Rust.
bool IsRustLibraryFunction(const Frame& frame);

}  // namespace memtrace::report::names

#endif  // MEMTRACE_REPORT_NAMES_RUST_NAMES_H_
