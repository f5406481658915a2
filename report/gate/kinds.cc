#include "report/gate/kinds.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace memtrace::report::gate {
namespace {

constexpr std::pair<LeakKind, absl::string_view> kKinds[] = {
    {LeakKind::kDefinite, "definite"},   {LeakKind::kIndirect, "indirect"},
    {LeakKind::kPossible, "possible"},   {LeakKind::kReachable, "reachable"},
    {LeakKind::kUnfreed, "unfreed"},
};
static_assert(std::size(kKinds) == kLeakKinds);

}  // namespace

absl::string_view KindName(LeakKind kind) {
  for (const auto& [known, name] : kKinds) {
    if (known == kind) return name;
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

absl::StatusOr<LeakKind> ParseKind(absl::string_view name) {
  for (const auto& [kind, known] : kKinds) {
    if (known == name) return kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is no kind of leak; there are definite, indirect, possible, "
                   "reachable, unfreed"));
}

absl::StatusOr<KindSet> ParseKinds(absl::string_view list) {
  const absl::string_view trimmed = absl::StripAsciiWhitespace(list);
  if (trimmed == "none") return KindSet();
  if (trimmed == "all") return KindSet::All().Without(LeakKind::kUnfreed);
  KindSet kinds;
  for (const absl::string_view word : absl::StrSplit(trimmed, ',')) {
    const auto kind = ParseKind(absl::StripAsciiWhitespace(word));
    if (!kind.ok()) return kind.status();
    kinds = kinds | KindSet::Of(*kind);
  }
  return kinds;
}

std::string KindNames(KindSet kinds) {
  std::vector<absl::string_view> names;
  for (const auto& [kind, name] : kKinds) {
    if (kinds.Has(kind)) names.push_back(name);
  }
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

}  // namespace memtrace::report::gate
