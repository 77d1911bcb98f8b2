// SPDX-License-Identifier: Apache-2.0
//
// Chat templates: the text around the turns of a conversation, in the form that a model was trained with. Names of
// special tokens in a form are encoded as these tokens; in user text they are plain text.
#pragma once

#include "tokenizer.h"

#include <string>
#include <vector>

namespace support {

struct ChatForm {
  std::string name;     // for --template
  std::string sign{};   // identifying substring of chat_template in tokenizer_config.json
  std::string open{};   // {system} and {text} are substituted
  std::string system{}; // only before the first question, and only if there is a system prompt
  std::string turn{};   // up to the beginning of the reply
  std::string end{};    // the special token that ends a reply, and the text before the next turn
  std::string between{};
  std::vector<std::string> specials{};
};

/// plain, llama-2, llama-3, chatml, zephyr. The plain form continues a text, without turns.
const std::vector<ChatForm> &chat_forms();
/// Returns the form of this name; throws an error that lists all of them otherwise.
const ChatForm &chat_form(const std::string &name);
/// Returns the form of a checkpoint's folder: plain without a chat_template; throws an error for an unknown one.
const ChatForm &chat_form_of(const std::string &folder);
/// Returns the form of a chat_template; errors say that it is in the file or folder `where`.
const ChatForm &chat_form_of_template(const std::string &text, const std::string &where);

class Conversation {
public:
  /// Throws an error if the tokenizer lacks a token of the form.
  Conversation(const Tokenizer &tokenizer, const ChatForm &form, std::string system);

  /// Returns the tokens to append to the context so that the model replies to `text`.
  std::vector<Token> ask(const std::string &text);
  /// Starts a new conversation.
  void reset() { isFirst = true; }
  /// Returns false for the plain form.
  bool has_sides() const { return !form.end.empty(); }
  /// Whether a reply ends with this token, in addition to the checkpoint's end tokens; the plain form ends with any
  /// special token.
  bool ends(Token token) const { return has_sides() ? token == end : tokenizer.bytes(token).empty(); }

private:
  const Tokenizer &tokenizer;
  const ChatForm &form;
  std::string system;
  Token end = -1;
  bool isFirst = true;
};

} // namespace support
