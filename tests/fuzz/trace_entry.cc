#include "tests/fuzz/trace_entry.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ostream>
#include <streambuf>

#include "absl/strings/str_cat.h"
#include "format/checksum.h"
#include "format/trace_format.h"
#include "report/analysis/analyzer.h"
#include "report/command/dump.h"
#include "report/command/info.h"
#include "report/names/site_symbols.h"
#include "report/render/formats.h"
#include "report/render/text_report.h"
#include "report/render/valgrind_report.h"
#include "report/trace/packer.h"
#include "report/trace/trace_reader.h"
#include "tests/report/harmless.h"

namespace memtrace::report {
namespace {

constexpr uint64_t kMaxContent = 64 << 20;

[[noreturn]] void Fail(const char* what, const absl::Status& status) {
  fprintf(stderr, "%s: %s\n", what, status.ToString().c_str());
  abort();
}

// Counts what is printed.
class CountingBuffer : public std::streambuf {
 public:
  size_t bytes() const { return bytes_; }

 protected:
  int overflow(int c) override {
    ++bytes_;
    return c == EOF ? 0 : c;
  }
  std::streamsize xsputn(const char*, std::streamsize n) override {
    bytes_ += static_cast<size_t>(n);
    return n;
  }

 private:
  size_t bytes_ = 0;
};

// A file without a name, kept from input to input.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(memfd_create(name, MFD_CLOEXEC)) {
    if (fd_ < 0) Fail("memfd_create", absl::UnavailableError("no memory file"));
  }
  void Fill(std::string_view bytes) {
    if (ftruncate(fd_, 0) != 0 ||
        pwrite(fd_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
      Fail("memory file", absl::UnavailableError("cannot be filled"));
    }
  }
  int fd() const { return fd_; }
  std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }

 private:
  const int fd_;
};

template <typename Function>
void ForEachBlock(std::span<uint8_t> trace, Function function) {
  format::BlockHeader header;
  for (size_t at = sizeof(format::FileHeader); at + sizeof(header) <= trace.size();) {
    memcpy(&header, trace.data() + at, sizeof(header));
    const uint64_t end = at + sizeof(header) + uint64_t{header.payload_bytes};
    if (header.magic != format::kBlockMagic) {
      at += format::kBlockAlignment;
      continue;
    }
    function(header, at, end <= trace.size());
    at = end <= trace.size() ? AlignToBlock(end) : at + format::kBlockAlignment;
  }
}

}  // namespace

void RepairChecksums(std::span<uint8_t> trace) {
  format::FileHeader file;
  if (trace.size() < sizeof(file)) return;
  memcpy(&file, trace.data(), sizeof(file));
  file.header_checksum = format::HeaderChecksum(file);
  memcpy(trace.data(), &file, sizeof(file));
  ForEachBlock(trace, [&](format::BlockHeader& header, size_t at, bool whole) {
    if (whole && header.kind != format::BlockKind::kRing) {
      header.payload_checksum =
          format::Checksum(trace.data() + at + sizeof(header), header.payload_bytes);
    }
    header.header_checksum = format::HeaderChecksum(header);
    memcpy(trace.data() + at, &header, sizeof(header));
  });
}

bool IsModest(std::span<const uint8_t> trace) {
  uint64_t content = 0;
  const std::span<uint8_t> bytes(const_cast<uint8_t*>(trace.data()), trace.size());
  ForEachBlock(bytes, [&](const format::BlockHeader& header, size_t, bool) {
    if (header.codec != format::Codec::kRaw) content += header.content_bytes;
  });
  return content <= kMaxContent;
}

namespace {

// Names for every address, made of what the trace says of the module: as a file of that
// name could give them.
symbolizer::ModuleResult MakeUpNames(const symbolizer::Module& module,
                                     std::span<const symbolizer::Address> addresses) {
  symbolizer::ModuleResult result;
  result.state = module.build_id.empty() ? symbolizer::ModuleState::kDebugInfo
                                         : symbolizer::ModuleState::kUnreadable;
  result.message = module.path;
  for (const symbolizer::Address& address : addresses) {
    std::vector<symbolizer::Frame> frames;
    if (address.offset % 4 != 0) {
      frames.push_back({module.path, module.build_id, module.path, 7, true});
      frames.push_back({"std::vector<int>::push_back(int)", "", "/src/" + module.path, 8, false});
    } else if (address.offset % 8 != 0) {
      frames.push_back({module.build_id + module.path, "", "", 0, false});
    }
    result.frames.push_back(std::move(frames));
  }
  return result;
}

void MustBeHarmless(std::string_view text, std::string_view line_end, const char* what) {
  const size_t at = FirstHarmful(text, line_end);
  if (at == std::string_view::npos) return;
  fprintf(stderr, "%s: byte %zu is harmful\n", what, at);
  abort();
}

// Every format, of every table; and that each is text and nothing else.
size_t RenderEverything(const AnalyzedTrace& trace) {
  const SiteSymbols symbols(trace.analysis, *trace.stacks, MakeUpNames);
  const auto view = render::ReportView::Create(trace.analysis, symbols, "");
  if (!view.ok()) Fail("analyzed, but no view", view.status());
  size_t bytes = 0;
  render::TextOptions options;
  for (const bool utf8 : {false, true}) {
    options.style.utf8 = utf8;
    options.style.width = utf8 ? 120 : render::kMinWidth;
    options.full = utf8;
    const std::string text = render::RenderText(*view, options);
    MustBeHarmless(text, "\n", "text");
    bytes += text.size();
  }
  const auto check = [&](const char* what, std::string_view line_end, const auto& write) {
    words::StringSink sink;
    write(sink);
    MustBeHarmless(sink.text(), line_end, what);
    bytes += sink.text().size();
  };
  check("json", "\n", [&](words::Sink& out) { RenderJson(*view, 100, out); });
  check("mtrace", "\n", [&](words::Sink& out) { RenderMtrace(*view, out); });
  check("massif", "\n", [&](words::Sink& out) { RenderMassif(*view, out); });
  check("dhat", "\n", [&](words::Sink& out) { RenderDhat(*view, out); });
  const render::LossList losses = CollectLosses(*view, {});
  render::ValgrindStyle style;
  style.free_errors = CollectFreeErrors(*view, {.callers = 12});
  check("valgrind", "\n", [&](words::Sink& out) {
    (void)RenderValgrindText(*view, losses, style, out);  // an error where there was no scan
    RenderFreeErrors(*view, style, out);
  });
  check("valgrind-xml", "\n", [&](words::Sink& out) {
    (void)RenderValgrindXml(*view, losses, style, out);
  });
  for (const auto table : {render::CsvTable::kSites, render::CsvTable::kLeaks,
                           render::CsvTable::kTimeline, render::CsvTable::kThreads,
                           render::CsvTable::kMappings, render::CsvTable::kSizes}) {
    check("csv", "\r\n", [&](words::Sink& out) {
      RenderCsv(*view, table, render::SortColumn::kCaller, 1000, out);
    });
  }
  return bytes;
}

}  // namespace

size_t ReadEverything(std::string_view trace) {
  static MemoryFile raw("trace"), packed("packed");
  raw.Fill(trace);
  CountingBuffer counter;
  std::ostream out(&counter);

  DumpOptions dump;
  dump.file = raw.path();
  if (!RunDump(dump, out).ok()) return 0;  // not a trace: nothing reads it further
  if (const absl::Status status = RunInfo({raw.path()}, out); !status.ok()) {
    Fail("dumped, but has no info", status);
  }
  AnalyzeOptions options;
  options.keep_live_blocks = true;
  auto whole = AnalyzeTrace(raw.path(), options);
  if (!whole.ok()) Fail("dumped, but not analyzed", whole.status());
  const Analysis& analysis = whole->analysis;
  out << analysis.totals.allocations << analysis.coverage.damage;
  const ModuleIndex modules(analysis.modules);
  for (const Site& site : analysis.sites) {
    for (StackId id = site.stack; id; id = whole->stacks->node(id).parent) {
      out << whole->stacks->node(id).pc;
      out << (modules.Find(whole->stacks->node(id)) != nullptr);
    }
  }
  out << RenderEverything(*whole);
  options.from_share = 0.25;
  options.to_share = 0.75;
  if (!analysis.threads.empty()) options.thread = analysis.threads.front().id;
  (void)AnalyzeTrace(raw.path(), options);

  packed.Fill("");
  FileSource source(raw.fd());
  PackerOptions pack;
  pack.level = 1;
  pack.merge_bytes = 1024;
  Packer packer(&source, packed.fd(), "packed", pack);
  absl::Status status = packer.Start();
  if (status.ok()) status = packer.Advance();
  if (status.ok()) status = packer.Finish();
  if (status.ok()) {
    auto reader = TraceReader::FromSource(std::make_unique<FileSource>(packed.fd()), "packed");
    if (!reader.ok()) Fail("packed, but not opened", reader.status());
    auto again = AnalyzeTrace(**reader, {});
    if (!again.ok()) Fail("packed, but not analyzed", again.status());
  }
  return counter.bytes();
}

void FuzzTrace(const uint8_t* data, size_t size) {
  if (size > kMaxFuzzBytes) return;
  std::string trace(reinterpret_cast<const char*>(data), size);
  const std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(trace.data()), trace.size());
  constexpr size_t kLastReserved = offsetof(format::FileHeader, header_checksum) - 1;
  const bool as_it_is = size > kLastReserved && bytes[kLastReserved] != 0;
  if (!as_it_is) RepairChecksums(bytes);
  if (IsModest(bytes)) ReadEverything(trace);
}

}  // namespace memtrace::report
