#include "report/leak/leak_kinds.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace memtrace::report {

absl::string_view KindName(LeakKind kind) {
  switch (kind) {
    case LeakKind::kDefinite: return "definite";
    case LeakKind::kIndirect: return "indirect";
    case LeakKind::kPossible: return "possible";
    case LeakKind::kReachable: return "reachable";
    case LeakKind::kUnfreed: return "unfreed";
  }
  return "";
}

absl::string_view KindPhrase(LeakKind kind) {
  switch (kind) {
    case LeakKind::kDefinite: return "definitely lost";
    case LeakKind::kIndirect: return "indirectly lost";
    case LeakKind::kPossible: return "possibly lost";
    case LeakKind::kReachable: return "still reachable";
    case LeakKind::kUnfreed: return "not freed";
  }
  return "";
}

std::string KindNames(LeakKindSet kinds) {
  std::vector<absl::string_view> names;
  for (size_t i = 0; i < kLeakKinds; ++i) {
    const auto kind = static_cast<LeakKind>(i);
    if (kinds.Has(kind)) names.push_back(KindName(kind));
  }
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

absl::StatusOr<LeakKind> ParseKind(absl::string_view name, LeakKindSet known) {
  for (size_t i = 0; i < kLeakKinds; ++i) {
    const auto kind = static_cast<LeakKind>(i);
    if (known.Has(kind) && KindName(kind) == name) return kind;
  }
  return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is no kind of leak; there are ",
                                                 KindNames(known)));
}

absl::StatusOr<LeakKindSet> ParseKinds(absl::string_view list, LeakKindSet known) {
  const absl::string_view trimmed = absl::StripAsciiWhitespace(list);
  if (trimmed == "none") return LeakKindSet();
  if (trimmed == "all") return LeakKindSet::OfScans();
  LeakKindSet kinds;
  for (const absl::string_view word : absl::StrSplit(trimmed, ',')) {
    const absl::string_view name = absl::StripAsciiWhitespace(word);
    if (name == "all" || name == "none") {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", trimmed, "\": all and none stand alone, without other kinds"));
    }
    const auto kind = ParseKind(name, known);
    if (!kind.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(kind.status().message(), ", all, none"));
    }
    kinds = kinds.With(*kind);
  }
  return kinds;
}

}  // namespace memtrace::report
