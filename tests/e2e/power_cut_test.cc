// A trace that ends anywhere, as after a power cut: what was whole before the cut is read, as it
// is in the whole trace; nothing else is; and it is said that something is missing.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "report/trace/block_scanner.h"
#include "report/trace/trace_reader.h"
#include "tests/e2e/harness.h"

namespace memtrace::e2e {
namespace {

using report::BlockRef;
using report::ByteSource;
using report::ScannedBlock;
using report::ThreadStream;
using report::TraceReader;

// The first `size` bytes of another source, which stays the caller's.
class CutSource : public ByteSource {
 public:
  CutSource(const std::string* bytes, uint64_t size) : bytes_(bytes), size_(size) {}
  uint64_t Size() const override { return size_; }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    if (offset >= size_) return 0;
    const size_t n = std::min<uint64_t>(out.size(), size_ - offset);
    memcpy(out.data(), bytes_->data() + offset, n);
    return n;
  }

 private:
  const std::string* bytes_;
  const uint64_t size_;
};

using Key = std::pair<uint32_t, uint32_t>;  // thread, sequence

class PowerCut {
 public:
  explicit PowerCut(std::string bytes) : bytes_(std::move(bytes)) {
    const CutSource source(&bytes_, bytes_.size());
    report::BlockScanner scanner(&source);
    uint64_t at = 64;
    for (;;) {
      const auto found = scanner.Find(at);
      if (!found.ok() || !found->has_value()) break;
      blocks_.push_back(**found);
      at = blocks_.back().end();
    }
    auto reader = TraceReader::FromSource(std::make_unique<CutSource>(&bytes_, bytes_.size()), "t");
    if (!reader.ok()) return;
    for (const ThreadStream& stream : (*reader)->streams()) {
      for (const BlockRef& block : stream.blocks) {
        std::vector<uint64_t>& words = whole_[{stream.thread, block.sequence}];
        (*reader)->ReadEvents(stream, block, &words);
      }
    }
  }

  const std::vector<ScannedBlock>& blocks() const { return blocks_; }
  size_t events_blocks() const { return whole_.size(); }
  uint64_t size() const { return bytes_.size(); }

  // Empty: the file cut there is as it should be.
  std::string Check(uint64_t cut) const {
    auto reader = TraceReader::FromSource(std::make_unique<CutSource>(&bytes_, cut), "t");
    if (cut < sizeof(format::FileHeader)) return reader.ok() ? "a header that is cut" : "";
    if (!reader.ok()) return std::string(reader.status().message());
    std::set<Key> expected;
    uint64_t metadata = 0;
    bool within = false;  // a block
    for (const ScannedBlock& block : blocks_) {
      if (block.payload_end() > cut) {
        within |= block.offset < cut;
        continue;
      }
      metadata += block.header.kind == format::BlockKind::kMetadata;
      if (block.header.kind == format::BlockKind::kEvents) {
        expected.insert({block.header.thread, block.header.sequence});
      }
    }
    if ((*reader)->statistics().metadata_blocks != metadata) return "metadata blocks differ";
    for (const ThreadStream& stream : (*reader)->streams()) {
      for (const BlockRef& block : stream.blocks) {
        const Key key = {stream.thread, block.sequence};
        std::vector<uint64_t> words;
        if (!(*reader)->ReadEvents(stream, block, &words)) return "a block cannot be read";
        const auto at = whole_.find(key);
        if (at == whole_.end()) return "a block that the whole trace lacks";
        if (block.is_ring) {
          // As far as the file goes.
          if (words.size() > at->second.size() ||
              !std::equal(words.begin(), words.end(), at->second.begin())) {
            return "other words in a ring";
          }
        } else if (words != at->second) {
          return "other words";
        }
        expected.erase(key);
      }
    }
    if (!expected.empty()) return "a block before the cut is missing";
    if (within && !(*reader)->cut()) return "no word of it";
    return "";
  }

 private:
  std::string bytes_;
  std::vector<ScannedBlock> blocks_;
  std::map<Key, std::vector<uint64_t>> whole_;
};

class PowerCutTest : public ::testing::Test {
 protected:
  std::string Trace() {
    const Result run = RunCommand(Traced(
        {.arguments = {TraceePath("pass_blocks_between_threads"), "3", "20000"}}, work_.path()));
    EXPECT_EQ(run.Outcome(), "exit 0") << run.err;
    return TraceOf(work_.path(), "pass_blocks_between_threads");
  }

  void CutEverywhere(const std::string& bytes) {
    const PowerCut cut(bytes);
    ASSERT_GT(cut.events_blocks(), 3u);
    std::set<uint64_t> places;
    for (uint64_t at = 0; at < std::min<uint64_t>(2000, cut.size()); ++at) places.insert(at);
    for (const ScannedBlock& block : cut.blocks()) {
      for (uint64_t around : {block.offset, block.payload_offset(), block.payload_end()}) {
        for (uint64_t at = around > 70 ? around - 70 : 0; at < around + 70; ++at) {
          if (at <= cut.size()) places.insert(at);
        }
      }
    }
    std::mt19937 random(4);
    for (int i = 0; i < 1500; ++i) places.insert(random() % (cut.size() + 1));
    for (const uint64_t at : places) {
      const std::string wrong = cut.Check(at);
      ASSERT_EQ(wrong, "") << "cut at byte " << at << " of " << cut.size();
    }
    EXPECT_EQ(cut.Check(cut.size()), "");
  }

  TempDir work_;
};

TEST_F(PowerCutTest, ARawTraceGivesWhatIsBeforeTheCut) { CutEverywhere(ReadFile(Trace())); }

TEST_F(PowerCutTest, APackedTraceGivesWhatIsBeforeTheCut) {
  const std::string trace = Trace();
  const Result pack =
      RunCommand({.arguments = {ToolPath(), "pack", "-o", work_ / "packed", trace}});
  ASSERT_EQ(pack.Outcome(), "exit 0") << pack.err;
  CutEverywhere(ReadFile(work_ / "packed"));
}

}  // namespace
}  // namespace memtrace::e2e
