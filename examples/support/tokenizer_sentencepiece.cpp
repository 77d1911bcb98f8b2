// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.model: read by sentencepiece's own library, if the program was built with it.
#include "tokenizer.h"

#include <memory>
#include <stdexcept>

#ifdef SUPPORT_SENTENCEPIECE
#include <sentencepiece_processor.h>

namespace support {

Tokenizer tokenizer_of_sentencepiece(const std::string &path) {
  auto model = std::make_shared<sentencepiece::SentencePieceProcessor>();
  const auto status = model->Load(path);
  if (!status.ok())
    throw std::runtime_error("sentencepiece cannot read \"" + path + "\": " + status.ToString());

  Tokenizer::Parts parts;
  for (Token token = 0; token < model->GetPieceSize(); ++token) {
    std::string content = model->IdToPiece(token);
    parts.names[content] = token;
    if (model->IsControl(token))
      parts.added.push_back({content, token});
    if (model->IsControl(token) || model->IsUnknown(token)) {
      content.clear();
    } else if (model->IsByte(token)) { // "<0x0A>"
      content = std::string(1, static_cast<char>(std::stoi(content.substr(3, 2), nullptr, 16)));
    } else {
      const std::string mark = "\u2581";
      for (std::size_t at = 0; (at = content.find(mark, at)) != content.npos; ++at)
        content.replace(at, mark.size(), " ");
    }
    parts.bytes.push_back(content);
  }
  if (model->bos_id() >= 0)
    parts.before.push_back(model->bos_id());
  parts.encode = [model](std::string_view text, bool, std::vector<Token> &out) {
    std::vector<int> tokens;
    const auto encoded = model->Encode({text.data(), text.size()}, &tokens);
    if (!encoded.ok())
      throw std::runtime_error("sentencepiece cannot encode the text: " + encoded.ToString());
    out.insert(out.end(), tokens.begin(), tokens.end());
  };
  std::vector<std::string> pieces;
  parts.drops_first_space = model->Encode("a", &pieces).ok() && !pieces.empty() && pieces[0].starts_with("\u2581");
  return Tokenizer(std::move(parts));
}

} // namespace support
#else

namespace support {

Tokenizer tokenizer_of_sentencepiece(const std::string &path) {
  throw std::runtime_error(
      "\"" + path + "\": program built without sentencepiece; expected one with it (Debian's libsentencepiece-dev)");
}

} // namespace support
#endif
