// Expectations: what an example's head comment says its report must say.
//
// Lines of the form "// expect: ..." (or "// expect child: ..." about its fork
// child; "// expect faults: ..." where the kernel permits fault events), read and held against `memtrace report`. @name is the line of
// the program that ends in the comment "// @name". The forms:
//
//   leak 200 bytes in 2 blocks at @name in Function     exactly one such leak entry
//   leak 200 bytes in 2 blocks in Function
//   no leak at @name  |  no leak in Function
//   first leak is @name                                 the entry of the most bytes
//   site at @name in Function: key == number, ...       the site's members in the JSON
//   resident site at @name in Function: key == number   the same of the pages at the end
//   /json/pointer == number                             or >=, <=
//   thread "name" key == number                         the one thread of that name
//   mapping KIND at @name in Function: key == number    summed over such mappings
//   mapping live bytes of KIND in Function == number
//   minor faults from @a to @b == number                @a, @b: sites with one block
//   words "regex"                                       a sentence about the faults, whole
//   text "regex"                                        somewhere in the text report
//
// "in Function" means that the frame at @name, or any frame of a stack when no line
// is named, is of that function.

#ifndef MEMTRACE_TESTS_E2E_EXPECTATIONS_H_
#define MEMTRACE_TESTS_E2E_EXPECTATIONS_H_

#include <map>
#include <string>
#include <vector>

#include "tests/e2e/harness.h"

namespace memtrace::e2e {

struct Expectation {
  std::string text;    // behind "expect:"
  bool child = false;   // about the fork child's trace
  bool faults = false;  // holds only where page faults can be seen
};

struct Example {
  std::string file;                 // base name of the source
  std::map<std::string, int> tags;  // "@name" without the @ -> line
  std::vector<Expectation> expectations;
};

Example ReadExample(const std::string& source_path);

// What the report says instead; empty: the expectation holds. Throws for an
// expectation that cannot be understood.
std::string Check(const Example& example, const Expectation& expectation, const Json& report,
                  const std::string& text);

}  // namespace memtrace::e2e

#endif  // MEMTRACE_TESTS_E2E_EXPECTATIONS_H_
