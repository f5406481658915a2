#include "report/html/page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "report/html/deflated_base64.h"

#ifdef MEMTRACE_HTML_PAGE
// The page is longer than a string literal may be.
asm(".pushsection .rodata\n"
    ".hidden memtrace_html_page\n"
    ".hidden memtrace_html_page_end\n"
    ".globl memtrace_html_page\n"
    ".globl memtrace_html_page_end\n"
    "memtrace_html_page:\n"
    ".incbin \"" MEMTRACE_HTML_PAGE "\"\n"
    "memtrace_html_page_end:\n"
    ".byte 0\n"
    ".popsection\n");
extern "C" const char memtrace_html_page[];
extern "C" const char memtrace_html_page_end[];
#endif

namespace memtrace::report::html {
namespace {

absl::string_view Page() {
#ifdef MEMTRACE_HTML_PAGE
  return {memtrace_html_page, static_cast<size_t>(memtrace_html_page_end - memtrace_html_page)};
#else
  return {};
#endif
}

constexpr absl::string_view kMarker = "@@MEMTRACE_DATA@@";  // once, as web/build.mjs makes sure

}  // namespace

absl::Status PageIsThere() {
#ifdef MEMTRACE_HTML_PAGE
  return absl::OkStatus();
#else
  return absl::FailedPreconditionError(
      "--format html: this memtrace was built without it (" MEMTRACE_NO_HTML_BECAUSE
      "); build it where node and npm are, with -DMEMTRACE_HTML=ON");
#endif
}

void WritePage(absl::string_view kind, const std::function<void(words::Sink&)>& write_members,
               words::Sink& out) {
  const absl::string_view page = Page();
  const size_t marker = page.find(kMarker);
  if (marker == absl::string_view::npos) return;
  out.Write(page.substr(0, marker));
  {
    DeflatedBase64 data(&out);
    data.Write(absl::StrCat("{\"kind\":\"", kind, "\",\"version\":\"" MEMTRACE_VERSION "\""));
    write_members(data);
    data.Write("}");
    data.Finish();
  }
  out.Write(page.substr(marker + kMarker.size()));
}

}  // namespace memtrace::report::html
