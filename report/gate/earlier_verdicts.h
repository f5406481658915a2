// Verdicts of earlier runs, in the files that this one is to write. Whoever finds one where there
// is no new one takes it for that: a CI server shows last night's leaks, or none.

#ifndef MEMTRACE_REPORT_GATE_EARLIER_VERDICTS_H_
#define MEMTRACE_REPORT_GATE_EARLIER_VERDICTS_H_

#include <string>
#include <vector>

namespace memtrace::report::gate {

// The file of an -o: "junit=FILE" or "FILE", where what looks like a format and is none was meant
// as one. Empty: it names none.
std::string OutputPath(const std::string& output);

// The files of -o among the words behind `memtrace check`, which could not be parsed. Not those
// that another word names, too, nor those that may be the program's: with --run and without a --,
// where the words of the program begin is not known, and only FORMAT=FILE is surely ours.
std::vector<std::string> OutputsAmong(const std::vector<std::string>& words);

// Removes those of `paths` that are JSON or XML, as CI servers read them, and no device and nothing
// that was given to us open; returns them. A symbolic link stays, and leads to nothing then.
std::vector<std::string> RemoveVerdicts(const std::vector<std::string>& paths);

}  // namespace memtrace::report::gate

#endif  // MEMTRACE_REPORT_GATE_EARLIER_VERDICTS_H_
