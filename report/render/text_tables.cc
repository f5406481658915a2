// Tables that are not about call sites of the heap: sizes, threads, mappings and
// the memory map at the end.

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "report/base/path.h"
#include "report/render/plot.h"
#include "report/render/table.h"
#include "report/render/text_report.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::render {
namespace {

// "0", "1", "2 - 3", "1024 - 2047" and above that with units.
std::string SizeClassName(size_t size_class) {
  if (size_class == 0) return "0";
  const uint64_t low = uint64_t{1} << (size_class - 1);
  if (low == 1) return "1";
  if (low < 65536) return absl::StrCat(low, " - ", 2 * low - 1);
  return absl::StrCat(words::HumanBytes(low), " - ", words::HumanBytes(2 * low));
}

// Mappings of one kind and file that one caller asked for, by whatever way.
struct MappingGroup {
  const MappingSite* first = nullptr;
  uint64_t calls = 0, bytes = 0, live_bytes = 0;
};

std::vector<MappingGroup> ByCaller(const ReportView& view) {
  absl::flat_hash_map<std::tuple<int, std::string, uint32_t>, size_t> index;
  std::vector<MappingGroup> groups;
  for (const MappingSite* mapping : view.mappings()) {
    const Frame* caller = view.Caller(mapping->stack);
    const auto [it, is_new] = index.try_emplace(
        std::tuple(static_cast<int>(mapping->kind), mapping->file,
                   caller == nullptr ? 0 : caller->identity), groups.size());
    if (is_new) groups.push_back({.first = mapping});
    MappingGroup& group = groups[it->second];
    group.calls += mapping->calls;
    group.bytes += mapping->bytes;
    group.live_bytes += mapping->live_bytes;
  }
  std::stable_sort(groups.begin(), groups.end(), [](const MappingGroup& a, const MappingGroup& b) {
    return a.bytes > b.bytes;
  });
  return groups;
}

// A trace of a process that is at work is of a range as well, and has no map of the end yet.
absl::string_view WhyNoMemoryMap(const Analysis& analysis) {
  if (!analysis.range.whole() && analysis.coverage.live_until_ns == 0) {
    return "not known of a part of a run";
  }
  if (analysis.of_some_blocks()) return "not known of some of the blocks";
  return "not known: the trace has no map of the end";
}

std::string MemoryMapText(const ReportView& view, const TextOptions& options) {
  const MemoryMapSummary& map = view.analysis().memory_map;
  if (!map.known) return Heading(options, "MEMORY MAP", WhyNoMemoryMap(view.analysis()));
  const bool narrow = options.style.width < 80;
  TextTable table(
      {{"what", true}, {narrow ? "end" : "at the end"}, {narrow ? "start" : "at the start"}},
      "of it");
  const auto say = [&options](std::string text) {
    return [text = std::move(text), &options](size_t width) {
      return words::KeepBeginning(text, width, options.style.ellipsis());
    };
  };
  table.AddRow(
      {"heap (brk)", words::HumanBytes(map.heap_bytes), words::HumanBytes(map.heap_at_start_bytes)},
      say(absl::StrCat(words::HumanBytes(map.heap_growth_seen_bytes), " growth seen")));
  table.AddRow({"anonymous mappings", words::HumanBytes(map.anonymous_bytes),
                words::HumanBytes(map.anonymous_at_start_bytes)},
               nullptr);
  const auto part = [&](absl::string_view name, uint64_t bytes) {
    if (bytes > 0) {
      table.AddRow({absl::StrCat("  ", name), words::HumanBytes(bytes), ""}, nullptr);
    }
  };
  part(view.sampled() ? "blocks mapped for themselves, estimated" : "blocks mapped for themselves",
       map.mapped_blocks_bytes);
  part("heaps of other arenas", map.arena_bytes);
  part("thread stacks", map.thread_stack_bytes);
  part("the program's own mmap", map.program_mmap_bytes);
  if (map.program_other_mmap_bytes > 0) {
    table.AddRow(
        {"shared or not writable mmap", words::HumanBytes(map.program_other_mmap_bytes), ""},
        say("not counted above"));
  }
  if (map.tool_bytes > 0) {
    table.AddRow({"memtrace's own", words::HumanBytes(map.tool_bytes), ""},
                 say("not counted above"));
  }
  // Negated as unsigned: a hostile trace has the number that has no negative.
  const uint64_t signed_bytes = static_cast<uint64_t>(map.unexplained_bytes);
  const uint64_t unexplained = map.unexplained_bytes < 0 ? 0 - signed_bytes : signed_bytes;
  const std::string verdict =
      unexplained == 0
          ? "every byte of growth is explained by an event"
          : absl::StrCat(words::HumanBytes(unexplained), map.unexplained_bytes > 0
                                                             ? " of growth that no event explains"
                                                             : " less growth than the events say");
  return absl::StrCat(Heading(options, "MEMORY MAP", verdict), table.Render(options.style, 2));
}

}  // namespace

std::string SizesText(const ReportView& view, const TextOptions& options) {
  const SizeHistogram& sizes = view.analysis().sizes;
  uint64_t most = 0, all = 0;
  size_t first = kSizeClasses, last = 0;
  for (size_t i = 0; i < kSizeClasses; ++i) {
    if (sizes.allocations[i] == 0) continue;
    most = std::max(most, sizes.allocations[i]);
    all += sizes.allocations[i];
    first = std::min(first, i);
    last = i;
  }
  if (all == 0) return "";
  const Numbers numbers(view, options.style);
  const auto bytes = [&](uint64_t n) {
    return numbers.estimated() ? numbers.Amount(n) : words::HumanBytes(n);
  };
  TextTable table({{"bytes asked for"}, {"allocations"}, {"share"}, {"total"}, {"live"}}, "");
  for (size_t i = first; i <= last; ++i) {
    if (sizes.allocations[i] == 0) continue;
    table.AddRow({SizeClassName(i),
                  numbers.estimated() ? numbers.Events(sizes.allocations[i])
                                      : words::Count(sizes.allocations[i]),
                  words::Percent(sizes.allocations[i], all), bytes(sizes.bytes[i]),
                  bytes(sizes.live_bytes[i])},
                 [&, i](size_t width) {
                   return options.style.Paint(
                       Ink::kPlot, HorizontalBar(sizes.allocations[i], most,
                                                 std::min<size_t>(width, 40), options.style));
                 });
  }
  return absl::StrCat(Heading(options, "SIZES", ""), table.Render(options.style, 2));
}

std::string ThreadsText(const ReportView& view, const TextOptions& options) {
  std::vector<const ThreadSummary*> threads;
  for (const ThreadSummary& thread : view.analysis().threads) threads.push_back(&thread);
  if (threads.empty()) return "";
  std::sort(threads.begin(), threads.end(), [](const ThreadSummary* a, const ThreadSummary* b) {
    return std::tuple(b->bytes_allocated, b->allocations, a->id) <
           std::tuple(a->bytes_allocated, a->allocations, b->id);
  });
  const Numbers numbers(view, options.style);
  TextTable table({{"tid"}, {numbers.wide() ? "allocations" : "allocs"}, {"frees"}, {"total"},
                   {"live"}, {numbers.wide() ? "temporary" : "temp."}},
                  "name, first to last event");
  const size_t shown = options.Shown(threads.size());
  for (size_t i = 0; i < shown; ++i) {
    const ThreadSummary& thread = *threads[i];
    table.AddRow(
        {absl::StrCat(thread.tid), numbers.Events(thread.allocations), numbers.Events(thread.frees),
         numbers.Bytes(thread.bytes_allocated), numbers.Bytes(thread.live_bytes),
         numbers.estimated() ? "-" : numbers.Events(thread.temporary)},
        [&](size_t width) {
          const std::string when = thread.allocations + thread.frees == 0
                                       ? "no events"
                                       : absl::StrCat(words::Duration(thread.first_time_ns), " to ",
                                                      words::Duration(thread.last_time_ns));
          std::string name = options.style.Name(thread.name);
          if (thread.in_signal_handlers) name += " (signal handlers)";
          const size_t room =
              width > words::DisplayWidth(when) + 2 ? width - words::DisplayWidth(when) - 2 : 0;
          if (room < 4) return words::KeepBeginning(name, width, options.style.ellipsis());
          return absl::StrCat(words::KeepBeginning(name, room, options.style.ellipsis()), "  ",
                              options.style.Paint(Ink::kDim, when));
        });
  }
  return absl::StrCat(
      Heading(options, "THREADS", threads.size() == 1 ? "one" : words::Count(threads.size())),
      table.Render(options.style, 2), MoreLine(options, threads.size(), shown, "thread"));
}

std::string MappingsText(const ReportView& view, const TextOptions& options) {
  std::string out;
  if (view.mappings().empty()) {
    const Analysis& analysis = view.analysis();
    out = Heading(options, "MAPPINGS",
                  view.filtered() ? "no site matches"
                  : !analysis.range.whole() || analysis.some_threads
                      ? "none in this part of the run"
                      : "the program mapped nothing by itself, and its heap did not grow");
  } else {
    const Numbers numbers(view, options.style);
    TextTable table({{"kind", true}, {"calls"}, {"bytes"}, {"live"}}, "caller");
    const std::vector<MappingGroup> groups = ByCaller(view);
    const size_t shown = options.Shown(groups.size());
    for (size_t i = 0; i < shown; ++i) {
      const MappingGroup& group = groups[i];
      const MappingSite& mapping = *group.first;
      // Mappings are all recorded; blocks of the heap that have one are sampled.
      const bool estimate =
          numbers.estimated() && mapping.kind == MappingSite::Kind::kMappedBlock;
      table.AddRow({absl::StrReplaceAll(MappingKindName(mapping.kind), {{"_", " "}}),
                    estimate ? numbers.Events(group.calls) : words::Count(group.calls),
                    estimate ? numbers.Amount(group.bytes) : words::HumanBytes(group.bytes),
                    estimate ? numbers.Amount(group.live_bytes)
                             : words::HumanBytes(group.live_bytes)},
                   [&](size_t width) {
                     if (mapping.file.empty()) {
                       return CallerCell(view, mapping.stack, width, options);
                     }
                     const std::string file =
                         words::KeepEnd(options.style.Name(FileNameOf(mapping.file)), width / 2,
                                        options.style.ellipsis());
                     const size_t used = words::DisplayWidth(file) + 5;
                     return absl::StrCat(file, " by ",
                                         CallerCell(view, mapping.stack,
                                                    width > used ? width - used : 8, options));
                   });
    }
    out = absl::StrCat(Heading(options, "MAPPINGS", "memory got from the kernel, by who asked"),
                       table.Render(options.style, 2),
                       MoreLine(options, groups.size(), shown, "caller"));
  }
  return absl::StrCat(out, MemoryMapText(view, options));
}

}  // namespace memtrace::report::render
