// SPDX-License-Identifier: Apache-2.0
#include "chat.h"
#include "config.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace support {

namespace {

std::string names_of(const std::vector<ChatForm> &forms) {
  std::string names;
  for (const ChatForm &form : forms)
    names += (names.empty() ? "" : ", ") + form.name;
  return names;
}

/// Returns the template's text: a member of tokenizer_config.json, which may be a list of several, or a separate file.
std::string chat_template_of(const std::string &folder) {
  const std::string file = folder + "/chat_template.jinja", config = folder + "/tokenizer_config.json";
  if (std::filesystem::exists(file))
    return read_whole_file(file);
  if (!std::filesystem::exists(config))
    return {};
  const Config tokenizer = Config::read(config);
  if (!tokenizer.has("chat_template"))
    return {};
  const Config chat = tokenizer.at("chat_template");
  if (!chat.is_array())
    return chat.text();
  for (const Config &each : chat.elements())
    if (each.at("name").text() == "default")
      return each.at("template").text();
  chat.refuse("a template with the name default");
}

/// Substitutes the text and the system prompt in a part of a form.
std::string filled(const std::string &form, const std::string &text, const std::string &system) {
  std::string result;
  for (std::size_t at = 0; at < form.size();) {
    const std::string_view rest = std::string_view(form).substr(at);
    const std::string_view place = rest.starts_with("{text}")     ? "{text}"
                                   : rest.starts_with("{system}") ? "{system}"
                                                                  : "";
    if (place.empty())
      result += form[at++];
    else
      result += place == "{text}" ? text : system;
    at += place.size();
  }
  return result;
}

} // namespace

const std::vector<ChatForm> &chat_forms() {
  static const std::vector<ChatForm> forms{
      {.name = "plain", .turn = "{text}"},
      {.name = "llama-3",
       .sign = "<|start_header_id|>",
       .system = "<|start_header_id|>system<|end_header_id|>\n\n{system}<|eot_id|>",
       .turn = "<|start_header_id|>user<|end_header_id|>\n\n{text}<|eot_id|>"
               "<|start_header_id|>assistant<|end_header_id|>\n\n",
       .end = "<|eot_id|>",
       .specials = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}},
      {.name = "chatml",
       .sign = "<|im_start|>",
       .system = "<|im_start|>system\n{system}<|im_end|>\n",
       .turn = "<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n",
       .end = "<|im_end|>",
       .between = "\n",
       .specials = {"<|im_start|>", "<|im_end|>"}},
      {.name = "zephyr",
       .sign = "<|user|>",
       .system = "<|system|>\n{system}</s>\n",
       .turn = "<|user|>\n{text}</s>\n<|assistant|>\n",
       .end = "</s>",
       .between = "\n",
       .specials = {"</s>"}},
      {.name = "llama-2",
       .sign = "[INST]",
       .open = "[INST] ",
       .system = "<<SYS>>\n{system}\n<</SYS>>\n\n",
       .turn = "{text} [/INST]",
       .end = "</s>",
       .between = "<s>",
       .specials = {"<s>", "</s>"}},
  };
  return forms;
}

const ChatForm &chat_form(const std::string &name) {
  for (const ChatForm &form : chat_forms())
    if (form.name == name)
      return form;
  throw std::runtime_error("template: unknown name; expected one of " + names_of(chat_forms()) + ", got \"" + name +
                           "\"");
}

const ChatForm &chat_form_of(const std::string &folder) {
  return chat_form_of_template(chat_template_of(folder), folder);
}

const ChatForm &chat_form_of_template(const std::string &text, const std::string &where) {
  if (text.empty())
    return chat_form("plain");
  for (const ChatForm &form : chat_forms())
    if (!form.sign.empty() && text.find(form.sign) != text.npos)
      return form;
  throw std::runtime_error("\"" + where + "\": unknown chat_template; expected one of " + names_of(chat_forms()) +
                           "; --template selects one");
}

Conversation::Conversation(const Tokenizer &tokenizer, const ChatForm &form, std::string system)
    : tokenizer(tokenizer), form(form), system(std::move(system)) {
  for (const std::string &special : form.specials)
    if (!tokenizer.find(special))
      throw std::runtime_error("template " + form.name + ": missing token; expected " + special + " in the tokenizer");
  if (!form.end.empty())
    end = *tokenizer.find(form.end);
}

std::vector<Token> Conversation::ask(const std::string &text) {
  std::vector<Token> tokens;
  std::string rest = form.open + (isFirst && !system.empty() ? form.system : "") + form.turn;
  if (isFirst)
    tokens = tokenizer.before();
  else
    rest = form.end + form.between + rest;
  // Special tokens are split off before user text is substituted, so that no name in it becomes a special token.
  bool isBeginning = isFirst;
  while (!rest.empty()) {
    std::size_t at = rest.size(), length = 0;
    for (const std::string &special : form.specials)
      if (const std::size_t found = rest.find(special); found < at)
        at = found, length = special.size();
    if (at > 0) {
      const std::string said = filled(rest.substr(0, at), text, system);
      const std::vector<Token> more = tokenizer.encode(said, Specials::text, isBeginning);
      tokens.insert(tokens.end(), more.begin(), more.end());
    }
    if (length > 0)
      tokens.push_back(*tokenizer.find(rest.substr(at, length)));
    rest.erase(0, at + length);
    isBeginning = false;
  }
  isFirst = false;
  return tokens;
}

} // namespace support
