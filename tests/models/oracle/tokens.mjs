// SPDX-License-Identifier: Apache-2.0
//
// Writes tokens.json: texts and their tokens by the npm package @huggingface/transformers, with the tokenizer.json of
// examples/llama and examples/gpt2, and with modifications of these that other published tokenizers have; and
// conversations in the forms of examples/support/chat.h. In an empty folder:
//
//   npm init -y && npm install --ignore-scripts @huggingface/transformers && node PATH/TO/tokens.mjs
//
// White space is Unicode's here and in the published library; JavaScript's includes U+FEFF and lacks U+0085, so no text
// has these.
import {readFileSync, writeFileSync} from "node:fs";
import {createRequire} from "node:module";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";

const require = createRequire(join(process.cwd(), "package.json"));
const {PreTrainedTokenizer, env} = require("@huggingface/transformers");
const here = dirname(fileURLToPath(import.meta.url));

const endoftext = {SpecialToken: {id: "<|endoftext|>", type_id: 0}};
const bytes = {type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false};
const metaspace = {type: "Metaspace", replacement: "▁", split: false};
// Members of the file that are replaced; within "model", its members.
const variants = [
  {name: "llama", change: {}},
  {name: "llama", change: {normalizer: null, pre_tokenizer: {...metaspace, prepend_scheme: "first"}}},
  {name: "llama", change: {normalizer: null, pre_tokenizer: {...metaspace, prepend_scheme: "always", split: true}}},
  {name: "llama", change: {normalizer: null, pre_tokenizer: {...metaspace, prepend_scheme: "never"}}},
  {name: "gpt2", change: {}},
  {name: "gpt2", change: {pre_tokenizer: {...bytes, add_prefix_space: true, use_regex: true}}},
  {
    name: "gpt2", // as SmolLM
    change: {
      pre_tokenizer: {
        type: "Sequence",
        pretokenizers: [{type: "Digits", individual_digits: true}, {...bytes, use_regex: true}],
      },
    },
  },
  {
    name: "gpt2", // as Llama 3
    change: {
      model: {ignore_merges: true},
      pre_tokenizer: {
        type: "Sequence",
        pretokenizers: [
          {
            type: "Split",
            behavior: "Isolated",
            invert: false,
            pattern: {
              Regex: "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}" +
                "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
            },
          },
          bytes,
        ],
      },
      post_processor: {
        type: "Sequence",
        processors: [
          bytes,
          {
            type: "TemplateProcessing",
            single: [endoftext, {Sequence: {id: "A", type_id: 0}}],
            pair: [],
            special_tokens: {"<|endoftext|>": {id: "<|endoftext|>", ids: [1999], tokens: ["<|endoftext|>"]}},
          },
        ],
      },
    },
  },
];

const texts = [
  "", " ", "a", "In the beginning God created the heaven and the earth.", " leading", "trailing ", "  two  spaces  ",
  "line\nline\n\n\nline", "line\r\nline\r\n\r\n end", "\n", "\n\n  \n x", "tab\tand\t\ttabs \t mixed",
  "it's IT'S I'm I'LL we've they'Re don't 'tis 's", "''s '' 'quoted'",
  "1 12 123 1234 12345678901234567890 3.14159 1,000",
  "x1y22z333", "½ Ⅷ ٣٤٥ 一二三 ²", "été naïve Straße ΑΒΓ αβγ Привет", "天地玄黄 宇宙洪荒。", "こんにちは、世界", "नमस्ते दुनिया",
  "שלום עולם مرحبا", "e\u0301 a\u0308 o\u0302\u0323", "🙂🙃 👩‍👩‍👧‍👦 🇳🇿", "a\u00a0b\u3000c\u2003d\u2028e",
  "\u0000\u0001\u007f",
  "for (int i = 0; i < n; ++i) { s += a[i] * b[i]; } // sum", "#include <cstdio>\n\tint main() {}\n",
  "___ --- === ...!?",
  "https://example.org/a?b=c&d=%20e#f", "<s> and </s> and <|im_start|>user\nx<|im_end|>\n", "<|endoftext|>",
  "a <|endoftext|> b",
  "<|endoftext|><|endoftext|>\n<s></s>", "<|endof<|endoftext", "<0x0A> <0xFF> ▁ Ġ Ċ", "▁▁a ▁b",
  "and it came to pass".repeat(20),
  "a".repeat(300), " ".repeat(70) + "x",
  "And the LORD said unto Moses, Stretch out thine hand toward heaven (1 Kings 8:22); and he did so!",
];

/** Returns more texts, of randomly chosen pieces. */
function drawn(count) {
  const pieces = [" ", "  ", "\n", "\r\n", "\t", "'", "'s", "'LL", "the", "LORD", "And", "unto", "é", "ß", "漢字", "🙂",
  "\u0301", "0", "7", "½",
    "12", ".", ",", "!?", "<", "|", "▁", "\u00a0", "x", "Z", "_", "<|endoftext|>", "<s>"];
  let state = 1611n;
  const next = (n) => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number(state >> 33n) % n;
  };
  return Array.from({length: count}, () => Array.from({length: 1 + next(24)}, () => pieces[next(pieces.length)]).join(""));
}

const all = [...texts, ...drawn(60)];
const cases = variants.map(({name, change}) => {
  const json = JSON.parse(readFileSync(join(here, "../../../examples", name, "king_james/tokenizer.json")));
  const {model = {}, ...rest} = change;
  Object.assign(json, rest);
  Object.assign(json.model, model);
  const tokenizer = new PreTrainedTokenizer(json, {});
  return {
    name,
    change,
    texts: all.map((text) => {
      const tokens = tokenizer.encode(text, {add_special_tokens: false});
      const all = tokenizer.encode(text);
      if (JSON.stringify(all.slice(all.length - tokens.length)) !== JSON.stringify(tokens)) throw text;
      const options = {skip_special_tokens: true, clean_up_tokenization_spaces: false};
      const shown = tokens.length ? tokenizer.decode(tokens, options) : "";
      return {text, before: all.slice(0, all.length - tokens.length), tokens, ...(shown !== text && {shown})};
    }),
  };
});
// Conversations in the forms of examples/support/chat.cpp: with and without a system message, with a question and a
// second one. The model writes the reply, so the tokens before it and after it are compared.
const turn = (before, after) => "{{ '" + before + "' + message['content'] + '" + after + "' }}";
const template = (open, system, user, assistant, start) =>
  open + "{% for message in messages %}{% if message['role'] == 'system' %}" + system +
  "{% elif message['role'] == 'user' %}" + user + "{% else %}" + assistant + "{% endif %}{% endfor %}" + start;
const forms = {
  "chatml": template("{{ '<s>' }}", ...["system", "user", "assistant"].map((role) =>
    turn(`<|im_start|>${role}\\n`, "<|im_end|>\\n")), "{{ '<|im_start|>assistant\\n' }}"),
  "zephyr": template("{{ '<s>' }}", ...["system", "user", "assistant"].map((role) => turn(`<|${role}|>\\n`, "</s>\\n")),
    "{{ '<|assistant|>\\n' }}"),
  "llama-2": template("{{ '<s>[INST] ' }}", turn("<<SYS>>\\n", "\\n<</SYS>>\\n\\n"),
    "{% if not loop.first and messages[loop.index0 - 1]['role'] == 'assistant' %}{{ '[INST] ' }}{% endif %}" +
    turn("", " [/INST]"), turn(" ", " </s><s>"), ""),
  "llama-3": template("{{ '<s>' }}", ...["system", "user", "assistant"].map((role) =>
    turn(`<|start_header_id|>${role}<|end_header_id|>\\n\\n`, "<|eot_id|>")),
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"),
};
const added = ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"].map((content, i) => (
  {id: 2000 + i, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true}));
const chats = Object.entries(forms).flatMap(([form, chat_template]) => [null, "Speak as in 1611."].map((system) => {
  const json = JSON.parse(readFileSync(join(here, "../../../examples/llama/king_james/tokenizer.json")));
  json.added_tokens.push(...added);
  const tokenizer = new PreTrainedTokenizer(json, {chat_template, bos_token: "<s>", eos_token: "</s>"});
  const tokens = (messages) => tokenizer.apply_chat_template(messages, {return_tensor: false, return_dict: false});
  const first = [...system ? [{role: "system", content: system}] : [], {role: "user", content: "Who art thou?"}];
  const reply = {role: "assistant", content: "Here am I."};
  const ask = tokens(first), both = tokens([...first, reply, {role: "user", content: "Whence\ncomest thou?"}]);
  return {form, system, questions: ["Who art thou?", "Whence\ncomest thou?"], first: ask, both};
}));
const line = (value) => JSON.stringify(value);
writeFileSync(join(here, "tokens.json"), `{"version": ${line(env.version)}, "cases": [\n` +
  cases.map((c) => `{"name": ${line(c.name)}, "change": ${line(c.change)}, "texts": [\n` +
    c.texts.map(line).join(",\n") + "]}").join(",\n") + "\n],\n\"chats\": [\n" + chats.map(line).join(",\n") + "\n]}\n");
