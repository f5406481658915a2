// See valgrind_report.h. docs/valgrind.md says what is the same and what is not.

#include "report/render/valgrind_report.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "report/analysis/coverage.h"
#include "report/leak/heuristics.h"
#include "report/leak/leak_kinds.h"
#include "report/render/selection_lines.h"
#include "report/words/escape.h"
#include "report/words/signal_name.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

using LeakCheck = ValgrindStyle::LeakCheck;

absl::Status NoScan(const ReportView& view, const ValgrindStyle& style) {
  return absl::FailedPreconditionError(
      absl::StrCat(view.analysis().file, ": ", WhyLeaksAreUnknown(view, style)));
}

// "48 (16 direct, 32 indirect) bytes in 1 blocks are definitely lost in loss record 3 of 9".
// Plural and commas are memcheck's; CTest and others match this text.
std::string LossText(const Loss& loss, size_t number, size_t of) {
  std::string out = words::Count(loss.total_bytes());
  if (loss.indirect_bytes > 0) {
    absl::StrAppend(&out, " (", words::Count(loss.bytes), " direct, ",
                    words::Count(loss.indirect_bytes), " indirect)");
  }
  absl::StrAppend(&out, " bytes in ", words::Count(loss.blocks), " blocks are ",
                  KindPhrase(loss.kind), " in loss record ", words::Count(number), " of ",
                  words::Count(of));
  return out;
}

class ValgrindLines {
 public:
  ValgrindLines(uint32_t pid, words::Sink& out)
      : prefix_(absl::StrCat("==", pid, "== ")), out_(out) {}
  void Add(absl::string_view line = "") { out_.Write(absl::StrCat(prefix_, line, "\n")); }
  // Writes text as it is: a suppression is to be copied from here.
  void AddRaw(absl::string_view text) { out_.Write(text); }
  bool done() const { return out_.done(); }

 private:
  const std::string prefix_;
  words::Sink& out_;
};

void AddStack(const std::vector<LossFrame>& stack, ValgrindLines& lines) {
  for (size_t i = 0; i < stack.size(); ++i) {
    lines.Add(absl::StrCat(i == 0 ? "   at " : "   by ", LossFrameText(stack[i])));
  }
}

constexpr absl::string_view kAllocatedAt = "Block was alloc'd at";

void AddFreeErrors(const ValgrindStyle& style, ValgrindLines& lines) {
  for (const FreeError& error : style.free_errors) {
    if (error.suppressed) continue;
    lines.Add(Phrase(error.kind));
    AddStack(error.stack, lines);
    lines.Add(absl::StrCat(" ", error.block));
    AddStack(error.block_stack, lines);
    if (!error.allocated_stack.empty()) {
      lines.Add(absl::StrCat(" ", kAllocatedAt));
      AddStack(error.allocated_stack, lines);
    }
    lines.Add();
    if (style.suppression_for_free) lines.AddRaw(style.suppression_for_free(error));
  }
}

void AddSummary(const LossList& list, const ValgrindStyle& style, ValgrindLines& lines) {
  const auto amount = [&](absl::string_view name, const LeakAmount& amount) {
    lines.Add(absl::StrFormat("%18s: %s bytes in %s blocks", name, words::Count(amount.bytes),
                              words::Count(amount.blocks)));
  };
  const auto total = [&](LeakKind kind) { return list.totals[static_cast<size_t>(kind)]; };
  uint64_t total_blocks = list.suppressed.blocks;
  for (const LeakAmount& kind : list.totals) total_blocks += kind.blocks;
  lines.Add("LEAK SUMMARY:");
  for (const LeakKind kind : kScanKinds) {
    amount(KindPhrase(kind), total(kind));
  }
  bool any = false;
  for (size_t i = 1; i < list.scan->by_heuristic.size(); ++i) {
    const LeakAmount& reached = list.scan->by_heuristic[i];
    if (reached.blocks == 0) continue;
    if (!any) lines.Add("                      of which reachable via heuristic:");
    any = true;
    lines.Add(absl::StrFormat("                        %-19s: %s bytes in %s blocks",
                              leak::HeuristicName(static_cast<leak::Pointer>(i)),
                              words::Count(reached.bytes), words::Count(reached.blocks)));
  }
  amount("suppressed", list.suppressed);
  if (style.leak_check != LeakCheck::kFull) {
    if (total_blocks > 0) {
      lines.Add("Rerun with --leak-check=full to see details of leaked memory");
    }
  } else if ((!style.show.Has(LeakKind::kReachable) && total(LeakKind::kReachable).blocks > 0) ||
             (!style.show.Has(LeakKind::kIndirect) && total(LeakKind::kIndirect).blocks > 0)) {
    lines.Add("Reachable blocks (those to which a pointer was found) are not shown.");
    lines.Add("To see them, rerun with: --leak-check=full --show-leak-kinds=all");
  }
  lines.Add();
}

std::string CommandText(const ProcessInfo& process) {
  return words::EscapeControls(absl::StrJoin(process.command, " "));
}

// Remarks on what a reader of memcheck's report would not think of asking.
std::vector<std::string> Remarks(const ReportView& view, const LossList& list,
                                 const ValgrindStyle& style) {
  std::vector<std::string> remarks = style.remarks;
  for (const std::string& only : SelectionLinesWithRange(view, /*of_sites_alone=*/false)) {
    remarks.push_back(absl::StrCat("Only ", only));
  }
  if (view.sampled()) {
    remarks.push_back(absl::StrCat("Sampled every ", view.analysis().process.sample_bytes,
                                   " bytes: most blocks are not in this report"));
  }
  if (CoverageNote stops = StopsNote(view.analysis().coverage); !stops.harmless) {
    remarks.push_back(std::move(stops.text));
  }
  if (list.scan != nullptr) {
    const uint64_t live = view.analysis().totals.live_blocks;
    if (list.losses.empty() && live > 0 && !view.filtered()) {
      remarks.push_back(
          absl::StrCat(words::Count(live), " blocks that are live at the end are not in the scan"));
    }
    for (std::string& note : RemarksOn(*list.scan)) remarks.push_back(std::move(note));
  }
  for (std::string& remark : remarks) remark = words::EscapeControls(remark);
  return remarks;
}

std::string Element(absl::string_view name, absl::string_view text) {
  return absl::StrCat("<", name, ">", words::EscapeMarkup(text), "</", name, ">");
}

std::string XmlTime(uint64_t ns) {
  const uint64_t ms = ns / 1'000'000;
  return absl::StrFormat("%02d:%02d:%02d:%02d.%03d ", ms / 86'400'000, ms / 3'600'000 % 24,
                         ms / 60'000 % 60, ms / 1000 % 60, ms % 1000);
}

std::string XmlStatus(absl::string_view state, uint64_t ns) {
  return absl::StrCat("<status>\n  <state>", state, "</state>\n  <time>", XmlTime(ns),
                      "</time>\n</status>\n\n");
}

std::string XmlCommand(absl::string_view element, const std::vector<std::string>& words) {
  std::string out = absl::StrCat("  <", element, ">\n");
  for (size_t i = 0; i < words.size(); ++i) {
    absl::StrAppend(&out, "    ", Element(i == 0 ? "exe" : "arg", words[i]), "\n");
  }
  return absl::StrCat(out, "  </", element, ">\n");
}

std::string XmlFrame(const LossFrame& frame) {
  std::string out = absl::StrFormat("    <frame>\n      <ip>0x%X</ip>\n", frame.ip);
  const auto part = [&](absl::string_view name, absl::string_view text) {
    if (!text.empty()) absl::StrAppend(&out, "      ", Element(name, text), "\n");
  };
  part("obj", frame.object);
  part("fn", frame.function);
  part("dir", frame.directory);
  part("file", frame.file);
  if (frame.line != 0) part("line", absl::StrCat(frame.line));
  return absl::StrCat(out, "    </frame>\n");
}

// `text`: a suppression as it is written to a file.
std::string XmlSuppression(absl::string_view text) {
  std::vector<absl::string_view> head;  // the name, the kind
  std::string more, frames;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line == "{" || line == "}") continue;
    const absl::string_view whole = line;
    if (head.size() < 2) {
      head.push_back(line);
    } else if (absl::StartsWith(line, "match-leak-kinds:")) {
      absl::StrAppend(&more, "    ", Element("skaux", line), "\n");
    } else if (absl::ConsumePrefix(&line, "fun:")) {
      absl::StrAppend(&frames, "    <sframe> ", Element("fun", line), " </sframe>\n");
    } else if (absl::ConsumePrefix(&line, "obj:")) {
      absl::StrAppend(&frames, "    <sframe> ", Element("obj", line), " </sframe>\n");
    } else {
      absl::StrAppend(&frames, "    <sframe> ", Element("fun", whole), " </sframe>\n");
    }
  }
  head.resize(2);
  return absl::StrCat("  <suppression>\n    ", Element("sname", head[0]), "\n    ",
                      Element("skind", head[1]), "\n", more, frames, "    <rawtext>\n<![CDATA[\n",
                      absl::StrReplaceAll(text, {{"]]>", "]]]]><![CDATA[>"}}),
                      "]]>\n    </rawtext>\n  </suppression>\n");
}

std::string XmlStack(const std::vector<LossFrame>& stack) {
  std::string out = "  <stack>\n";
  for (const LossFrame& frame : stack) absl::StrAppend(&out, XmlFrame(frame));
  return absl::StrCat(out, "  </stack>\n");
}

std::string XmlHead(uint64_t unique, absl::string_view kind) {
  return absl::StrFormat("<error>\n  <unique>0x%x</unique>\n  <tid>1</tid>\n  %s\n", unique,
                         Element("kind", kind));
}

std::string XmlError(const FreeError& error, uint64_t unique, const ValgrindStyle& style) {
  std::string out =
      absl::StrCat(XmlHead(unique, XmlKind(error.kind)), "  ", Element("what", Phrase(error.kind)),
                   "\n", XmlStack(error.stack), "  ", Element("auxwhat", error.block), "\n",
                   XmlStack(error.block_stack));
  if (!error.allocated_stack.empty()) {
    absl::StrAppend(&out, "  ", Element("auxwhat", kAllocatedAt), "\n",
                    XmlStack(error.allocated_stack));
  }
  if (style.suppression_for_free) out += XmlSuppression(style.suppression_for_free(error));
  return absl::StrCat(out, "</error>\n\n");
}

std::string XmlError(const Loss& loss, uint64_t unique, size_t number, size_t of,
                     const ValgrindStyle& style) {
  std::string out =
      absl::StrCat(XmlHead(unique, XmlKind(loss.kind)), "  <xwhat>\n    ",
                   Element("text", LossText(loss, number, of)), "\n    <leakedbytes>",
                   loss.total_bytes(), "</leakedbytes>\n    <leakedblocks>", loss.blocks,
                   "</leakedblocks>\n  </xwhat>\n", XmlStack(loss.stack));
  if (style.suppression_for) out += XmlSuppression(style.suppression_for(loss));
  return absl::StrCat(out, "</error>\n\n");
}

// What made the signal, and where, is not in the trace.
std::string XmlSignal(int number) {
  return absl::StrCat("<fatal_signal>\n  <tid>1</tid>\n  <signo>", number, "</signo>\n  ",
                      Element("signame", words::SignalName(number)), "\n</fatal_signal>\n\n");
}

// The document up to the end of the program.
class XmlOfRun {
 public:
  XmlOfRun(const ReportView& view, const ValgrindStyle& style, words::Sink& out)
      : process_(view.analysis().process), style_(style), out_(out) {}

  void WriteBegin(const std::vector<std::string>& remarks) {
    out_.Write("<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n\n"
               "<protocolversion>4</protocolversion>\n<protocoltool>memcheck</protocoltool>\n\n"
               "<preamble>\n");
    WriteLine(absl::StrCat("Memtrace ", style_.version,
                           ", a heap tracer: leaks by memcheck's rules"));
    for (const std::string& remark : remarks) WriteLine(absl::StrCat("Note: ", remark));
    WriteLine(absl::StrCat("Command: ", CommandText(process_)));
    out_.Write(absl::StrCat("</preamble>\n\n<pid>", process_.pid, "</pid>\n<ppid>", process_.ppid,
                            "</ppid>\n<tool>memcheck</tool>\n\n"));
    if (!style_.user_comment.empty()) {
      out_.Write(absl::StrCat(Element("usercomment", style_.user_comment), "\n\n"));
    }
    out_.Write(absl::StrCat("<args>\n", XmlCommand("vargv", style_.tool_command),
                            XmlCommand("argv", process_.command), "</args>\n\n",
                            XmlStatus("RUNNING", 0), "\n"));
    for (const FreeError& error : style_.free_errors) {
      if (error.suppressed || out_.done()) continue;
      absl::StrAppendFormat(
          &counts_, "  <pair>\n    <count>%d</count>\n    <unique>0x%x</unique>\n  </pair>\n",
          error.times, errors_);
      out_.Write(XmlError(error, errors_++, style_));
    }
    if (process_.end == ProcessInfo::End::kSignal) out_.Write(XmlSignal(process_.end_signal));
  }

  void WriteEnd() {
    out_.Write(absl::StrCat("<errorcounts>\n", counts_, "</errorcounts>\n\n<suppcounts>\n"));
    for (const UsedSuppression& used : style_.suppressions) {
      out_.Write(absl::StrCat("  <pair>\n    <count>", used.count, "</count>\n    ",
                              Element("name", used.name), "\n  </pair>\n"));
    }
    out_.Write("</suppcounts>\n\n</valgrindoutput>\n\n");
  }

  uint64_t errors() const { return errors_; }  // of frees

 private:
  void WriteLine(absl::string_view text) {
    out_.Write(absl::StrCat("  ", Element("line", text), "\n"));
  }

  const ProcessInfo& process_;
  const ValgrindStyle& style_;
  words::Sink& out_;
  uint64_t errors_ = 0;
  std::string counts_;
};

}  // namespace

ValgrindErrors CountErrors(const LossList& losses, const ValgrindStyle& style) {
  ValgrindErrors count;
  const auto add = [&count](bool suppressed, uint64_t times) {
    (suppressed ? count.suppressed : count.errors) += times;
    ++(suppressed ? count.suppressed_contexts : count.contexts);
  };
  for (const FreeError& error : style.free_errors) add(error.suppressed, error.times);
  if (style.leak_check != LeakCheck::kFull) return count;
  for (const Loss& loss : losses.losses) {
    if (loss.suppressed || style.errors.Has(loss.kind)) add(loss.suppressed, 1);
  }
  return count;
}

std::string WhyLeaksAreUnknown(const ReportView& view, const ValgrindStyle& style) {
  std::string why = style.why_unknown;
  if (why.empty()) LastScan(view.analysis(), &why);
  return why;
}

void RenderValgrindHead(const ReportView& view, const ValgrindStyle& style, words::Sink& out) {
  if (style.verbosity <= 0) return;
  const ProcessInfo& process = view.analysis().process;
  ValgrindLines lines(process.pid, out);
  lines.Add(absl::StrCat("Memtrace ", style.version, ", a heap tracer: leaks by memcheck's rules"));
  lines.Add(absl::StrCat("Command: ", CommandText(process)));
  if (!style.user_comment.empty()) lines.Add(words::EscapeControls(style.user_comment));
  lines.Add();
}

void RenderFreeErrors(const ReportView& view, const ValgrindStyle& style, words::Sink& out) {
  ValgrindLines lines(view.analysis().process.pid, out);
  AddFreeErrors(style, lines);
}

absl::Status RenderValgrindText(const ReportView& view, const LossList& list,
                                const ValgrindStyle& style, words::Sink& out) {
  if (list.scan == nullptr && style.leak_check != LeakCheck::kNo) return NoScan(view, style);
  const Analysis& analysis = view.analysis();
  ValgrindLines lines(analysis.process.pid, out);
  const bool loud = style.verbosity > 0;
  RenderValgrindHead(view, style, out);
  AddFreeErrors(style, lines);
  if (loud) {
    lines.Add();
    lines.Add("HEAP SUMMARY:");
    lines.Add(absl::StrCat("    in use at exit: ", words::Count(analysis.totals.live_bytes),
                           " bytes in ", words::Count(analysis.totals.live_blocks), " blocks"));
    lines.Add(absl::StrCat("  total heap usage: ", words::Count(analysis.totals.allocations),
                           " allocs, ", words::Count(analysis.totals.frees), " frees, ",
                           words::Count(analysis.totals.bytes_allocated), " bytes allocated"));
    lines.Add();
  }
  // Of what was not asked for, or is not in the trace, nothing is known.
  const bool all_freed = list.losses.empty() && analysis.totals.live_blocks == 0 &&
                         AllRecorded(analysis.coverage) && SelectionText(view).empty();
  if (style.leak_check != LeakCheck::kNo) {
    const std::vector<std::string> remarks = Remarks(view, list, style);
    for (const std::string& remark : remarks) lines.Add(absl::StrCat("Note: ", remark));
    if (!remarks.empty()) lines.Add();
    if (loud && all_freed) {
      lines.Add("All heap blocks were freed -- no leaks are possible");
      lines.Add();
    }
    if (style.leak_check == LeakCheck::kFull) {
      for (size_t i = 0; i < list.losses.size() && !lines.done(); ++i) {
        const Loss& loss = list.losses[i];
        if (loss.suppressed || !style.show.Has(loss.kind)) continue;
        lines.Add(LossText(loss, i + 1, list.losses.size()));
        AddStack(loss.stack, lines);
        lines.Add();
        if (style.suppression_for) lines.AddRaw(style.suppression_for(loss));
      }
    }
    if (loud && !all_freed) AddSummary(list, style, lines);
  }
  if (!loud) return absl::OkStatus();
  const ValgrindErrors errors = CountErrors(list, style);
  if (style.verbosity > 1 && !style.suppressions.empty()) {
    for (const UsedSuppression& used : style.suppressions) {
      const std::string of = used.of_frees
                                 ? ""
                                 : absl::StrCat(" suppressed: ", words::Count(used.bytes),
                                                " bytes in ", words::Count(used.blocks), " blocks");
      out.Write(absl::StrFormat("--%d-- used_suppression: %6d %s%s\n", analysis.process.pid,
                                used.count, words::EscapeControls(used.name), of));
    }
    lines.Add();
  }
  lines.Add(absl::StrCat("ERROR SUMMARY: ", words::Count(errors.errors), " errors from ",
                         words::Count(errors.contexts),
                         " contexts (suppressed: ", words::Count(errors.suppressed), " from ",
                         words::Count(errors.suppressed_contexts), ")"));
  return absl::OkStatus();
}

void RenderValgrindXmlWithoutLeaks(const ReportView& view, const ValgrindStyle& style,
                                   words::Sink& out) {
  const bool has_error =
      absl::c_any_of(style.free_errors, [](const FreeError& error) { return !error.suppressed; });
  const ProcessInfo::End end = view.analysis().process.end;
  const bool replaced = end == ProcessInfo::End::kExec;
  if (!has_error && !replaced && end != ProcessInfo::End::kSignal) return;
  std::vector<std::string> remarks = Remarks(view, LossList(), style);
  remarks.push_back(words::EscapeControls(
      absl::StrCat("the leaks are not known: ", WhyLeaksAreUnknown(view, style))));
  XmlOfRun document(view, style, out);
  document.WriteBegin(remarks);
  document.WriteEnd();
}

absl::Status RenderValgrindXml(const ReportView& view, const LossList& list,
                               const ValgrindStyle& style, words::Sink& out) {
  if (list.scan == nullptr && style.leak_check != LeakCheck::kNo) return NoScan(view, style);
  XmlOfRun document(view, style, out);
  document.WriteBegin(Remarks(view, list, style));
  out.Write(XmlStatus("FINISHED", view.analysis().process.duration_ns));
  uint64_t unique = document.errors();
  for (size_t i = 0; i < list.losses.size() && !out.done(); ++i) {
    const Loss& loss = list.losses[i];
    if (loss.suppressed || !style.show.Has(loss.kind)) continue;
    out.Write(XmlError(loss, unique++, i + 1, list.losses.size(), style));
  }
  document.WriteEnd();
  return absl::OkStatus();
}

}  // namespace memtrace::report::render
