// The page of --format html: one file that needs nothing else, with the data of a report inside.
//
// The page comes out of web/, whose bundle the build puts into the executable. It shows whichever
// JSON document it is given, by its "kind": "report", "diff" or "compare". web/README.md tells how
// it is made, docs/html.md what it promises.
//
// One thread.

#ifndef MEMTRACE_REPORT_HTML_PAGE_H_
#define MEMTRACE_REPORT_HTML_PAGE_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "report/words/sink.h"

namespace memtrace::report::html {

// FailedPrecondition, with cause and cure, where the page was left out of the build.
absl::Status PageIsThere();

// Writes the page with a document of `kind` in it. `write_members` writes what the document has
// beside "kind" and "version", as JSON in ASCII: ,"key":value for each member. It is compressed on
// the way, and never in memory as a whole. The document becomes base64, so nothing in it can be
// taken for markup. PageIsThere() must be ok.
void WritePage(absl::string_view kind, const std::function<void(words::Sink&)>& write_members,
               words::Sink& out);

}  // namespace memtrace::report::html

#endif  // MEMTRACE_REPORT_HTML_PAGE_H_
