// Suppressions of `memtrace report`: which loss records of a scan somebody decided to live
// with. They are counted apart, as memcheck does, and with the others of their kind no more.
//
// A block that only suppressed ones lead to is judged by its own stack, as in memcheck; or
// goes with them, as in LeakSanitizer (SuppressWhatTheyLeadTo).

#ifndef MEMTRACE_REPORT_SUPPRESS_SUPPRESS_RECORDS_H_
#define MEMTRACE_REPORT_SUPPRESS_SUPPRESS_RECORDS_H_

#include <vector>

#include "report/findings/leaks.h"
#include "report/leak/held_scan.h"
#include "report/render/view.h"
#include "report/suppress/suppressions.h"
#include "report/trace/stack_table.h"

namespace memtrace::report::suppress {

// Marks the records of `scan` that one of `suppressions` matches, and counts there what it
// matched. `view` gives the names.
void SuppressRecords(const render::ReportView& view, Suppressions* suppressions, LeakScan* scan);

// Whether what is possibly lost is the runtime's own, by the rules of `memtrace check`. (Of what is
// reachable nobody thinks that it is a leak.)
class RuntimesOwn {
 public:
  RuntimesOwn() { rules_.AddBuiltIn(); }
  // `view` gives the names of the stack.
  bool Has(const render::ReportView& view, StackId stack, format::AllocFunction function);

 private:
  Suppressions rules_;
};

// Marks the records of `scan` that are the runtime's own; before, what the user suppresses is.
void MarkOfRuntime(const render::ReportView& view, LeakScan* scan);

// Then: takes the lost blocks that suppressed ones lead to out of their records. `held` is the
// same scan; `resolution` as it was analyzed with. Of what was allocated in a record
// all is still told by its time.
void SuppressWhatTheyLeadTo(const leak::HeldScan& held, const StackTable& stacks,
                            const leak::Resolution& resolution, LeakScan* scan);

// The suppressions that matched, for a report.
std::vector<UsedSuppression> Used(const Suppressions& suppressions);

}  // namespace memtrace::report::suppress

#endif  // MEMTRACE_REPORT_SUPPRESS_SUPPRESS_RECORDS_H_
