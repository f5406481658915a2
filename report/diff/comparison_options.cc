#include "report/diff/comparison_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/cli/common_options.h"
#include "report/cli/refusals.h"
#include "report/html/page.h"
#include "report/render/formats.h"

namespace memtrace::report {

void AddComparisonOptions(CLI::App* command, ComparisonFlags* flags,
                          const std::function<void()>& add_filters, const ComparisonWords& words) {
  command->add_option("--by", flags->by,
                      "live (default), live-blocks, peak, allocated,\n"
                      "allocations, temporary; where memory was scanned\n"
                      "definite, indirect, possible, reachable")
      ->type_name("WHAT");
  command->add_option("--per", flags->per, words.per)->type_name("UNIT");
  command->add_option("--min", flags->min, words.min)->type_name("AMOUNT");
  add_filters();
  command->add_flag("--exit-code", flags->exit_code, words.exit_code);
  command->add_option("-f,--format", flags->format, words.formats)->type_name("F");
  command->add_option("-o,--output", flags->output, "Write here, whole or not at all")
      ->type_name("OUT");
  command->add_option("--top", flags->top, words.top)
      ->type_name("N")->check(WholeNumber, "");
  command->add_flag("--full", flags->full, words.full);
  AddTextOptions(command, &flags->color, &flags->width);
  AddNameOptions(command, {&flags->debug_dirs, &flags->sysroot, &flags->debuginfod}, words.names);
}

absl::StatusOr<DiffOptions> ParseComparison(const ComparisonFlags& flags) {
  DiffOptions options;
  const auto measure = ParseMeasure("--by", flags.by);
  if (!measure.ok()) return measure.status();
  options.measure = *measure;
  const auto per = ParsePer(flags.per);
  if (!per.ok()) return per.status();
  options.per = *per;
  const auto least = ParseLeast(flags.min);
  if (!least.ok()) return least.status();
  options.least = *least;
  if (options.per != Per::kRun && flags.min == "1") options.least = {};  // bytes, not a rate
  return options;
}

absl::StatusOr<render::ReportOptions> ParseCommon(const ComparisonFlags& flags,
                                                  const std::vector<std::string>& formats) {
  if (std::find(formats.begin(), formats.end(), flags.format) == formats.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--format: \"", flags.format, "\" is none of ", absl::StrJoin(formats, ", ")));
  }
  if (flags.format == "html") {
    absl::Status can = html::PageIsThere();
    can.Update(RefuseTerminal(flags.format, flags.output));
    if (!can.ok()) return can;
  }
  render::ReportFlags common{flags};
  common.format = flags.format;
  common.color = flags.color;
  common.sysroot = flags.sysroot;
  common.debug_dirs = flags.debug_dirs;
  common.debuginfod = flags.debuginfod;
  return render::ParseReportFlags(common);
}

absl::Status WriteComparison(const ComparisonFlags& flags, const render::ReportOptions& common,
                             const ComparisonWriter& writer) {
  auto out = render::Output::Open(flags.output);
  if (!out.ok()) return out.status();
  switch (common.format) {
    case render::ReportFormat::kJson:
      writer.json(flags.top.value_or(flags.full ? render::kAllRows : render::kJsonRows), *out);
      break;
    case render::ReportFormat::kHtml:
      writer.html(flags.top.value_or(flags.full ? render::kAllRows : render::kHtmlRows), *out);
      break;
    case render::ReportFormat::kCsv:
      writer.csv(flags.top.value_or(render::kAllRows), *out);
      break;
    default: {
      render::TextOptions text;
      text.style = render::StyleFor(out->fd(), common.color, flags.width);
      text.top = flags.top.value_or(10);
      text.full = flags.full;
      out->Write(writer.text(text));
    }
  }
  return out->Commit();
}

}  // namespace memtrace::report
