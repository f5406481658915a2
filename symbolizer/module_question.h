// A Module as bytes: what questions to the process that reads it begin with. They are of our own
// process, and believed.

#ifndef MEMTRACE_SYMBOLIZER_MODULE_QUESTION_H_
#define MEMTRACE_SYMBOLIZER_MODULE_QUESTION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "symbolizer/answer_bytes.h"
#include "symbolizer/ask_child.h"
#include "symbolizer/symbolizer.h"

namespace memtrace::symbolizer {

// Puts one kind of question to that process.
using AskReader = std::function<ChildAnswer(std::string_view question)>;

inline void PutModule(const Module& module, std::string* out) {
  Put(module.path, out);
  Put(module.build_id, out);
  Put64(static_cast<uint64_t>(module.loaded_ns), out);
}

inline Module TakeModule(AnswerReader* in) {
  Module module;
  module.path = in->Text();
  module.build_id = in->Text();
  module.loaded_ns = static_cast<int64_t>(in->Number64());
  return module;
}

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_MODULE_QUESTION_H_
