#include "report/html/deflated_base64.h"

#include <climits>
#include <new>

#include "absl/strings/escaping.h"

namespace memtrace::report::html {
namespace {

constexpr size_t kPiece = 16 << 10;
constexpr int kRaw = -15;  // the largest window, no header

}  // namespace

DeflatedBase64::DeflatedBase64(words::Sink* out) : out_(out) {
  if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kRaw, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw std::bad_alloc();
  }
}

DeflatedBase64::~DeflatedBase64() { deflateEnd(&stream_); }

void DeflatedBase64::Write(absl::string_view text) {
  while (!text.empty()) {
    const absl::string_view piece = text.substr(0, INT_MAX);
    Run(piece, Z_NO_FLUSH);
    text.remove_prefix(piece.size());
  }
}

void DeflatedBase64::Finish() {
  Run({}, Z_FINISH);
  out_->Write(absl::Base64Escape(packed_));
  packed_.clear();
}

void DeflatedBase64::Run(absl::string_view text, int flush) {
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream_.avail_in = static_cast<uInt>(text.size());
  do {
    Bytef piece[kPiece];
    stream_.next_out = piece;
    stream_.avail_out = kPiece;
    deflate(&stream_, flush);
    packed_.append(reinterpret_cast<const char*>(piece), kPiece - stream_.avail_out);
    if (packed_.size() >= kPiece) {
      const size_t whole = packed_.size() - packed_.size() % 3;
      out_->Write(absl::Base64Escape(absl::string_view(packed_).substr(0, whole)));
      packed_.erase(0, whole);
    }
  } while (stream_.avail_out == 0);
}

}  // namespace memtrace::report::html
