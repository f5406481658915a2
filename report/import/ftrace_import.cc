#include "report/import/ftrace_import.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/import/ftrace_line.h"
#include "report/import/imported_trace.h"
#include "report/import/kernel_symbols.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::import {
namespace {

// kmalloc(0) gives this out, again and again, and it is no memory.
constexpr uint64_t kZeroSizePointer = 16;
constexpr size_t kLongestLine = 4096;
constexpr size_t kMostLossNotes = 20;
// Where functions are put whose address is not known: no kernel has code there.
constexpr uint64_t kNoAddresses = 0x400000000000;
constexpr uint64_t kMostFunctionBytes = 1 << 20;

// Lines of any length; of a longer one than any event's the beginning.
class LineReader {
 public:
  explicit LineReader(std::istream* in) : in_(in), buffer_(1 << 16) {}

  // `cut`: it is the last, and has no end.
  bool Next(std::string* line, bool* cut) {
    line->clear();
    bool any = false;
    *cut = false;
    while (Fill()) {
      any = true;
      const char* begin = buffer_.data() + at_;
      const auto* end = static_cast<const char*>(memchr(begin, '\n', size_ - at_));
      const size_t bytes = end != nullptr ? static_cast<size_t>(end - begin) : size_ - at_;
      if (line->size() < kLongestLine) {
        line->append(begin, std::min(bytes, kLongestLine - line->size()));
      }
      at_ += bytes + (end != nullptr);
      *cut = end == nullptr;
      if (end != nullptr) break;
    }
    return any;
  }

 private:
  bool Fill() {
    if (at_ < size_) return true;
    in_->read(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    at_ = 0;
    size_ = static_cast<size_t>(in_->gcount());
    return size_ > 0;
  }

  std::istream* const in_;
  std::vector<char> buffer_;
  size_t at_ = 0, size_ = 0;
};

class Importer {
 public:
  Importer(const KernelSymbols* symbols, ImportedTrace* trace)
      : symbols_(symbols), trace_(trace) {}

  void Take(absl::string_view text, bool cut);
  void Finish(const std::string& log);
  const FtraceImportResult& result() const { return result_; }

 private:
  uint32_t CallSite(const FtraceLine& line);
  // An address for the symbol of `line`, which only the log has.
  uint64_t PlaceFor(const FtraceLine& line);
  void Lost(const FtraceLine& line);

  const KernelSymbols* const symbols_;
  ImportedTrace* const trace_;
  FtraceImportResult result_;
  absl::flat_hash_map<std::pair<std::string, std::string>, uint64_t> places_;
  uint64_t next_place_ = kNoAddresses;
  absl::flat_hash_set<uint64_t> unnamed_;  // addresses
  uint64_t last_ns_ = 0, backwards_ = 0;
  uint64_t overwritten_ = 0, lost_ = 0, losses_ = 0;
};

// See format/imported.h.
std::string ModulePath(absl::string_view module, absl::string_view function) {
  return absl::StrCat("[", module.empty() ? "kernel" : module, "]",
                      function.empty() ? "" : "/", function);
}

uint64_t Importer::PlaceFor(const FtraceLine& line) {
  const auto [at, is_new] = places_.try_emplace(
      {std::string(line.symbol), std::string(line.symbol_module)}, next_place_);
  if (is_new) next_place_ += kMostFunctionBytes;
  return at->second;
}

uint32_t Importer::CallSite(const FtraceLine& line) {
  if (!line.symbol.empty()) {
    uint64_t base = symbols_->AddressOf(line.symbol, line.symbol_module);
    if (base == 0) base = PlaceFor(line);
    return trace_->CallSite(trace_->Module(ModulePath(line.symbol_module, line.symbol), base),
                            base + std::min(line.call_site, kMostFunctionBytes - 1));
  }
  const KernelSymbol* symbol = symbols_->Find(line.call_site);
  if (symbol == nullptr && !line.caller.empty()) {
    FtraceLine named = line;
    named.symbol = line.caller;
    named.call_site = line.caller_offset;
    return CallSite(named);
  }
  if (symbol == nullptr) {
    unnamed_.insert(line.call_site);
    return trace_->CallSite(trace_->Module(ModulePath("", ""), 0), line.call_site);
  }
  return trace_->CallSite(
      trace_->Module(ModulePath(symbol->module, symbol->name), symbol->address), line.call_site);
}

// A log may say anything.
void AddLost(uint64_t more, uint64_t* sum) {
  constexpr uint64_t kMost = INT64_MAX;
  *sum = std::min(*sum + std::min(more, kMost), kMost);
}

void Importer::Lost(const FtraceLine& line) {
  AddLost(std::max<uint64_t>(line.lost, 1), &lost_);
  result_.lost_more |= line.lost == 0;
  if (++losses_ > kMostLossNotes) return;
  trace_->Note(absl::StrFormat(
      "The log lost %s of processor %d after %d.%06d s of its clock.",
      line.lost != 0 ? words::Plural(line.lost, "event") : "events, it does not say how many,",
      line.cpu, last_ns_ / 1'000'000'000, last_ns_ / 1000 % 1'000'000));
}

void Importer::Take(absl::string_view text, bool cut) {
  ++result_.lines;
  FtraceLine line = ParseFtraceLine(text);
  // The end of a number may be missing.
  if (cut && (line.kind == FtraceLine::Kind::kAlloc || line.kind == FtraceLine::Kind::kFree)) {
    line.kind = FtraceLine::Kind::kBad;
    line.problem = "the log ends in it, without a line end";
  }
  switch (line.kind) {
    case FtraceLine::Kind::kAlloc:
    case FtraceLine::Kind::kFree:
      if (line.time_ns < last_ns_) ++backwards_;
      last_ns_ = std::max(last_ns_, line.time_ns);
      break;
    case FtraceLine::Kind::kOtherEvent:
      ++result_.other_events;
      trace_->Passed(line.time_ns);
      return;
    case FtraceLine::Kind::kLost:
      Lost(line);
      return;
    case FtraceLine::Kind::kWritten:
      AddLost(line.lost, &overwritten_);
      return;
    case FtraceLine::Kind::kNothing:
      return;
    case FtraceLine::Kind::kBad:
      if (++result_.bad_lines == 1) {
        result_.first_bad = absl::StrCat("line ", result_.lines, ": ", line.problem, ": ",
                                         words::EscapeControls(text.substr(0, 120)));
      }
      return;
  }
  const bool no_memory = (line.address & format::kAddressMask) == kZeroSizePointer;
  if (line.kind == FtraceLine::Kind::kAlloc) {
    ++(no_memory ? result_.no_blocks : line.address == 0 ? result_.failed : result_.allocations);
    if (no_memory) return;
    trace_->Alloc(line.tid, line.comm, line.time_ns, line.function, line.address,
                  line.requested_bytes, line.allocated_bytes, CallSite(line));
  } else {
    const bool no_block = no_memory || line.address == 0;
    ++(no_block ? result_.no_blocks : result_.frees);
    if (no_block) return;
    trace_->Free(line.tid, line.comm, line.time_ns, line.address);
  }
}

void Importer::Finish(const std::string& log) {
  // Events that were written over also show as lost between their neighbours.
  result_.lost_events = std::max(overwritten_, lost_);
  result_.threads = trace_->threads();
  result_.call_sites = trace_->call_sites();
  result_.unnamed_call_sites = unnamed_.size();
  trace_->Note(absl::StrCat("Imported from the ftrace log ", log,
                            ": blocks are the kernel's, threads those that it ran in, and what is "
                            "live at the end was not freed within the log."));
  if (overwritten_ > 0) {
    trace_->Note(absl::StrCat("The log has ", words::Plural(overwritten_, "event"),
                              " less than were written: its buffer was full."));
  }
  if (losses_ > kMostLossNotes) {
    trace_->Note(absl::StrCat("It lost events ",
                              words::Plural(losses_ - kMostLossNotes, "more time"), "."));
  }
  if (result_.bad_lines > 0) {
    trace_->Note(absl::StrCat(words::Plural(result_.bad_lines, "line"), " of the log ",
                              result_.bad_lines == 1 ? "was" : "were",
                              " not understood, the first: ", result_.first_bad));
  }
  if (backwards_ > 0) {
    trace_->Note(absl::StrCat("The time of the log goes back ", words::Plural(backwards_, "time"),
                              ": it is taken in the order of its lines."));
  }
  if (result_.unnamed_call_sites > 0) {
    trace_->Note(
        absl::StrCat(words::Plural(result_.unnamed_call_sites, "call site"),
                     result_.unnamed_call_sites == 1 ? " is" : " are", " in no function of the ",
                     symbols_->empty()
                         ? "log; --system-map names a System.map of the kernel that ran"
                         : "system map: it is of another kernel, or that was loaded elsewhere "
                           "(KASLR); a copy of /proc/kallsyms of the same boot has the addresses"));
  }
  trace_->Counter("dropped_events", result_.lost_events);
  trace_->Counter("import_lines", result_.lines);
  trace_->Counter("import_bad_lines", result_.bad_lines);
  trace_->Counter("import_other_events", result_.other_events);
  trace_->SetProcess({"ftrace", log}, "[kernel]");
}

}  // namespace

absl::StatusOr<FtraceImportResult> ImportFtrace(const FtraceImportOptions& options) {
  KernelSymbols symbols;
  for (const std::string& map : options.system_maps) {
    const absl::Status read = symbols.Read(map);
    if (!read.ok()) return read;
  }
  std::ifstream file;
  std::istream* in = &std::cin;
  if (options.log != "-") {
    file.open(options.log, std::ios::binary);
    if (!file) return absl::NotFoundError(absl::StrCat(options.log, ": ", strerror(errno)));
    in = &file;
  }
  auto trace = ImportedTrace::Create(options.output);
  if (!trace.ok()) return trace.status();
  Importer importer(&symbols, trace->get());
  LineReader lines(in);
  bool cut;
  for (std::string line; lines.Next(&line, &cut);) importer.Take(line, cut);
  if (in->bad()) return absl::UnavailableError(absl::StrCat("cannot read ", options.log));
  const FtraceImportResult& result = importer.result();
  if (result.allocations + result.failed + result.no_blocks + result.frees == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.log, " has no event of kmem in ", words::Plural(result.lines, "line"),
                     result.first_bad.empty() ? "" : absl::StrCat("; ", result.first_bad),
                     "; record some with: trace-cmd record -e kmem, then trace-cmd report"));
  }
  importer.Finish(options.log);
  const absl::Status finished = (*trace)->Finish();
  if (!finished.ok()) return finished;
  return importer.result();
}

}  // namespace memtrace::report::import
