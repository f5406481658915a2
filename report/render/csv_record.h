// A record of --format csv, field by field.

#ifndef MEMTRACE_REPORT_RENDER_CSV_RECORD_H_
#define MEMTRACE_REPORT_RENDER_CSV_RECORD_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/render/site_measure.h"
#include "report/render/view.h"
#include "report/words/escape.h"
#include "report/words/sink.h"

namespace memtrace::report::render {

class CsvRecord {
 public:
  CsvRecord& Text(absl::string_view text) {
    fields_.push_back(words::CsvField(text));
    return *this;
  }
  CsvRecord& Number(uint64_t number) {
    fields_.push_back(absl::StrCat(number));
    return *this;
  }
  CsvRecord& Nothing() {
    fields_.emplace_back();
    return *this;
  }
  // Empty where it is not known: of a sample.
  CsvRecord& Temporary(const ReportView& view, uint64_t number) {
    return view.sampled() ? Text("") : Number(number);
  }
  // Empty where it is not known: of another allocator than glibc's.
  CsvRecord& Wasted(const ReportView& view, uint64_t bytes) {
    return view.analysis().process.waste_is_known() ? Number(bytes) : Text("");
  }
  // An estimate's samples and 95 % interval; of a trace of everything the value itself.
  CsvRecord& Sample(const ReportView& view, const SampledSum& sum, uint64_t count, uint64_t bytes) {
    if (!view.sampled()) return Number(count).Number(bytes).Number(bytes);
    const Interval interval = sum.Interval95();
    return Number(sum.samples).Number(interval.low).Number(interval.high);
  }
  CsvRecord& Seconds(uint64_t ns) {
    fields_.push_back(absl::StrFormat("%d.%09d", ns / 1000000000, ns % 1000000000));
    return *this;
  }
  // Verdict, held until exit, and of what grows the rates and the confidence.
  CsvRecord& GrowthOf(const Growth& growth) {
    Text(VerdictName(growth.verdict)).Number(growth.held_until_exit ? 1 : 0);
    if (growth.verdict != Growth::Verdict::kGrowing) return Text("").Text("").Text("");
    for (const double value :
         {growth.bytes_per_s, growth.bytes_per_allocation, growth.confidence}) {
      fields_.push_back(absl::StrFormat("%.9g", value));
    }
    return *this;
  }
  // Minor, major, and resident bytes at the end; empty: not known.
  CsvRecord& Faults(const ReportView& view, const Site& site) {
    if (!KnowsFaultsOfSites(view.analysis())) {
      Text("").Text("");
    } else {
      const FaultSite* faults = view.FaultsOf(site.stack, site.function);
      Number(faults == nullptr ? 0 : faults->faults.minor);
      Number(faults == nullptr ? 0 : faults->faults.major);
    }
    if (view.analysis().resident.End() == nullptr || !KnowsPagesOfSites(view.analysis()))
      return Text("");
    const ResidentSite* resident = view.ResidentOf(site.stack, site.function);
    return Number(resident == nullptr ? 0 : resident->resident_bytes);
  }
  // function, file, line, module of the frame that the text report calls caller.
  CsvRecord& Caller(const ReportView& view, StackId stack) {
    const Frame* frame = view.Caller(stack);
    return CallerInItsModule(view, stack).Text(frame == nullptr ? "" : frame->module);
  }
  // The same without the module.
  CsvRecord& CallerInItsModule(const ReportView& view, StackId stack) {
    const Frame* frame = view.Caller(stack);
    if (frame == nullptr) return Nothing().Nothing().Nothing();
    Text(FrameName(*frame)).Text(frame->file);
    return frame->line != 0 ? Number(frame->line) : Nothing();
  }
  // All frames, innermost first.
  CsvRecord& Stack(const ReportView& view, StackId stack) {
    std::vector<std::string> frames;
    for (const Frame* frame : view.Frames(stack)) {
      const std::string place = PlaceText(*frame);
      frames.push_back(place.empty() ? FrameName(*frame)
                                     : absl::StrCat(FrameName(*frame), " (", place, ")"));
    }
    return Text(absl::StrJoin(frames, " < "));
  }
  void WriteTo(words::Sink& out) const {
    out.Write(absl::StrCat(absl::StrJoin(fields_, ","), "\r\n"));
  }

 private:
  std::vector<std::string> fields_;
};

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_CSV_RECORD_H_
