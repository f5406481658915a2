#include "preload/coverage_notes.h"

#include <atomic>

#include "format/records.h"
#include "preload/append_records.h"
#include "preload/text.h"

namespace memtrace {
namespace {

constexpr uint32_t kMaxNotes = 512;  // programs open dozens of plugins with RTLD_DEEPBIND
constexpr size_t kMaxBytes = 512;

struct Note {
  std::atomic<bool> ready{false};
  Text<kMaxBytes> text;
};

constinit Note g_notes[kMaxNotes];
constinit std::atomic<uint32_t> g_count{0};
constinit std::atomic<uint64_t> g_unwritten{0};

void Write(std::string_view note) {
  BuildRecords<kMaxBytes + 32>(
      [&](format::RecordEncoder& out) {
        out.Begin(format::RecordTag::kNote);
        out.Bytes(note);
        out.End();
      },
      AppendKeptBlock{});
}

}  // namespace

void AddCoverageNote(std::string_view note) {
  note = First(note, kMaxBytes - 1);
  const uint32_t count = g_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count && i < kMaxNotes; ++i) {
    if (g_notes[i].ready.load(std::memory_order_acquire) && g_notes[i].text.view() == note) return;
  }
  const uint32_t index = g_count.fetch_add(1, std::memory_order_relaxed);
  if (index >= kMaxNotes) {
    g_count.store(kMaxNotes, std::memory_order_relaxed);
    g_unwritten.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  g_notes[index].text << note;
  g_notes[index].ready.store(true, std::memory_order_release);
  Write(note);
}

void WriteCoverageNotesAgain() {
  for (const Note& note : g_notes) {
    if (note.ready.load(std::memory_order_acquire)) Write(note.text.view());
  }
}

uint64_t unwritten_coverage_notes() { return g_unwritten.load(std::memory_order_relaxed); }

}  // namespace memtrace
