#include "tests/fuzz/valgrind_xml_entry.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "report/valgrind/comparison.h"
#include "report/valgrind/render_comparison.h"
#include "report/valgrind/valgrind_run.h"
#include "report/words/sink.h"
#include "tests/report/harmless.h"

namespace memtrace::report {
namespace {

[[noreturn]] void Fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  abort();
}

void Print(const valgrind::ValgrindRun& run, const valgrind::Comparison& comparison) {
  const Analysis analysis;
  valgrind::ComparisonText options;
  options.full = true;
  const std::string text =
      valgrind::RenderComparisonText(analysis, run, comparison, options);
  if (FirstHarmful(text, "\n") != text.npos) Fail("the text is harmful");
  words::StringSink json;
  valgrind::RenderComparisonJson(analysis, run, comparison, json);
  if (FirstHarmful(json.text(), "\n") != json.text().npos) Fail("the JSON is harmful");
}

}  // namespace

bool FuzzValgrindXml(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto run = valgrind::ParseValgrindXml(text);
  if (!run.ok()) return false;
  LeakScan scan;
  render::LossList here;
  here.scan = &scan;
  here.losses = run->losses;
  here.Count();
  const Analysis analysis;
  valgrind::Comparison comparison = valgrind::Compare(analysis, here, *run);
  if (comparison.counts[3] + comparison.counts[4] > 0) Fail("a file is not the same as itself");
  Print(*run, comparison);
  here.losses.resize(here.losses.size() / 2);
  Print(*run, valgrind::Compare(analysis, here, *run));
  return true;
}

}  // namespace memtrace::report
