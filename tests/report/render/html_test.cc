// The writer of --format html: what is in the file is the document of --format json, and none of
// it is markup. What a browser makes of it is in tests/web.

#include "report/html/page.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "report/html/deflated_base64.h"
#include "report/render/formats.h"
#include "tests/report/render/render_made_up.h"

namespace memtrace::report {
namespace {

using nlohmann::json;

// What a browser does with the data.
std::string Unpacked(const std::string& base64) {
  std::string packed;
  EXPECT_TRUE(absl::Base64Unescape(base64, &packed));
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, -15), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string text;
  int state = Z_OK;
  while (state == Z_OK) {
    char piece[4096];
    stream.next_out = reinterpret_cast<Bytef*>(piece);
    stream.avail_out = sizeof(piece);
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(piece, sizeof(piece) - stream.avail_out);
  }
  EXPECT_EQ(state, Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0u);
  inflateEnd(&stream);
  return text;
}

std::string Packed(const std::string& text, size_t piece) {
  words::StringSink out;
  html::DeflatedBase64 sink(&out);
  for (size_t i = 0; i < text.size(); i += piece) sink.Write(absl::string_view(text).substr(i, piece));
  sink.Finish();
  return out.text();
}

TEST(DeflatedBase64Test, IsUndoneByAtobAndInflate) {
  std::mt19937 random(1);
  for (const size_t size : {0, 1, 2, 3, 4, 1000, 100'000, 1'000'000}) {
    std::string text;
    for (size_t i = 0; i < size; ++i) text += static_cast<char>(random());  // does not compress
    for (const size_t piece : {size_t{1}, size_t{777}, size_t{1} << 20}) {
      if (piece == 1 && size > 1000) continue;
      EXPECT_EQ(Unpacked(Packed(text, piece)), text) << size << " bytes in pieces of " << piece;
    }
  }
}

struct Parts {
  std::string before, data, after;
};

Parts Split(const std::string& page) {
  const std::string begin = "id=\"data\">", end = "</script>";
  const size_t from = page.find(begin) + begin.size();
  const size_t to = page.find(end, from);
  return {page.substr(0, from), page.substr(from, to - from), page.substr(to)};
}

Parts PageOf(const render::ReportView& view) {
  words::StringSink out;
  render::RenderHtml(view, render::kHtmlRows, out);
  return Split(out.text());
}

// As --format json writes it, and as the page's tables say.
std::string FrameText(const json& frame) {
  return absl::StrCat(frame.value("function", std::string()), " ",
                      frame.value("module", std::string()), " ", frame.value("file", std::string()),
                      ":", frame.value("line", 0));
}

json StackOf(const json& document, size_t stack) {
  json frames = json::array();
  const json& table = document["frames"];
  const auto text = [&](const json& column, size_t row) {
    return document["strings"][column[row].get<size_t>()].get<std::string>();
  };
  for (size_t node = document["stacks"]["node"][stack]; node != 0;
       node = document["nodes"]["parent"][node]) {
    const size_t frame = document["nodes"]["frame"][node];
    frames.push_back(absl::StrCat(text(table["name"], frame), " ", text(table["module"], frame),
                                  " ", text(table["file"], frame), ":",
                                  table["line"][frame].get<int>()));
  }
  return frames;
}

// Every "stack" as a list of texts.
void ReplaceStacks(json* value, const json* document) {
  for (auto& [key, member] : value->items()) {
    if (key == "stack" && member.is_number()) {
      member = StackOf(*document, member.get<size_t>());
    } else if (key == "stack" && member.is_array()) {
      json texts = json::array();
      for (const json& frame : member) texts.push_back(FrameText(frame));
      member = texts;
    } else if (member.is_structured()) {
      ReplaceStacks(&member, document);
    }
  }
}

class HtmlPageTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status there = html::PageIsThere();
    if (!there.ok()) GTEST_SKIP() << there.message();
    made_up_.AddSite(made_up_.Stack({{"Leak", "/work/a.cc", 3}, {"Inner", "/work/a.h", 1, kApp, true},
                                     {"main", "/work/a.cc", 9}, Libc("__libc_start_main")}),
                     10, 64, 4);
    made_up_.AddSite(made_up_.Stack({{"Other", "/work/b.cc", 5}, {"main", "/work/a.cc", 10}}), 5, 8, 0);
    // Looks like the first.
    made_up_.AddSite(made_up_.Stack({{"Leak", "/work/a.cc", 3}, {"Inner", "/work/a.h", 1, kApp, true},
                                     {"main", "/work/a.cc", 9}, Libc("__libc_start_main")}),
                     1, 64, 1);
  }
  MadeUp made_up_;
};

TEST_F(HtmlPageTest, HoldsTheDocumentOfFormatJson) {
  const render::ReportView view = made_up_.View();
  json document = json::parse(Unpacked(PageOf(view).data));
  EXPECT_EQ(document["kind"], "report");
  json report = document["report"];
  ReplaceStacks(&report, &document);

  words::StringSink out;
  render::RenderJson(view, render::kAllRows, out);
  json expected = json::parse(out.text());
  ReplaceStacks(&expected, nullptr);
  EXPECT_EQ(report, expected);
}

TEST_F(HtmlPageTest, HasOneStackForThoseThatLookTheSame) {
  const json document = json::parse(Unpacked(PageOf(made_up_.View()).data));
  EXPECT_EQ(document["stacks"]["node"].size(), 2u);
  const json& parents = document["nodes"]["parent"];
  for (size_t node = 1; node < parents.size(); ++node) EXPECT_LT(parents[node].get<size_t>(), node);
}

TEST_F(HtmlPageTest, HasWhatEachSiteDidOverTime) {
  made_up_.analysis.series_interval_ns = 20'000'000;
  for (Site& site : made_up_.analysis.sites) {
    if (site.live_blocks != 4) continue;
    site.series = {{.interval = 3, .allocations = 6, .frees = 2, .live_blocks = 4, .low_bytes = 0,
                    .high_bytes = 384, .live_bytes = 256},
                   {.interval = 9, .allocations = 4, .frees = 4, .live_blocks = 4, .low_bytes = 256,
                    .high_bytes = 320, .live_bytes = 256}};
  }
  const json document = json::parse(Unpacked(PageOf(made_up_.View()).data));
  EXPECT_EQ(document["series"]["interval_s"], 0.02);
  // In the order of the sites: the one that allocated most first.
  EXPECT_EQ(document["report"]["sites"][0]["live_blocks"], 4);
  EXPECT_EQ(document["series"]["points"],
            json({{3, 6, 2, 4, 256, 128, 9, 4, 4, 4, 256, 64}, json::array(), json::array()}));
}

TEST_F(HtmlPageTest, IsTheSameAroundTheDataWhateverNamesAreInIt) {
  const Parts harmless = PageOf(made_up_.View());
  for (const std::string name :
       {"</script><script>alert(1)</script>", "@@MEMTRACE_DATA@@", "\xff\xfe", "a\nb\x1b[2J\xe2\x80\xae"}) {
    made_up_.AddSite(made_up_.Stack({{name, name, 1}}), 1, 1, 1);
    made_up_.analysis.process.command.push_back(name);
    made_up_.analysis.file = name;
  }
  const Parts hostile = PageOf(made_up_.View());
  EXPECT_EQ(hostile.before, harmless.before);
  EXPECT_EQ(hostile.after, harmless.after);
  EXPECT_EQ(hostile.data.find_first_not_of(
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="),
            std::string::npos);
  // In ASCII, so that nothing depends on what the page is taken for.
  for (const char c : Unpacked(hostile.data)) {
    ASSERT_TRUE(c == '\n' || (c >= ' ' && c < 0x7f)) << static_cast<int>(c);
  }
}

TEST_F(HtmlPageTest, HasAPolicyThatForbidsEverythingButItself) {
  const Parts page = PageOf(made_up_.View());
  EXPECT_NE(page.before.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(page.before.find("script-src 'sha256-"), std::string::npos);
  const size_t policy = page.before.find("Content-Security-Policy");
  const std::string text = page.before.substr(policy, page.before.find('>', policy) - policy);
  for (const char* way_in : {"unsafe", "http", "*", "connect-src"}) {
    EXPECT_EQ(text.find(way_in), std::string::npos) << text;
  }
  // Nothing is fetched, not even by a browser without the policy.
  for (const char* way_out : {"src=\"", "href=\"http", "url(http", "@import"}) {
    EXPECT_EQ((page.before + page.after).find(way_out), std::string::npos) << way_out;
  }
}

TEST(HtmlPageWithoutTest, SaysWhatIsMissingAndTheCure) {
  const absl::Status there = html::PageIsThere();
  if (there.ok()) GTEST_SKIP() << "the page is there";
  EXPECT_EQ(there.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(there.message().find("-DMEMTRACE_HTML=ON"), std::string::npos) << there;
}

}  // namespace
}  // namespace memtrace::report
