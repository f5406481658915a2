#include "report/index/grouping_store.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/private_file.h"
#include "base/sealed_file.h"
#include "report/index/summary_store.h"
#include "report/state/packed_bytes.h"

namespace memtrace::report::index {
namespace {

constexpr base::PrivateKind kGroupingKind = {".grp", "MTGRPS01"};

}  // namespace

GroupingStore::GroupingStore(const std::string& summary, const TraceIdentity& identity,
                             uint64_t names)
    : identity_(identity), names_(names) {
  if (!summary.empty()) {
    file_ = absl::StrCat(absl::StripSuffix(summary, kSummarySuffix), kGroupingKind.suffix);
  }
}

void GroupingStore::Keep(const render::Grouping& grouping) const {
  if (file_.empty()) return;
  PackedWriter out;
  Put(identity_, &out);
  out.Number(names_);
  out.Number(grouping.leaks);
  out.Number(grouping.callers);
  for (const render::Grouping::Row& row : grouping.rows) {
    for (const uint32_t number : {row.site, row.leak, row.caller}) out.Number(number);
  }
  if (base::WriteSealedFile(file_, kGroupingKind.magic, out.bytes())) {
    base::TrimPrivateDirectory(file_.substr(0, file_.rfind('/')), kGroupingKind,
                               SummaryStore::kMostBytes, file_);
  }
}

std::optional<render::Grouping> GroupingStore::Recall(const Analysis& analysis) const {
  std::string content;
  if (file_.empty() || !base::ReadSealedFile(file_, kGroupingKind.magic, &content)) {
    return std::nullopt;
  }
  PackedReader in(content);
  if (GetIdentity(&in) != identity_ || in.Number() != names_) return std::nullopt;
  render::Grouping grouping;
  for (uint32_t* number : {&grouping.leaks, &grouping.callers}) {
    *number = static_cast<uint32_t>(in.Number());
  }
  grouping.rows.resize(analysis.sites.size());
  for (render::Grouping::Row& row : grouping.rows) {
    for (uint32_t* number : {&row.site, &row.leak, &row.caller}) {
      *number = static_cast<uint32_t>(in.Number());
    }
  }
  if (!in.ok() || in.left() != 0 || !grouping.IsOf(analysis)) return std::nullopt;
  return grouping;
}

}  // namespace memtrace::report::index
