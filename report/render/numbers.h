// Numbers: figures of the heap in tables and sentences. Those of a sampled trace are estimates:
// three digits and a "~", which no reader takes for a count.
//
// Any thread. Refers to nothing of the view later.

#ifndef MEMTRACE_REPORT_RENDER_NUMBERS_H_
#define MEMTRACE_REPORT_RENDER_NUMBERS_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "report/render/style.h"
#include "report/render/view.h"
#include "report/words/units.h"

namespace memtrace::report::render {

class Numbers {
 public:
  Numbers(const Style& style, bool estimated, bool waste_is_known)
      : wide_(style.wide()), about_(estimated ? "~" : ""), waste_is_known_(waste_is_known) {}
  Numbers(const ReportView& view, const Style& style)
      : Numbers(style, view.sampled(), view.analysis().process.waste_is_known()) {}

  // In a table: short where the terminal is narrow, so that names have room.
  std::string Bytes(uint64_t n) const {
    return absl::StrCat(about(n), wide_ ? words::HumanBytes(n) : words::ShortBytes(n));
  }
  std::string Events(uint64_t n) const {
    return absl::StrCat(about(n), wide_ && !estimated() ? words::Count(n) : words::ShortCount(n));
  }
  // Bytes of waste; "-" where they are not known, as with other allocators than glibc's.
  std::string Wasted(uint64_t n) const { return waste_is_known_ ? Bytes(n) : "-"; }
  // In a sentence: "356 bytes", "45.2 MiB"; "1 block", "2 blocks", "~3.1k blocks".
  std::string Amount(uint64_t bytes) const {
    return estimated() ? absl::StrCat(about(bytes), words::HumanBytes(bytes))
                       : words::ExactOrHumanBytes(bytes);
  }
  std::string Plural(uint64_t n, absl::string_view noun) const {
    return estimated() ? absl::StrCat(about(n), words::ShortCount(n), " ", noun, n == 1 ? "" : "s")
                       : words::Plural(n, noun);
  }
  // " [44.0 MiB to 49.1 MiB]" in an estimate, else nothing.
  std::string Interval(const SampledSum& sum) const {
    if (!estimated()) return "";
    const report::Interval interval = sum.Interval95();
    return absl::StrCat(" [", words::HumanBytes(interval.low), " to ",
                        words::HumanBytes(interval.high), "]");
  }
  // The same for a table.
  std::string ShortInterval(const SampledSum& sum) const {
    const report::Interval interval = sum.Interval95();
    return absl::StrCat(words::ShortBytes(interval.low), "-", words::ShortBytes(interval.high));
  }
  bool estimated() const { return !about_.empty(); }
  bool wide() const { return wide_; }
  // What a heading says about short numbers; empty where they are not short.
  absl::string_view remark() const {
    return wide_ ? "" : "bytes in K = 1024, counts in k = 1000";
  }

 private:
  absl::string_view about(uint64_t n) const { return n == 0 ? "" : about_; }

  const bool wide_;
  const absl::string_view about_;
  const bool waste_is_known_;
};

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_NUMBERS_H_
