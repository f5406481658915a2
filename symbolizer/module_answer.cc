#include "symbolizer/module_answer.h"

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "symbolizer/answer_bytes.h"
#include "symbolizer/demangle.h"

namespace memtrace::symbolizer {
namespace {

constexpr size_t kFrameNames = 3, kFrameNumbers = 5;

void PutName(std::string_view text, std::string* out) {
  std::string name(text);
  CutName(&name);
  Put(name, out);
}

// A part of a linkage name is the name of something else.
std::string_view LinkageName(const Frame& frame) {
  return frame.linkage_name.size() <= kMaxNameBytes ? std::string_view(frame.linkage_name)
                                                    : std::string_view();
}

// Whether frames of `addresses` come next, which name texts that there are, not more than
// kMostTextBytes in all. Nothing is kept of them yet, for a few bytes may name much.
bool FramesAreSound(AnswerReader in, const std::vector<std::string_view>& texts,
                    size_t addresses) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < addresses; ++i) {
    for (size_t left = in.Count(kFrameNumbers * sizeof(uint32_t)); left > 0; --left) {
      for (size_t name = 0; name < kFrameNames; ++name) {
        const uint32_t number = in.Number();
        if (number >= texts.size()) return false;
        bytes += texts[number].size();
      }
      for (size_t n = kFrameNames; n < kFrameNumbers; ++n) in.Number();
    }
    if (!in.ok() || bytes > kMostTextBytes) return false;
  }
  return true;
}

}  // namespace

std::string EncodeAnswer(const ModuleResult& result) {
  absl::flat_hash_map<std::string_view, uint32_t> numbers;
  std::string strings, frames;
  const auto number_of = [&](std::string_view text) {
    const auto [at, is_new] = numbers.try_emplace(text, static_cast<uint32_t>(numbers.size()));
    if (is_new) PutName(text, &strings);
    return at->second;
  };
  for (const std::vector<Frame>& chain : result.frames) {
    Put(static_cast<uint32_t>(chain.size()), &frames);
    for (const Frame& frame : chain) {
      for (const std::string_view text :
           {std::string_view(frame.function), LinkageName(frame), std::string_view(frame.file)}) {
        Put(number_of(text), &frames);
      }
      Put(frame.line, &frames);
      Put(frame.inlined ? 1 : 0, &frames);
    }
  }
  std::string out;
  Put(static_cast<uint32_t>(result.state), &out);
  Put(result.message, &out);
  Put(result.missed, &out);
  Put(result.debug_file, &out);
  Put(static_cast<uint32_t>(numbers.size()), &out);
  out.append(strings);
  Put(static_cast<uint32_t>(result.frames.size()), &out);
  out.append(frames);
  Put(static_cast<uint32_t>(result.files.size()), &out);
  for (const base::FileStamp& file : result.files) {
    Put(file.path, &out);
    Put(file.exists ? 1 : 0, &out);
    for (const uint64_t number : {file.device, file.inode, file.bytes}) Put64(number, &out);
    for (const int64_t time : {file.modified_ns, file.changed_ns}) {
      Put64(static_cast<uint64_t>(time), &out);
    }
  }
  return out;
}

bool DecodeAnswer(std::string_view bytes, size_t addresses, ModuleResult* result) {
  AnswerReader in(bytes);
  const uint32_t state = in.Number();
  if (state > static_cast<uint32_t>(ModuleState::kUnreadable)) return false;
  result->state = static_cast<ModuleState>(state);
  result->message = in.Text();
  result->missed = in.Text();
  result->debug_file = in.Text();
  std::vector<std::string_view> strings(in.Count(sizeof(uint32_t)));
  for (std::string_view& text : strings) {
    text = in.Text();
    if (text.size() > kMaxNameBytes) return false;
  }
  if (in.Count(sizeof(uint32_t)) != addresses || !FramesAreSound(in, strings, addresses)) {
    return false;
  }
  result->frames.resize(addresses);
  for (std::vector<Frame>& chain : result->frames) {
    chain.resize(in.Count(kFrameNumbers * sizeof(uint32_t)));
    for (Frame& frame : chain) {
      for (std::string* text : {&frame.function, &frame.linkage_name, &frame.file}) {
        *text = strings[in.Number()];
      }
      frame.line = in.Number();
      frame.inlined = in.Number() != 0;
    }
  }
  result->files.resize(in.Count(2 * sizeof(uint32_t) + 5 * sizeof(uint64_t)));
  for (base::FileStamp& file : result->files) {
    file.path = in.Text();
    file.exists = in.Number() != 0;
    for (uint64_t* number : {&file.device, &file.inode, &file.bytes}) *number = in.Number64();
    for (int64_t* time : {&file.modified_ns, &file.changed_ns}) {
      *time = static_cast<int64_t>(in.Number64());
    }
  }
  return in.ok() && in.at_end();
}

}  // namespace memtrace::symbolizer
