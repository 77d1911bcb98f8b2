// SPDX-License-Identifier: Apache-2.0
//
// Writes captions of mosaics of four Fashion-MNIST images with both models, compares each with PyTorch's, counts how
// many are correct and how often a model attends to the image that it names:
//   captions_demo [--data FOLDER] [--mosaics N] [--picture FILE.svg [--at NUMBER]]
// The dataset is Debian's dataset-fashion-mnist.
#include "captions_recurrent.hpp"
#include "captions_transformer.hpp"

#include "mosaic.h"
#include "support/first_weights.h"
#include "support/json.h"
#include "support/picture.h"
#include "support/session.h"

#include <algorithm>
#include <chrono>
#include <sstream>

namespace {

using namespace captions;
constexpr int notHere = 77; // exit status of a skipped test
constexpr std::size_t grid = 14, width = 64;
constexpr std::size_t longest = CAPTIONS_RECURRENT_FORWARD_WORDS_MAX; // start, and the words

struct Caption {
  std::vector<std::int32_t> words{start};
  std::vector<float> seen; // grid * grid for each word after the start
};

/// Repeatedly writes the most likely next word.
template <class Model> class Captioner {
public:
  Captioner(const std::string &weights, std::size_t arenaBytes) : session(arenaBytes) {
    session.check(model.bind(weights.c_str(), &session.error));
  }

  Caption operator()(const Mosaic &mosaic) {
    session.check(model.look(session.call, mosaic.pixels.data(), memory.data()));
    Caption caption;
    std::vector<float> logits(words), seen(grid * grid);
    while (caption.words.size() == 1 || (caption.words.back() != end && caption.words.size() <= longest)) {
      const std::int32_t word = caption.words.back();
      const auto count = static_cast<std::int64_t>(caption.words.size());
      if constexpr (requires { model.step(session.call, count, &word, logits.data(), seen.data()); })
        session.check(model.step(session.call, count, &word, logits.data(), seen.data()));
      else
        session.check(model.step(session.call, &word, logits.data(), seen.data()));
      caption.words.push_back(
          static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
      caption.seen.insert(caption.seen.end(), seen.begin(), seen.end());
    }
    return caption;
  }

private:
  support::Session session;
  Model model;
  std::vector<float> memory = std::vector<float>(grid * grid * width);
};

/// Returns how many sentences are correct with hard attention: before each word one location is sampled, and only its
/// features are used.
std::size_t count_hard(const char *weights, const support::FashionMnist &data, std::size_t wanted) {
  support::Session session(std::max(CAPTIONS_RECURRENT_LOOK_ARENA_BYTES(1), CAPTIONS_RECURRENT_GLANCE_ARENA_BYTES(1)));
  captions_recurrent::Model model;
  session.check(model.bind(weights, &session.error));
  std::vector<float> memory(grid * grid * width), logits(words), uniform(grid * grid);
  random_t random = {1};
  std::size_t right = 0;
  for (std::size_t number = 0; number < wanted; ++number) {
    const Mosaic mosaic(data, number);
    session.check(model.look(session.call, mosaic.pixels.data(), memory.data()));
    std::size_t at = 1;
    for (std::int32_t word = start; at < mosaic.sentence.size(); ++at) {
      for (float &value : uniform)
        value = random_uniform_float(&random);
      std::int32_t place;
      session.check(model.glance(session.call, &word, uniform.data(), logits.data(), &place));
      word = static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
      if (word != mosaic.sentence[at].word)
        break;
    }
    right += at == mosaic.sentence.size();
  }
  return right;
}

/// Returns PyTorch's sentence for each mosaic: a line of letters from 'a' on, one per word; a '?' at its end marks
/// words that f32 and f64 may choose differently.
std::vector<std::string> sentences_of_pytorch(const std::string &model) {
  std::istringstream file(support::read_file(CAPTIONS_FOLDER "/" + model + "_sentences.txt"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  return lines;
}

struct Counts {
  std::size_t same = 0;  // sentences equal to PyTorch's, or marked with '?'
  std::size_t right = 0; // correct sentences
  std::size_t named = 0; // correct words that name an image
  std::size_t found = 0; // of these, those that attend most to the image's quarter

  void add(const Mosaic &mosaic, const Caption &caption, const std::string &of_pytorch) {
    std::string letters;
    for (std::size_t i = 1; i < caption.words.size(); ++i)
      letters += static_cast<char>('a' + caption.words[i]);
    same += letters == of_pytorch || of_pytorch.ends_with('?');
    right += std::ranges::equal(caption.words, mosaic.sentence, {}, {}, &Said::word);
    for (std::size_t i = 1; i < std::min(caption.words.size(), mosaic.sentence.size()); ++i) {
      const Said &said = mosaic.sentence[i];
      if (caption.words[i] != said.word || caption.words[i] < singular)
        continue;
      ++named;
      double quarters[4] = {};
      for (std::size_t place = 0; place < grid * grid; ++place)
        quarters[2 * (place / grid / (grid / 2)) + place % grid / (grid / 2)] +=
            static_cast<double>(caption.seen[(i - 1) * grid * grid + place]);
      const auto most = std::max_element(quarters, quarters + 4) - quarters;
      found += said.isOne ? most == said.quarter : most / 2 == said.quarter / 2;
    }
  }
};

/// Draws the mosaic, and the attention before each word.
void draw(const std::string &path, const Mosaic &mosaic, const Caption &caption) {
  // Every second pixel is enough to recognise the image.
  std::vector<float> pixels(half * half);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = mosaic.pixels[i / half * 2 * side + i % half * 2];
  const std::vector<std::string> rows(half), few(grid);
  std::vector<support::Matrix> pictures{{"", rows, rows, pixels, 1, 4}};
  for (std::size_t i = 1; i < caption.words.size(); ++i) {
    const std::span<const float> seen = std::span(caption.seen).subspan((i - 1) * grid * grid, grid * grid);
    pictures.push_back({text_of(caption.words[i]), few, few, seen, *std::max_element(seen.begin(), seen.end()), 8});
  }
  if (!support::draw(path, pictures))
    support::stop("cannot write " + path);
  std::printf("%s\n", path.c_str());
}

std::string written(const Caption &caption) {
  std::string text;
  for (std::size_t i = 1; i < caption.words.size(); ++i)
    text += (i > 1 && caption.words[i] != end ? " " : "") + text_of(caption.words[i]);
  return text;
}

} // namespace

int main(int argc, char **argv) try {
  std::string folder = support::fashion_mnist_folder, picture;
  std::size_t wanted = 2500, at = 0;
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (i + 1 == argc)
      support::stop("captions_demo [--data FOLDER] [--mosaics N] [--picture FILE.svg [--at NUMBER]]");
    if (option == "--data")
      folder = argv[i + 1];
    else if (option == "--picture")
      picture = argv[i + 1];
    else if (option == "--mosaics")
      wanted = std::strtoul(argv[i + 1], nullptr, 10);
    else if (option == "--at")
      at = std::strtoul(argv[i + 1], nullptr, 10);
    else
      support::stop("captions_demo: unknown option \"" + option + "\"");
  }
  Captioner<captions_recurrent::Model> recurrent(
      CAPTIONS_FOLDER "/recurrent.safetensors",
      std::max(CAPTIONS_RECURRENT_LOOK_ARENA_BYTES(1), CAPTIONS_RECURRENT_STEP_ARENA_BYTES(1)));
  Captioner<captions_transformer::Model> transformer(
      CAPTIONS_FOLDER "/transformer.safetensors",
      std::max(CAPTIONS_TRANSFORMER_LOOK_ARENA_BYTES(1), CAPTIONS_TRANSFORMER_STEP_ARENA_BYTES(1)));
  const std::optional<support::FashionMnist> data = support::read_fashion_mnist(folder, "t10k");
  if (!data) {
    std::printf("skipped: no Fashion-MNIST in %s (package dataset-fashion-mnist)\n", folder.c_str());
    return notHere;
  }
  const std::size_t all = data->labels.size() / 4;
  wanted = std::min(wanted, all);
  if (at >= all)
    support::stop("--at: no such mosaic; expected a number below " + std::to_string(all) + ", got " +
                  std::to_string(at));
  const Mosaic shown(*data, at);
  const Caption first = recurrent(shown), second = transformer(shown);
  std::printf("%s\n%s\n", written(first).c_str(), written(second).c_str());
  if (!picture.empty()) {
    const std::size_t dot = std::min(picture.rfind('.'), picture.size());
    draw(picture.substr(0, dot) + "_recurrent" + picture.substr(dot), shown, first);
    draw(picture.substr(0, dot) + "_transformer" + picture.substr(dot), shown, second);
  }

  const char *models[] = {"recurrent", "transformer"};
  const std::vector<std::string> of_pytorch[] = {sentences_of_pytorch(models[0]), sentences_of_pytorch(models[1])};
  if (of_pytorch[0].size() != all || of_pytorch[1].size() != all)
    support::stop("PyTorch's sentences: wrong number of lines; expected one for each of " + std::to_string(all) +
                  " mosaics");
  Counts counts[2];
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t number = 0; number < wanted; ++number) {
    const Mosaic mosaic(*data, number);
    counts[0].add(mosaic, recurrent(mosaic), of_pytorch[0][number]);
    counts[1].add(mosaic, transformer(mosaic), of_pytorch[1][number]);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("%.1f ms a mosaic for both\n", 1e3 * seconds.count() / static_cast<double>(wanted));
  bool isEqual = true, looksThere = true;
  for (int i = 0; i < 2; ++i) {
    std::printf(
        "%s: %zu of %zu sentences as PyTorch's, %zu right; looked at what it named for %zu of %zu words (%.1f %%)\n",
        models[i], counts[i].same, wanted, counts[i].right, counts[i].found, counts[i].named,
        100 * static_cast<double>(counts[i].found) / static_cast<double>(counts[i].named));
    const auto expected = [&](const char *what) {
      return support::read_number(CAPTIONS_FOLDER "/expected.json", std::string(models[i]) + what);
    };
    isEqual = isEqual && counts[i].same == wanted;
    if (wanted == all) {
      std::printf("%*s PyTorch: %zu; %zu of %zu\n", static_cast<int>(std::strlen(models[i])), "", expected("_right"),
                  expected("_found"), expected("_named"));
      looksThere = looksThere && 10 * counts[i].found >= 9 * counts[i].named;
    }
  }
  std::printf("hard attention: %zu right with the weights of soft attention, %zu with those of REINFORCE\n",
              count_hard(CAPTIONS_FOLDER "/recurrent.safetensors", *data, wanted),
              count_hard(CAPTIONS_FOLDER "/hard.safetensors", *data, wanted));
  if (!isEqual)
    support::stop("sentences: different from PyTorch's");
  if (!looksThere)
    support::stop("attention: not at the named object for more than a tenth of the words");
} catch (const std::exception &error) {
  support::stop(error.what());
}
