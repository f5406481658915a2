#include "report/trace/run_record.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "report/base/path.h"
#include "report/base/unique_fd.h"
#include "report/words/shell_words.h"

namespace memtrace::report {
namespace {

constexpr size_t kMaxRunRecord = 8192;

// Whether one of the names in the directory is such a one.
template <typename Matches>
bool HasEntry(const std::string& directory, const Matches& matches) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(directory.c_str()), &closedir);
  if (entries == nullptr) return false;
  while (const dirent* entry = readdir(entries.get())) {
    if (matches(absl::string_view(entry->d_name))) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<RunRecord> ReadRunRecord(const std::string& spool) {
  const std::string path = absl::StrCat(spool, "/", kRunRecordName);
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  std::string text(kMaxRunRecord, '\0');
  const ssize_t n = fd.ok() ? read(fd.get(), text.data(), text.size()) : -1;
  text.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  const size_t line = text.find('\n');
  RunRecord record;
  if (line == text.npos || !absl::SimpleAtoi(text.substr(0, line), &record.root_pid) ||
      text.size() < line + 3 || text.back() != '\n') {
    return absl::FailedPreconditionError(absl::StrCat(
        spool, " is not the directory that an interrupted run left (.NAME.spool.XXXXXX): ",
        fd.ok() ? "its file " : "it has no file ", kRunRecordName,
        fd.ok() ? " is damaged" : ""));
  }
  record.output = text.substr(line + 1, text.size() - line - 2);
  return record;
}

std::string WhoWrites(const std::string& trace) {
  const std::string directory = DirectoryOf(trace);
  std::string spool;
  RunRecord run;
  HasEntry(directory, [&](absl::string_view name) {
    if (!absl::StartsWith(name, ".") || !absl::StrContains(name, ".spool.")) return false;
    spool = absl::StrCat(trace.substr(0, trace.size() - FileNameOf(trace).size()), name);
    const absl::StatusOr<RunRecord> record = ReadRunRecord(spool);
    if (!record.ok() || FileNameOf(record->output) != FileNameOf(trace)) return false;
    run = *record;
    return true;
  });
  if (run.output.empty()) return "";
  const std::string at = words::ShellWord(spool);
  std::string text = "; the run that writes it goes on, or was interrupted: ";
  if (run.root_pid != 0) {
    absl::StrAppend(&text, "memtrace leaks ", run.root_pid, " asks the program if it still runs, ");
  }
  if (HasEntry(spool, [](absl::string_view name) { return absl::EndsWith(name, ".mtr"); })) {
    absl::StrAppend(&text, "memtrace report ", at, "/*.mtr shows what is not packed yet, ");
  }
  absl::StrAppend(&text, "and when the program has ended and the file is still missing: ",
                  "memtrace run --finish ", at);
  return text;
}

}  // namespace memtrace::report
