#include "format/build_id_note.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace memtrace::format {
namespace {

constexpr uint32_t kOther = 5;  // NT_GNU_PROPERTY_TYPE_0

// A note without what would fill it up behind its end.
std::string Note(uint32_t type, std::string name, const std::string& desc, size_t align = 4) {
  name.push_back('\0');
  const uint32_t head[] = {static_cast<uint32_t>(name.size()), static_cast<uint32_t>(desc.size()),
                           type};
  std::string note(reinterpret_cast<const char*>(head), sizeof(head));
  note += name;
  note.resize((note.size() + align - 1) / align * align);
  return note + desc;
}

std::string Filled(std::string note, size_t align = 4) {
  note.resize((note.size() + align - 1) / align * align);
  return note;
}

TEST(BuildIdNoteTest, IsFoundAmongOthers) {
  const std::string id(20, 'i');
  const std::string notes = Filled(Note(kOther, "GNU", std::string(70, 'p'))) +
                            Filled(Note(NT_GNU_BUILD_ID, "Go", "another")) +
                            Note(NT_GNU_BUILD_ID, "GNU", id);
  EXPECT_EQ(BuildIdIn(notes, 4), id);
  EXPECT_EQ(BuildIdIn(Filled(Note(kOther, "GNU", "12", 8), 8) + Note(NT_GNU_BUILD_ID, "GNU", id, 8),
                      8),
            id);
  EXPECT_EQ(BuildIdIn(Note(NT_GNU_BUILD_ID, "GNU", "ab"), 4), "ab") << "nothing fills it up";
}

// What lies behind the segment must not be read, though a note that nothing fills up ends
// before a multiple of 4, and its successor would begin behind the segment.
TEST(BuildIdNoteTest, NothingBehindTheSegmentIsRead) {
  const std::string last = Note(kOther, "GNU", "x");
  const std::string memory = Filled(last) + Note(NT_GNU_BUILD_ID, "GNU", std::string(20, 'i'));
  EXPECT_EQ(BuildIdIn(std::string_view(memory).substr(0, last.size()), 4), "");
  EXPECT_EQ(BuildIdIn(memory, 4), std::string(20, 'i'));
}

TEST(BuildIdNoteTest, AnyBytesAreRead) {
  const std::string good =
      Filled(Note(kOther, "GNU", "abc")) + Note(NT_GNU_BUILD_ID, "GNU", std::string(20, 'i'));
  // In memory of their own, so that a sanitizer sees a byte too many.
  for (size_t cut = 0; cut < good.size(); ++cut) {
    const std::vector<char> bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(cut));
    EXPECT_EQ(BuildIdIn({bytes.data(), bytes.size()}, 4), "") << cut;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char byte : {'\xff', '\x7f', '\0', '\1'}) {
      std::vector<char> bytes(good.begin(), good.end());
      bytes[at] = byte;
      EXPECT_LE(BuildIdIn({bytes.data(), bytes.size()}, at % 2 == 0 ? 4 : 8).size(),
                kMaxBuildIdBytes);
    }
  }
}

TEST(BuildIdNoteTest, OneThatIsTooLongIsDamaged) {
  EXPECT_EQ(BuildIdIn(Note(NT_GNU_BUILD_ID, "GNU", std::string(kMaxBuildIdBytes, 'i')), 4).size(),
            kMaxBuildIdBytes);
  EXPECT_EQ(BuildIdIn(Note(NT_GNU_BUILD_ID, "GNU", std::string(kMaxBuildIdBytes + 1, 'i')), 4), "");
}

}  // namespace
}  // namespace memtrace::format
