// The rooms of report/ have an order, and each includes only itself and those below it. It is
// written down once, in docs/architecture.md. What the directories above them may use is in its
// picture, and here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/files.h"
#include "tests/temp_dir.h"

namespace memtrace {
namespace {

namespace fs = std::filesystem;

const std::string kSource = MEMTRACE_SOURCE_DIR;

// The rooms, the lowest first: the block that begins behind the mark in the document.
std::vector<std::string> Order() {
  const std::string document = ReadFile(kSource + "/docs/architecture.md");
  const std::string mark = "<!-- rooms -->\n```\n";
  const size_t begin = document.find(mark);
  if (begin == std::string::npos) return {};
  const size_t end = document.find("```", begin + mark.size());
  std::istringstream words(document.substr(begin + mark.size(), end - begin - mark.size()));
  std::vector<std::string> rooms;
  for (std::string room; words >> room;) rooms.push_back(room);
  return rooms;
}

// "FILE: #include ..." for each include of a file of this tree, of those below `directory`, that
// `may` returns false for. It is given what is between the quotes.
template <typename May>
std::vector<std::string> IncludesBut(const fs::path& directory, May may) {
  const std::string include = "#include \"";
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cc" && extension != ".inc") continue;
    std::istringstream lines(ReadFile(entry.path()));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(include)) continue;
      const size_t end = line.find('"', include.size());
      if (may(line.substr(include.size(), end - include.size()))) continue;
      found.push_back(entry.path().lexically_relative(kSource).string() + ": " + line);
    }
  }
  return found;
}

// Those of rooms that are not below `room`, nor it.
std::vector<std::string> Violations(const fs::path& directory, const std::string& room,
                                    const std::map<std::string, size_t>& place) {
  const std::string report = "report/";
  return IncludesBut(directory, [&](const std::string& path) {
    if (!path.starts_with(report)) return true;
    const size_t end = path.find('/', report.size());
    const auto included = place.find(path.substr(report.size(), end - report.size()));
    return included != place.end() && included->second <= place.at(room);
  });
}

TEST(RoomOrderTest, NoRoomIncludesOneAboveIt) {
  const std::vector<std::string> order = Order();
  std::map<std::string, size_t> place;
  for (const std::string& room : order) place.emplace(room, place.size());
  ASSERT_EQ(place.size(), order.size()) << "a room is named twice";

  std::set<std::string> rooms;
  for (const auto& entry : fs::directory_iterator(kSource + "/report")) {
    if (entry.is_directory()) rooms.insert(entry.path().filename());
  }
  EXPECT_EQ(rooms, std::set<std::string>(order.begin(), order.end()))
      << "docs/architecture.md does not name the rooms of report/";

  for (const std::string& room : order) {
    EXPECT_THAT(Violations(kSource + "/report/" + room, room, place), testing::IsEmpty())
        << "the order of the rooms is in docs/architecture.md: move what is needed down, or what "
           "needs it up";
  }
}

TEST(RoomOrderTest, ALibraryOfARoomHasNoFilesOfOthers) {
  for (const std::string& room : Order()) {
    const std::string list = kSource + "/report/" + room + "/CMakeLists.txt";
    if (!fs::exists(list)) continue;
    EXPECT_THAT(ReadFile(list), testing::Not(testing::HasSubstr("../"))) << list;
  }
}

TEST(RoomOrderTest, NoDirectoryIncludesWhatThereIsNoArrowTo) {
  const std::map<std::string, std::set<std::string>> arrows = {
      {"format", {}},
      {"preload", {"format", "include"}},
      {"base", {}},
      {"symbolizer", {"base", "format/build_id_note.h", "absl"}},
      {"report", {"base", "format", "symbolizer", "absl"}},
  };
  for (const auto& [directory, others] : arrows) {
    EXPECT_THAT(IncludesBut(kSource + "/" + directory,
                            [&](const std::string& path) {
                              const std::string included = path.substr(0, path.find('/'));
                              return included == directory || others.contains(included) ||
                                     others.contains(path);
                            }),
                testing::IsEmpty())
        << "docs/architecture.md says what " << directory << "/ may use";
  }
}

TEST(RoomOrderTest, AnIncludeOfARoomAboveOrOfNoneIsFound) {
  const TempDir directory;
  WriteFile(directory.path() + "/low.h",
            "#include \"report/low/other.h\"\n#include \"report/high/it.h\"\n"
            "#include <cstdint>\n#include \"report/nowhere/it.h\"\n");
  const std::map<std::string, size_t> place = {{"low", 0}, {"high", 1}};
  EXPECT_THAT(Violations(directory.path(), "low", place),
              testing::ElementsAre(testing::EndsWith("low.h: #include \"report/high/it.h\""),
                                   testing::EndsWith("low.h: #include \"report/nowhere/it.h\"")));
  EXPECT_EQ(Violations(directory.path(), "high", place).size(), 1u);
}

}  // namespace
}  // namespace memtrace
