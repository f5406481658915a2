#include "report/gate/generated_suppressions.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "report/gate/baseline_of.h"
#include "report/leak/leak_kinds.h"
#include "report/suppress/memcheck_stack.h"

namespace memtrace::report::gate {
namespace {

// What an entry matches by: its kinds and its frames, which are the innermost of a stack.
absl::string_view WithoutName(absl::string_view entry) {
  entry.remove_prefix(entry.find('\n', entry.find('\n') + 1) + 1);
  absl::ConsumeSuffix(&entry, "}\n");
  return entry;
}

}  // namespace

std::string GeneratedSuppressions(const GateReport& report) {
  std::string text;
  std::vector<std::string> written;
  for (const GateLeak& leak : report.result->leaks) {
    if (!IsGated(leak.verdict)) continue;
    const std::string kind =
        leak.kind == LeakKind::kUnfreed ? "" : std::string(KindName(leak.kind));
    // One fingerprint may be of several stacks: malloc, strdup and realloc by one caller.
    for (const auto& [function, stack] : leak.all) {
      const std::string one =
          suppress::SuppressionFor(absl::StrCat(leak.program, " ", leak.fingerprint, " ",
                                                CallerWithoutLine(*report.names, stack)),
                                   kind, function, report.names->Frames(stack));
      // Of a deep stack an entry has the innermost frames: it may be another's, or one
      // before it takes all of its.
      const absl::string_view body = WithoutName(one);
      if (std::ranges::any_of(
              written, [&](const std::string& before) { return absl::StartsWith(body, before); }))
        continue;
      written.emplace_back(body);
      absl::StrAppend(&text, one);
    }
  }
  return text;
}

}  // namespace memtrace::report::gate
