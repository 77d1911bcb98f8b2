// SPDX-License-Identifier: Apache-2.0
//
// What stands around the sides of a conversation, in the form that a model was trained with. The names of the special
// tokens that a form has stand for these tokens; what somebody says is text, whatever names are in it.
#pragma once

#include "tokenizer.h"

#include <string>
#include <vector>

namespace support {

struct ChatForm {
  std::string name;     // for --template
  std::string sign{};   // what chat_template of tokenizer_config.json has in it
  std::string open{};   // {system} and {text} are what is said
  std::string system{}; // only before the first question, and only if there is something to say
  std::string turn{};   // up to where the reply begins
  std::string end{};    // the special token that ends a reply, and what follows before the next turn
  std::string between{};
  std::vector<std::string> specials{};
};

/// plain, llama-2, llama-3, chatml, zephyr. A plain text is written on, without sides.
const std::vector<ChatForm> &chat_forms();
/// The form of this name, or an error that lists them.
const ChatForm &chat_form(const std::string &name);
/// The form that the files of a checkpoint's folder show: plain without a chat_template, an error with an unknown one.
const ChatForm &chat_form_of(const std::string &folder);
/// The same of a chat_template, which errors say is in the file or folder `where`.
const ChatForm &chat_form_of_template(const std::string &text, const std::string &where);

class Conversation {
public:
  /// An error if the tokenizer lacks a token of the form.
  Conversation(const Tokenizer &tokenizer, const ChatForm &form, std::string system);

  /// What to add to the context so that the model replies to `text`.
  std::vector<Token> ask(const std::string &text);
  /// Begins anew.
  void reset() { isFirst = true; }
  /// Not of a plain text.
  bool has_sides() const { return !form.end.empty(); }
  /// Whether a reply ends with this token, besides those that the checkpoint names; a plain text with any special one.
  bool ends(Token token) const { return has_sides() ? token == end : tokenizer.bytes(token).empty(); }

private:
  const Tokenizer &tokenizer;
  const ChatForm &form;
  std::string system;
  Token end = -1;
  bool isFirst = true;
};

} // namespace support
